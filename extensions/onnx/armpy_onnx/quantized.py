"""Quantised tensors of ONNX: stored integers, with scales and zero points beside them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

import numpy as np

from armpy.graph import Value
from armpy.ops.activations import FusedActivation
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary
from armpy.ops.movement import BroadcastTo
from armpy.ops.operation import Array
from armpy.ops.quantizing import Cast
from armpy.ops.reshaping import Reshape
from armpy.ops.slicing import Slice
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_onnx.node import Node

__all__ = [
    "BYTES",
    "QUANTIZED",
    "as_integers",
    "as_quantized",
    "binary",
    "check_bytes",
    "fused_activation",
    "meets_halves",
    "output_of_bytes",
    "quantization_of",
    "quantized_bias",
    "quantized_weights",
    "real_elements",
    "spread",
    "tensor_quantization",
    "transposed_weights",
    "unpacked",
]

QUANTIZED: Mapping[DataType, DataType] = MappingProxyType(
    {
        DataType.UNSIGNED8: DataType.QASYMM_U8,
        DataType.SIGNED8: DataType.QASYMM_S8,
        DataType.UNSIGNED16: DataType.QASYMM_U16,
        DataType.SIGNED16: DataType.QSYMM_S16,
    }
)
"""Quantised types of integers that stand for real numbers."""

BYTES = (DataType.UNSIGNED8, DataType.SIGNED8)

_PLAIN = {
    **{quantized: plain for plain, quantized in QUANTIZED.items()},
    DataType.QSYMM_S8: DataType.SIGNED8,
}

_BEYOND_INT64 = 2.0**63

_MOST_STEPS = 256
"""Number of steps that a byte holds."""

_LEAST_SHARE = 1 / 32
"""Of ratios that halves are met with where the scales are such that they are."""


def quantization_of(
    node: Node, scale: int, zero_point: int | None, rank: int, axis: int = 0
) -> Quantization | None:
    """Return how integers stand for real numbers, if scale and zero point are constant.

    Parameters
    ----------
    scale, zero_point : int
        Numbers of the inputs; a zero point that is left out is 0.
    rank : int
        Rank of the quantised tensor.
    axis : int
        Along which several scales run.

    Returns
    -------
    Quantization or None
        The quantisation; None where it is not known, in blocks, or none that armpy's operations
        compute with: zero points of 16-bit integers with a sign, scales of 0.
    """
    scales = real_elements(node, scale)
    points = None if zero_point is None else node.input(zero_point)
    if scales is None or (points is not None and points.data is None):
        return None
    given = np.zeros(1) if zero_point is None or points is None else node.numbers(zero_point)
    if not np.all(np.abs(given.astype(np.float64)) < _BEYOND_INT64):
        return None
    numbers = given.astype(np.int64).reshape(-1)
    if points is not None and points.info.data_type is DataType.SIGNED16 and numbers.any():
        return None
    if scales.ndim > 1 or not np.all((scales > 0) & np.isfinite(scales)) or not scales.size:
        return None
    if scales.size == 1 and numbers.size == 1:
        return Quantization.per_tensor(float(scales.reshape(())), int(numbers[0]))
    if numbers.size not in (1, scales.size):
        raise node.error(
            "scale and zero point are of different shapes",
            expected=f"{scales.size} zero points",
            actual=numbers.size,
        )
    points_each = tuple(np.broadcast_to(numbers, scales.shape).tolist())
    return Quantization(tuple(scales.astype(float).tolist()), points_each, node.axis(axis, rank))


def real_elements(node: Node, index: int) -> Array | None:
    """Elements of a floating-point input that is constant, in float32."""
    value = node.input(index)
    if value is None or value.data is None:
        return None
    # Doubles beyond float32 are infinite scales, which the callers handle.
    return node.numbers(index).astype(np.float32)


def unpacked(packed: Array, bits: int) -> Array:
    """Numbers of few bits, rows of bytes (rows, n), one per byte: (rows, n * 8 / bits)."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[..., None] >> shifts) & ((1 << bits) - 1)).reshape(len(packed), -1)


def tensor_quantization(node: Node, scale: int, zero_point: int) -> Quantization:
    """The one scale and zero point of a tensor.

    Raises
    ------
    LayerValidationError
        If there are several, or they are not constants, or a scale is not positive.
    """
    quantization = quantization_of(node, scale, zero_point, 0)
    if quantization is None or quantization.axis is not None:
        raise node.error(
            f"the scale, input {scale}, is not one positive number",
            expected="a constant with one element above 0",
        )
    return quantization


def quantized_bias(node: Node, index: int, scale: float, weights: Quantization) -> Value | None:
    """A bias as int32 whose steps are those of the sums that it is added to.

    Parameters
    ----------
    index : int
        Number of the input, which is constant: int32 in these steps already, or floats.
    scale : float
        Scale of the operand that is multiplied by the weights.
    """
    if not node.has(index):
        return None
    steps = np.float32(scale) * np.array(weights.scales, np.float32)
    data = node.array(index).reshape(-1)
    if node.type(index) is not DataType.SIGNED32:
        real = real_elements(node, index)
        assert real is not None
        limits = np.iinfo(np.int32)
        wide = np.nan_to_num(np.rint(real.reshape(-1).astype(np.float64) / steps))
        data = np.clip(wide, limits.min, limits.max).astype(np.int32)
    axis = None if weights.axis is None else 0
    of_sums = Quantization(tuple(steps.tolist()), (0,) * len(steps), axis)
    return node.constant(data, DataType.SIGNED32, of_sums)


def fused_activation(node: Node) -> FusedActivation:
    """Return the fused activation of an operation of a folded model."""
    name = node.text("activation", "NONE")
    activation = FusedActivation.__members__.get(name)
    if activation is None:
        raise node.error(
            "the attribute 'activation' has an unknown value",
            expected=", ".join(FusedActivation.__members__),
            actual=name,
        )
    return activation


def meets_halves(ratios: Array) -> bool:
    """Return whether whole numbers times some ratios often lie halfway between two others.

    Parameters
    ----------
    ratios : ndarray, float64
        Scales of inputs over the output's, all of them above 0.

    Notes
    -----
    ONNX rounds halves to even, layers on quantised tensors away from zero. Ratios that float32
    cannot tell from fractions of few digits count: those of scales such as 0.1 and 0.2. Of many
    ratios, few look like that by chance.
    """
    ratios, denominators = ratios.reshape(-1), np.arange(2, 2 * _MOST_STEPS, 2)[:, None]
    steps = ratios * denominators
    whole = np.rint(steps)
    is_fraction = (whole % 2 == 1) & (abs(steps - whole) <= whole * 2.0**-22)
    mantissas, _ = np.frexp(ratios)
    is_binary = (mantissas * 2 * _MOST_STEPS % 1 == 0) & (ratios % 1 != 0)
    return bool((is_fraction.any(0) | is_binary).mean() >= _LEAST_SHARE)


def check_bytes(node: Node, *indexes: int) -> None:
    """Check that inputs are int8 or uint8."""
    for index in indexes:
        if node.type(index) not in BYTES:
            raise node.error(
                f"input {index} has the wrong type",
                expected=" or ".join(data_type.name for data_type in BYTES),
                actual=node.type(index).name,
            )


def output_of_bytes(node: Node, scale: int, like: DataType) -> TensorInfo:
    """Info of an output of bytes: its scale is an input, and the next input is the zero point.

    Raises
    ------
    LayerValidationError
        If the scale cannot be used, or the zero point, or else the type `like`, is not a byte.
    """
    kind = node.type(scale + 1) if node.has(scale + 1) else like
    if kind not in BYTES:
        raise node.error(
            "the output has the wrong type",
            expected=" or ".join(data_type.name for data_type in BYTES),
            actual=kind.name,
        )
    return TensorInfo(None, QUANTIZED[kind], tensor_quantization(node, scale, scale + 1))


def as_quantized(node: Node, value: Value, quantization: Quantization) -> Value:
    """Integers as the real numbers that they stand for; nothing is computed."""
    data_type = QUANTIZED.get(value.info.data_type)
    if data_type is None:
        raise node.error(
            "a tensor with a scale is not of integers",
            expected=", ".join(data_type.name for data_type in QUANTIZED),
            actual=value.info.data_type.name,
        )
    if value.data is not None:
        return node.constant(value.data, data_type, quantization)
    return node.layer(Cast(), value, output=TensorInfo(None, data_type, quantization))


def quantized_weights(
    node: Node, data: Array, quantization: Quantization, input_type: DataType
) -> Value:
    """Constant bytes as weights, for which kernels want a sign where the input has one.

    Parameters
    ----------
    data : ndarray, int8 or uint8
    quantization : Quantization
        Quantisation of `data`; several scales have no zero points.
    input_type : DataType
        Type of the operand that is multiplied by the weights.
    """
    points = quantization.zero_points
    if data.dtype == np.uint8 and (input_type is DataType.SIGNED8 or quantization.axis is not None):
        data = (data.astype(np.int16) - 128).astype(np.int8)
        points = tuple(point - 128 for point in points)
    kind = DataType.QASYMM_U8
    if data.dtype == np.int8:
        kind = DataType.QASYMM_S8 if any(points) else DataType.QSYMM_S8
    return node.constant(data, kind, Quantization(quantization.scales, points, quantization.axis))


def transposed_weights(
    node: Node, value: Value, quantization: Quantization, input_type: DataType
) -> Value:
    """A constant matrix (depth, units) as weights (units, depth)."""
    assert value.data is not None
    axis = None if quantization.axis is None else 0
    turned = Quantization(quantization.scales, quantization.zero_points, axis)
    return quantized_weights(node, np.ascontiguousarray(value.data.T), turned, input_type)


def as_integers(node: Node, value: Value) -> Value:
    """Quantised elements as the integers that are stored; nothing is computed."""
    return node.cast(value, _PLAIN[value.info.data_type])


def binary(node: Node, operation: BinaryOperation, lhs: Value, rhs: Value) -> Value:
    """Two tensors combined element by element."""
    return node.layer(ElementwiseBinary(operation), lhs, rhs)


def spread(node: Node, value: Value, shape: tuple[int, ...], axis: int, block_size: int) -> Value:
    """Scales or zero points as a tensor that broadcasts to the tensor they belong to.

    Parameters
    ----------
    value : Value
        One element, one per index along the axis, or one per block of the tensor.
    shape : tuple of int
        Shape of the tensor.
    axis, block_size : int
        A size of 0 says that there are no blocks.

    Raises
    ------
    LayerValidationError
        If their number does not fit the tensor.
    """
    value_shape = value.info.known_shape
    if prod(value_shape) == 1:
        return node.layer(Reshape(()), value) if value_shape else value
    axis = node.axis(axis, len(shape))
    if not block_size:
        if value_shape != (shape[axis],):
            raise node.error(
                "scales or zero points do not have one element per index of the axis",
                expected=f"1 or {shape[axis]} elements",
                actual=value_shape,
            )
        return node.layer(Reshape((-1, *(1,) * (len(shape) - axis - 1))), value)
    blocks = -(-shape[axis] // block_size)
    if block_size < 0 or value_shape != (*shape[:axis], blocks, *shape[axis + 1 :]):
        raise node.error(
            "scales or zero points do not have one element per block",
            expected=f"shape {(*shape[:axis], blocks, *shape[axis + 1 :])}",
            actual=value_shape,
        )
    before, after = value_shape[: axis + 1], value_shape[axis + 1 :]
    apart = node.layer(Reshape((*before, 1, *after)), value)
    repeated = node.layer(BroadcastTo((*before, block_size, *after)), apart)
    joined = node.layer(Reshape((*value_shape[:axis], blocks * block_size, *after)), repeated)
    return node.layer(Slice((0,) * len(shape), shape), joined)
