"""Operators that quantise and dequantise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.graph import Value
from armpy.ops.activations import FusedActivation
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseUnary,
    Select,
    UnaryOperation,
)
from armpy.ops.operation import Array
from armpy.ops.quantizing import Cast, Dequantize, Quantize
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_onnx.element_types import data_type_of
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable
from armpy_onnx.quantized import (
    QUANTIZED,
    as_integers,
    as_quantized,
    binary,
    quantization_of,
    spread,
)


def _quantized_type(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    if len(types) > 2 and types[2] is not None:
        return types[2]
    asked = data.attribute("output_dtype", 0)
    return data_type_of(asked, data.label) if asked else DataType.UNSIGNED8


def _real_type(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    """Data type that DequantizeLinear writes."""
    asked = data.attribute("output_dtype", 0)
    if asked:
        return data_type_of(asked, data.label)
    return types[1] or DataType.FLOAT32


def _types(node: Node) -> list[DataType | None]:
    """Data types of a node's inputs."""
    return [None if value is None else value.info.data_type for value in node.inputs]


def _quantize_linear(node: Node) -> Value:
    value, rank = node.value(0), node.rank(0)
    target = _quantized_type(node.data, _types(node))
    axis, block_size = node.integer("axis", 1), node.integer("block_size", 0)
    quantization = None
    if target in QUANTIZED and not block_size:
        quantization = quantization_of(node, 1, 2, rank, axis)
    if quantization is None:
        return _quantize_in_steps(node, target, axis, block_size)
    return quantized(node, value, target, quantization)


def quantized(node: Node, value: Value, target: DataType, quantization: Quantization) -> Value:
    """Real numbers as integers of a type, with halves to even."""
    if value.info.data_type is not DataType.FLOAT16:
        value = node.cast(value, DataType.FLOAT32)
    info = TensorInfo(None, QUANTIZED[target], quantization)
    return as_integers(node, node.layer(Quantize(rounds_to_even=True), value, output=info))


def requantized(
    node: Node, sums: Value, factors: Array, activation: FusedActivation, output: TensorInfo
) -> Value:
    """Integers of an output of sums, times real factors, rounded once with halves to even.

    Parameters
    ----------
    factors : ndarray, float32, shape broadcastable to `sums`
        Steps of the output per step of the sums.
    """
    assert output.quantization is not None
    steps = binary(
        node, BinaryOperation.MUL, node.cast(sums, DataType.FLOAT32), node.constant(factors)
    )
    for limit, bound in zip(_LIMITS, activation.bounds, strict=True):
        if bound is not None:
            of_steps = np.float32(bound) / np.float32(output.quantization.scale)
            steps = binary(node, limit, steps, node.constant(of_steps))
    in_steps = Quantization.per_tensor(1.0, output.quantization.zero_point)
    info = TensorInfo(None, output.data_type, in_steps)
    return as_integers(node, node.layer(Quantize(rounds_to_even=True), steps, output=info))


_LIMITS = BinaryOperation.MAXIMUM, BinaryOperation.MINIMUM
"""What keeps numbers above a lower bound, and below an upper one."""


def _quantize_in_steps(node: Node, target: DataType, axis: int, block_size: int) -> Value:
    """Quantise with scales known at run time only, or that no quantised type allows."""
    value, shape = node.cast(node.value(0), DataType.FLOAT32), node.shape(0)
    scale = spread(node, node.value(1), shape, axis, block_size)
    steps = binary(node, BinaryOperation.DIV, value, node.cast(scale, DataType.FLOAT32))
    if target.is_float:
        output = TensorInfo(None, target)
        return node.layer(Cast(saturate=node.flag("saturate", True)), steps, output=output)
    zero_point = node.input(2)
    if zero_point is not None:
        zero_point = spread(node, zero_point, shape, axis, block_size)
    return rounded(node, steps, zero_point, target)


def rounded(node: Node, steps: Value, zero_point: Value | None, target: DataType) -> Value:
    """Real steps as integers of a type: rounded, halves to even, with the zero point, saturated."""
    if target.is_float or target.is_string:
        raise node.error("the output is not an integer", expected="integers", actual=target.name)
    steps = node.layer(ElementwiseUnary(UnaryOperation.ROUND), steps)
    if zero_point is not None:
        moved = node.cast(zero_point, DataType.FLOAT32)
        steps = binary(node, BinaryOperation.ADD, steps, moved)
    lowest, highest = target.integer_range
    steps = binary(node, BinaryOperation.MAXIMUM, steps, node.like(steps, lowest))
    steps = binary(node, BinaryOperation.MINIMUM, steps, node.like(steps, highest))
    return node.cast(steps, target)


def _dequantize_linear(node: Node) -> Value:
    value, shape = node.value(0), node.shape(0)
    target = _real_type(node.data, _types(node))
    axis, block_size = node.integer("axis", 1), node.integer("block_size", 0)
    source = value.info.data_type
    if source in QUANTIZED and not block_size:
        quantization = quantization_of(node, 1, 2, len(shape), axis)
        if quantization is not None:
            float_type = target if target is DataType.FLOAT16 else DataType.FLOAT32
            stored = as_quantized(node, value, quantization)
            real = node.layer(Dequantize(), stored, output=TensorInfo(None, float_type))
            return node.cast(real, target)
    real = node.cast(value, DataType.FLOAT32)
    zero_point = node.input(2)
    if zero_point is not None and not source.is_float:
        moved = node.cast(spread(node, zero_point, shape, axis, block_size), DataType.FLOAT32)
        real = binary(node, BinaryOperation.SUB, real, moved)
    scale = node.cast(spread(node, node.value(1), shape, axis, block_size), DataType.FLOAT32)
    return node.cast(binary(node, BinaryOperation.MUL, real, scale), target)


def _dynamic_quantize_linear(node: Node) -> Sequence[Value]:
    return dynamically_quantized(node, node.value(0))


def dynamically_quantized(node: Node, value: Value) -> tuple[Value, Value, Value]:
    """Real numbers as bytes by their range, the scale, and the zero point."""
    zero = node.constant(np.float32(0))
    low, high = (
        binary(node, limit, node.layer(Reduce(reduction), value), zero)
        for limit, reduction in (
            (BinaryOperation.MINIMUM, ReduceOperation.MIN),
            (BinaryOperation.MAXIMUM, ReduceOperation.MAX),
        )
    )
    width = binary(node, BinaryOperation.SUB, high, low)
    scale = binary(node, BinaryOperation.DIV, width, node.constant(np.float32(255)))
    # Zeros alone have no range; ONNX Runtime gives them the scale 1.
    is_flat = node.layer(Comparison(ComparisonOperation.EQUAL), scale, zero)
    scale = node.layer(Select(), is_flat, node.constant(np.float32(1)), scale)
    below = binary(node, BinaryOperation.DIV, binary(node, BinaryOperation.SUB, zero, low), scale)
    zero_point = rounded(node, below, None, DataType.UNSIGNED8)
    steps = binary(node, BinaryOperation.DIV, value, scale)
    return rounded(node, steps, zero_point, DataType.UNSIGNED8), scale, zero_point


_QUANTIZE = Operator(_quantize_linear, types=(_quantized_type,))
_DEQUANTIZE = Operator(_dequantize_linear, types=(_real_type,))

OPERATORS: OperatorTable = {
    "QuantizeLinear": _QUANTIZE,
    "DequantizeLinear": _DEQUANTIZE,
    "com.microsoft.QuantizeLinear": _QUANTIZE,
    "com.microsoft.DequantizeLinear": _DEQUANTIZE,
    "DynamicQuantizeLinear": Operator(
        _dynamic_quantize_linear, types=(DataType.UNSIGNED8, DataType.FLOAT32, DataType.UNSIGNED8)
    ),
}
