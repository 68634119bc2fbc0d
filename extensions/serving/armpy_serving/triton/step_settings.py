"""Settings of the steps of an ensemble, from the machine that writes them to the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.execution import TensorSpec
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_serving.contents import Array


@dataclass(frozen=True, slots=True)
class StepSettings:
    """Settings of a step."""

    tensors: tuple[TensorSpec, ...]
    """The model's tensors: inputs for the step before it, outputs for the step after it."""
    # Of pixels; empty if real numbers come.
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    top: int = 0  # how many of the best classes are answered; 0 for all outputs as they are

    def document(self) -> dict[str, object]:
        """The same for JSON."""
        tensors = [_document(spec) for spec in self.tensors]
        return {"tensors": tensors, "mean": self.mean, "std": self.std, "top": self.top}

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> StepSettings:  # Any: JSON
        """Settings of a document."""
        tensors = tuple(map(_spec, found["tensors"]))
        return cls(tensors, tuple(found["mean"]), tuple(found["std"]), found["top"])

    def prepared(self, spec: TensorSpec, given: Array) -> Array:
        """Convert a client's array for an input to the model's stored elements."""
        real = given
        if self.mean and given.dtype == np.uint8 and is_real(spec):
            std = np.array(self.std or (1.0,), np.float32)
            real = (given.astype(np.float32) - np.array(self.mean, np.float32)) / std
        return spec.quantize(real) if spec.quantization is not None else real


def is_real(spec: TensorSpec) -> bool:
    """Return whether a tensor stands for real numbers."""
    return spec.quantization is not None or spec.data_type is DataType.FLOAT32


def best_of(scores: Array, top: int) -> tuple[Array, Array]:
    """The best scores of each row, and their classes, best first.

    Parameters
    ----------
    scores : ndarray, shape (N, C)

    Returns
    -------
    scores : ndarray, dtype of `scores`, shape (N, top)
    classes : ndarray, int32, shape (N, top)
        Numbers of classes; of equal scores, the lower class comes first.
    """
    classes = np.argsort(-scores.astype(np.float64), axis=1, kind="stable")[:, :top]
    return np.take_along_axis(scores, classes, 1), classes.astype(np.int32)


def _document(spec: TensorSpec) -> dict[str, object]:
    """A tensor's name, type and quantisation."""
    document: dict[str, object] = {"name": spec.name, "data_type": spec.data_type.name}
    quantization = spec.quantization
    if quantization is not None:
        scales: Sequence[float] = [float(scale) for scale in quantization.scales]
        document |= {"scales": scales, "zero_points": [int(z) for z in quantization.zero_points]}
        document["axis"] = quantization.axis
    return document


def _spec(document: Mapping[str, Any]) -> TensorSpec:
    quantization = None
    if "scales" in document:
        scales, points = tuple(document["scales"]), tuple(document["zero_points"])
        quantization = Quantization(scales, points, document["axis"])
    info = TensorInfo(None, DataType[document["data_type"]], quantization)
    return TensorSpec(document["name"], info)
