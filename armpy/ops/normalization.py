"""Normalisations over neighbours and over images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.elementwise import FLOAT_TYPES, QUANTIZED_TYPES
from armpy.ops.operation import Operand, Operation, TypeRule, require, same
from armpy.ops.shapes import MAX_STEP, broadcast_shapes, distinct_axes
from armpy.tensor import Shape, TensorInfo, format_shape
from armpy.types import DataLayout, DataType

__all__ = [
    "InstanceNormalization",
    "LayerNormalization",
    "Normalization",
    "RmsNormalization",
]

_REALS = (*FLOAT_TYPES, DataType.FLOAT64)


@dataclass(frozen=True, slots=True)
class Normalization(Operation):
    """Divide by a power of the sum of squares of the neighbours.

    Notes
    -----
    input (...); output as input: ``x (k + alpha * sum of squares)**-beta``. Neighbours beyond the
    edge do not count. Computed in float32, other types rounded once, quantised ones saturated.

    References
    ----------
    Arm NN Normalization with ``norm_size = 2 radius + 1``, ACROSS for the channel axis and
    WITHIN for the two spatial ones; NNAPI and TFLite LOCAL_RESPONSE_NORMALIZATION, whose bias
    is `k`.
    """

    radius: int = 5
    """Largest distance of neighbours along each axis."""
    alpha: float = 1.0
    """Factor of the sum, not divided by the number of neighbours."""
    beta: float = 0.5
    """Exponent."""
    k: float = 1.0
    """Added to the sum."""
    axes: tuple[int, ...] = (-1,)
    """Axes along which the neighbours lie."""

    type_rules: ClassVar[tuple[TypeRule, ...]] = same(*FLOAT_TYPES, *QUANTIZED_TYPES)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        shape = inputs[0].shape or ()
        distinct_axes(self.axes, len(shape))
        require(
            self.radius >= 0, "the radius is negative", expected="0 or more", actual=self.radius
        )
        require(
            self.radius <= MAX_STEP,
            "the radius is too large",
            expected=f"at most {MAX_STEP}",
            actual=self.radius,
            fix="Give a smaller radius",
        )
        return (shape,)


@dataclass(frozen=True, slots=True)
class InstanceNormalization(Operation):
    """Bring each channel of each image to one mean and variance.

    Notes
    -----
    input (n, h, w, c); output as input: ``gamma (x - mean) / sqrt(variance + eps) + beta`` with
    mean and population variance over height and width, in float32; float16 is rounded once.

    References
    ----------
    Arm NN InstanceNormalization; NNAPI INSTANCE_NORMALIZATION.
    """

    gamma: float = 1.0
    """Factor of the normalised elements."""
    beta: float = 0.0
    """Added to them."""
    eps: float = 1e-12
    """Added to the variance."""
    data_layout: DataLayout = DataLayout.NHWC

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", ranks=(4,)),)
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(*FLOAT_TYPES)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return (inputs[0].shape,)


@dataclass(frozen=True, slots=True)
class LayerNormalization(Operation):
    """Normalise over axes: bring the elements along them to mean 0 and variance 1.

    Notes
    -----
    input (...); gamma and beta broadcast to it; output as input: ``(x - mean) / sqrt(variance +
    eps) * gamma + beta`` with the population variance. Omitted gamma is 1, beta 0. Computed in
    float64, rounded once; sums beyond float32 are infinite except for FLOAT64. Group normalisation:
    (n, h * w, g, c / g) with axes (1, 3).

    References
    ----------
    ONNX LayerNormalization; Ba et al., "Layer Normalization", 2016; Wu and He, "Group
    Normalization", 2018.
    """

    axes: tuple[int, ...] = (-1,)
    """Axes of one mean and variance."""
    eps: float = 1e-5
    """Added to the variance."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("gamma", optional=True),
        Operand("beta", optional=True),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(*_REALS)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return _normalized_shape(self.axes, inputs)


@dataclass(frozen=True, slots=True)
class RmsNormalization(Operation):
    """Divide by the root mean square (RMS) of the elements along axes.

    Notes
    -----
    input (...); gamma broadcasts to it; output as input: ``x / sqrt(mean of squares + eps) *
    gamma``. Omitted gamma is 1. Computed in float64, rounded once; a sum beyond float32 is infinite
    except for FLOAT64, which makes the output 0.

    References
    ----------
    ONNX RMSNormalization; Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
    """

    axes: tuple[int, ...] = (-1,)
    """Axes that one mean is of."""
    eps: float = 1e-5
    """Added to the mean of the squares."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("gamma", optional=True),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(*_REALS)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return _normalized_shape(self.axes, inputs)


def _normalized_shape(
    axes: tuple[int, ...], inputs: Sequence[TensorInfo | None]
) -> tuple[Shape | None, ...]:
    """The first input's shape, after checks that the axes are there and the others fit it."""
    (shape, *others) = (info.shape for info in inputs if info is not None)
    distinct_axes(axes, len(shape or ()))
    for other in others:
        result = broadcast_shapes(shape, other) or ()
        fits = len(result) == len(shape or ()) and all(
            dim is None or size is None or dim == size
            for dim, size in zip(result, shape or (), strict=True)
        )
        require(
            fits,
            "a factor or addend does not broadcast to the input",
            expected=format_shape(shape),
            actual=other,
        )
    return (shape,)
