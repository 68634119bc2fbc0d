"""Normalisation and labels from the model file's own metadata."""

from __future__ import annotations

from collections.abc import Iterable

from armpy.cli.pictures.image_layout import image_layout
from armpy.cli.pictures.labels import Labels
from armpy.cli.pictures.normalization import RANGE_TOLERANCE, Normalization, held_range
from armpy.errors import ParserError
from armpy.execution import TensorSpec
from armpy.model import Model
from armpy.plugins.hooks.metadata import ModelMetadata, TensorMetadata

_LEAST_OVERLAP = 0.5


class FileMetadata:
    """A model file's metadata, as far as they can be used."""

    def __init__(self, model: Model) -> None:
        self.used: list[str] = []  # settings taken from the file
        self.hints: list[str] = []  # what could not be
        self._metadata = ModelMetadata()
        try:
            self._metadata = model.metadata
        except ParserError as error:
            self.hints.append(f"the file's metadata are left alone: {error}")

    def normalization(self, spec: TensorSpec) -> Normalization | None:
        """Return how pixels become real numbers for an input; None if the file does not say it."""
        said = self._metadata.inputs.get(spec.name)
        if said is None or not said.mean:
            return None
        normalization = Normalization.from_mean(said.mean, said.std)
        text = f"mean {_listed(said.mean)}, std {_listed(said.std)}"
        reason = _why_not(normalization, spec)
        if reason:
            self.hints.append(f"the normalisation in the file ({text}) is left alone: {reason}")
            return None
        if _is_done_by_quantization(normalization, spec):
            self._use(f"pixels normalised by {text}, as the input's quantisation does")
            return None
        self._use(f"pixels normalised by {text}")
        return normalization

    def labels(self, spec: TensorSpec, num_classes: int, *, is_mask: bool) -> Labels | None:
        """Labels of an output of scores, or of classes themselves; None if the file has none."""
        said = self._metadata.outputs.get(spec.name, TensorMetadata())
        if not said.labels or (said.label_kind == "value") != is_mask:
            return None
        labels = Labels(dict(enumerate(said.labels)), f"the labels of output '{spec.name}'")
        if not is_mask and labels.count < num_classes:
            hint = (
                f"the labels in the file are left alone: {labels.count} of them for "
                f"{num_classes} classes"
            )
            if hint not in self.hints:
                self.hints.append(hint)
            return None
        self._use(f"{labels.count} labels of output '{spec.name}'")
        return labels

    def any_labels(self, specs: Iterable[TensorSpec]) -> Labels | None:
        """Labels of the first output that has some, for classes that an output's elements name."""
        for spec in specs:
            said = self._metadata.outputs.get(spec.name, TensorMetadata())
            if said.labels:
                return Labels(dict(enumerate(said.labels)), f"the labels of output '{spec.name}'")
        return None

    def _use(self, text: str) -> None:
        """Store the settings taken from the file, once for any number of pictures."""
        if text not in self.used:
            self.used.append(text)


def _is_done_by_quantization(normalization: Normalization, spec: TensorSpec) -> bool:
    """Return whether stored elements equal pixels, apart from rounding by quantisation.

    With a scale of 1/128 and a zero point of 128, (pixel - 127.5) / 127.5 is stored as 1.004 times
    the pixel: further from the training data than the pixel.
    """
    low, high = normalization.real_range
    return (
        spec.data_type.size_bytes == 1
        and spec.quantization is not None
        and len(set(zip(normalization.factors, normalization.offsets, strict=True))) == 1
        and all(
            abs(said - held) <= RANGE_TOLERANCE * (high - low)
            for said, held in zip((low, high), held_range(spec.info), strict=True)
        )
    )


def _why_not(normalization: Normalization, spec: TensorSpec) -> str:
    """Why a normalisation does not go with an input; empty if it does.

    Many files of quantised models repeat the normalisation of the float model, or say that of
    pixels that are given as they are. The range of their quantisation distinguishes the two.
    """
    channels = image_layout(spec.name, spec.info).channels
    if len(normalization.factors) not in (1, channels):
        return f"the input has {channels} channels"
    if spec.data_type.is_float:
        return ""
    if spec.quantization is None:
        return "the input takes integers that are not quantised"
    low, high = normalization.real_range
    own_low, own_high = held_range(spec.info)
    shared = min(high, own_high) - max(low, own_low)
    if shared < _LEAST_OVERLAP * (max(high, own_high) - min(low, own_low)):
        return f"the input holds real numbers from {own_low:.3g} to {own_high:.3g}"
    return ""


def _listed(numbers: tuple[float, ...]) -> str:
    """Numbers as the command's options take them."""
    return ",".join(f"{number:g}" for number in numbers)
