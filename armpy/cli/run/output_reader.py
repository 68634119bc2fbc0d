"""Reading of a model's outputs, with the labels that there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from armpy.cli.run.results import Array, Mask, OutputReport, as_mask, report_output

if TYPE_CHECKING:
    from armpy.cli.pictures.file_metadata import FileMetadata
    from armpy.cli.pictures.labels import Labels
    from armpy.execution import TensorSpec
    from armpy.model import Model

LOGITS_HINT = (
    "the scores are no probabilities, as some are below 0 or above 1; --softmax turns them into "
    "probabilities of classes that exclude each other"
)


@dataclass(frozen=True, slots=True)
class ReadOutputs:
    """Outputs of one run, read: reports, masks, labels.

    Parameters
    ----------
    reports : tuple of OutputReport
    masks : dict of str to ndarray
        The masks among them by name.
    labels : dict of str to Labels
        The labels of each output that has some.
    """

    reports: tuple[OutputReport, ...]
    masks: dict[str, Mask]
    labels: dict[str, Labels]


class OutputReader:
    """Says what a model's outputs are.

    Parameters
    ----------
    model : Model
    labels : Labels, optional
        What the user names; the file's own ones otherwise.
    metadata : FileMetadata, optional
        None where nothing is to be taken from the file.
    top : int
        How many classes or regions to list.
    softmax : bool
        Whether scores of classes are turned into probabilities.

    Attributes
    ----------
    hints : list of str
        What was seen on the way, each once.
    """

    def __init__(
        self,
        model: Model,
        labels: Labels | None = None,
        metadata: FileMetadata | None = None,
        top: int = 5,
        softmax: bool = False,
    ) -> None:
        self.model = model
        self.labels = labels
        self.metadata = metadata
        self.top = top
        self.softmax = softmax
        self.hints: list[str] = []

    def read(self, results: Mapping[str, Array], batch: int = 1) -> ReadOutputs:
        """What the outputs of one run say.

        Parameters
        ----------
        results : mapping of str to ndarray
        batch : int
            How many things the model was given together.

        Raises
        ------
        InvalidArgumentError
            If there are fewer labels than classes.
        """
        outputs = self.model.outputs
        is_only = len(outputs) == 1
        input_shapes = [spec.shape for spec in self.model.inputs]
        reports: list[OutputReport] = []
        found = ReadOutputs((), {}, {})
        for spec in outputs:
            stored = results[spec.name]
            mask = None
            if is_only:
                mask = as_mask(stored, spec.info, has_labels=self.labels is not None)
            if mask is not None:
                found.masks[spec.name] = mask
            named = self._labels(spec, stored, mask)
            if named is not None:
                found.labels[spec.name] = named
            report = report_output(
                spec.name,
                spec.info,
                stored,
                mask=mask,
                labels=named,
                top=self.top,
                # An autoencoder's output has no classes.
                may_classify=is_only and spec.shape not in input_shapes,
                softmax=self.softmax,
                batch=batch,
            )
            self._look_for_logits(report)
            reports.append(report)
        return ReadOutputs(tuple(reports), found.masks, found.labels)

    def _labels(self, spec: TensorSpec, stored: Array, mask: Mask | None) -> Labels | None:
        """The user's labels, or the file's."""
        if self.labels is not None or self.metadata is None:
            return self.labels
        is_value = mask is not None and stored.size == mask.size
        return self.metadata.labels(spec, stored.shape[-1] if stored.ndim else 0, is_mask=is_value)

    def _look_for_logits(self, report: OutputReport) -> None:
        """Offer probabilities where the scores are none; random numbers have nothing to say."""
        if self.metadata is None or not report.has_logits or LOGITS_HINT in self.hints:
            return
        self.hints.append(LOGITS_HINT)
