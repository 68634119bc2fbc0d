"""Readings of outputs: the best classes, the regions of a mask, or plain figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from armpy.cli.pictures.labels import Labels
from armpy.core.dataclass import dataclass
from armpy.execution.arrays.conversion import dequantize_array
from armpy.tensor import TensorInfo

if TYPE_CHECKING:
    import numpy.typing as npt

    from armpy.cli.pictures.file_metadata import FileMetadata
    from armpy.execution import TensorSpec
    from armpy.model import Model

Array: TypeAlias = "npt.NDArray[np.generic]"
Mask: TypeAlias = "npt.NDArray[np.int64]"

_SMALLEST_MASK = 8
"""Least height and width of a mask; a smaller output is some feature map."""

_PICTURE_CHANNELS = (1, 3, 4)
_BATCH_NDIM = 2

_SUM_TOLERANCE = 0.05
"""How far quantised probabilities of all classes may be from 1 together."""


@dataclass(frozen=True, slots=True)
class ClassScore:
    """One class of a classification."""

    index: int
    score: float  # dequantised
    label: str  # empty where no name is known


@dataclass(frozen=True, slots=True)
class RegionShare:
    """One label of a mask."""

    index: int
    pixels: int
    share: float  # of all pixels, 0 to 1
    label: str  # empty where no name is known


@dataclass(frozen=True, slots=True)
class OutputReport:
    """One output."""

    name: str
    shape: tuple[int, ...]
    type: str
    # Of the real numbers; None for an output without elements, or of strings.
    min: float | None
    max: float | None
    mean: float | None
    classes: tuple[ClassScore, ...] = ()  # the best ones of a classification, best first
    regions: tuple[RegionShare, ...] = ()  # the largest ones of a mask, largest first
    # The best classes of each row of a batch that was classified; empty for one row alone.
    rows: tuple[tuple[ClassScore, ...], ...] = ()
    texts: tuple[str, ...] = ()  # the first elements of an output of strings


def report_output(
    name: str,
    info: TensorInfo,
    stored: Array,  # dtype of `info`
    *,
    mask: Mask | None = None,  # what `as_mask` has made of it
    labels: Labels | None = None,
    top: int = 5,
    # Whether the output may be taken for a classification if its shape allows it.
    may_classify: bool = True,
    batch: int = 1,  # how many things the model was given together
) -> OutputReport:
    """Describe one output."""
    real = dequantize_array(stored, info)
    plain = OutputReport(name, stored.shape, info.data_type.name, *_figures(real))
    if info.data_type.is_string:
        return replace(plain, texts=tuple(stored.reshape(-1)[:top].tolist()))
    if mask is not None:
        num_classes = stored.shape[3] if stored.ndim == 4 and stored.shape[3] > 1 else 0
        return replace(plain, regions=largest_regions(mask, labels, top, num_classes=num_classes))
    is_batch = real.ndim == _BATCH_NDIM and batch == len(real) > 1 and real.shape[1] > 1
    if not may_classify or not (is_batch or is_classification(real)):
        return plain
    if is_batch:
        rows = tuple(top_classes(row, labels, top) for row in real)
        return replace(plain, rows=rows)
    return replace(plain, classes=top_classes(real, labels, top))


def _figures(real: Array) -> tuple[float | None, float | None, float | None]:
    """Minimum, maximum and mean."""
    if real.size == 0 or real.dtype.hasobject:
        return None, None, None
    wide = real.astype(np.float64)
    with np.errstate(all="ignore"):
        return float(wide.min()), float(wide.max()), float(wide.mean())


def is_classification(array: Array) -> bool:
    """Return whether an output is a score for each of several classes."""
    return array.ndim > 0 and array.shape[-1] == array.size > 1 and array.dtype.kind != "b"


def top_classes(scores: Array, labels: Labels | None, top: int) -> tuple[ClassScore, ...]:
    """The classes with the highest scores; of equal ones the first, NaN last."""
    flat = scores.reshape(-1).astype(np.float64)
    named = labels.for_classes(flat.size) if labels is not None else Labels({})
    order = np.argsort(-flat, kind="stable")[:top]
    return tuple(ClassScore(int(i), float(flat[i]), named.name(int(i))) for i in order)


def as_mask(
    stored: Array, info: TensorInfo | None = None, *, has_labels: bool = False
) -> Mask | None:
    """The class of each pixel, int64 of shape (H, W), if an output is a mask.

    It is one if it is of integers and its shape is (1, H, W) or (1, H, W, 1). Scores of shape
    (1, H, W, C) become one by taking the best class, but those with 3 or 4 channels might also be a
    picture, and count only where there are labels, or where they are probabilities: 1 together, at
    every pixel.
    """
    shape = stored.shape
    if len(shape) not in (3, 4) or shape[0] != 1 or min(shape[1:3]) < _SMALLEST_MASK:
        return None
    if stored.dtype.kind not in "iuf":
        return None
    if len(shape) == 4 and shape[3] > 1:
        has_classes = has_labels or shape[3] not in _PICTURE_CHANNELS
        if not has_classes and not (info is not None and _are_probabilities(stored, info)):
            return None
        best: Mask = np.argmax(stored[0], axis=-1).astype(np.int64)
        return best
    if stored.dtype.kind == "f":
        return None
    return stored.reshape(shape[1:3]).astype(np.int64)


def _are_probabilities(stored: Array, info: TensorInfo) -> bool:
    """Return whether an output holds probabilities of classes along its last axis."""
    real = dequantize_array(stored, info)
    if real.dtype.kind != "f" or not real.size or real.min() < 0:
        return False
    return bool(np.abs(real.sum(axis=-1, dtype=np.float64) - 1).max() <= _SUM_TOLERANCE)


def largest_regions(
    mask: Mask, labels: Labels | None, top: int, *, num_classes: int = 0
) -> tuple[RegionShare, ...]:
    """The labels that most pixels of a mask have; `num_classes` of them are known for certain."""
    if labels is not None and num_classes:
        labels = labels.for_classes(num_classes)
    indexes, counts = np.unique(mask, return_counts=True)
    order: Sequence[int] = np.argsort(-counts, kind="stable")[:top].tolist()
    return tuple(
        RegionShare(
            int(indexes[i]),
            int(counts[i]),
            float(counts[i] / mask.size),
            labels.name(int(indexes[i])) if labels is not None else "",
        )
        for i in order
    )


@dataclass(frozen=True, slots=True)
class ReadOutputs:
    """Outputs of one run, read: reports, masks, labels."""

    reports: tuple[OutputReport, ...]
    masks: dict[str, Mask]  # the masks among them by name
    labels: dict[str, Labels]  # the labels of each output that has some


@dataclass(eq=False, slots=True)
class OutputReader:
    """Says what a model's outputs are."""

    model: Model
    labels: Labels | None = None  # the user's; the file's own ones otherwise
    metadata: FileMetadata | None = None  # None where nothing is to be taken from the file
    top: int = 5  # how many classes or regions to list

    def read(self, results: Mapping[str, Array], batch: int = 1) -> ReadOutputs:
        """Interpret the outputs of one run with a number of inputs at a time."""
        outputs = self.model.outputs
        is_only = len(outputs) == 1
        input_shapes = [spec.shape for spec in self.model.inputs]
        reports: list[OutputReport] = []
        masks: dict[str, Mask] = {}
        labels: dict[str, Labels] = {}
        for spec in outputs:
            stored = results[spec.name]
            mask = None
            if is_only:
                mask = as_mask(stored, spec.info, has_labels=self.labels is not None)
            if mask is not None:
                masks[spec.name] = mask
            named = self._labels(spec, stored, mask)
            if named is not None:
                labels[spec.name] = named
            report = report_output(
                spec.name,
                spec.info,
                stored,
                mask=mask,
                labels=named,
                top=self.top,
                # An autoencoder's output has no classes.
                may_classify=is_only and spec.shape not in input_shapes,
                batch=batch,
            )
            reports.append(report)
        return ReadOutputs(tuple(reports), masks, labels)

    def _labels(self, spec: TensorSpec, stored: Array, mask: Mask | None) -> Labels | None:
        if self.labels is not None or self.metadata is None:
            return self.labels
        is_value = mask is not None and stored.size == mask.size
        return self.metadata.labels(spec, stored.shape[-1] if stored.ndim else 0, is_mask=is_value)
