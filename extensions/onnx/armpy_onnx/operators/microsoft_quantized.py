"""Layers of quantised tensors that ONNX Runtime's tools write."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy.graph import Value
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.joining import Concat
from armpy.ops.quantizing import Dequantize, Quantize
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_onnx.blocks import binary, gathered, reshaped, selected, taken, transposed
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable
from armpy_onnx.operators import operator_of
from armpy_onnx.operators.integer_products import integer_product, scaled_sums
from armpy_onnx.operators.microsoft_attention import attended
from armpy_onnx.operators.microsoft_norms import embedded, mask_lengths
from armpy_onnx.quantized import (
    as_integers,
    as_quantized,
    check_bytes,
    output_of_bytes,
    spread,
    tensor_quantization,
)

_FLOAT = TensorInfo(None, DataType.FLOAT32)


def _real(node: Node, value: Value, scale: int, zero_point: int) -> Value:
    """The real numbers that bytes stand for; scale and zero point are constant inputs."""
    stored = as_quantized(node, value, tensor_quantization(node, scale, zero_point))
    return node.layer(Dequantize(), stored, output=_FLOAT)


def _attention(node: Node) -> Sequence[Value]:
    """QAttention: (x, weights, bias, scale, scales, mask, point, points, past)."""
    check_bytes(node, 0, 1)
    if node.rank(0) != 3 or node.rank(1) != 2:
        raise node.error(
            "the operands have the wrong ranks",
            expected="3 and 2",
            actual=f"{node.shape(0)} and {node.shape(1)}",
        )
    sums = integer_product(node, node.value(0), node.value(1), node.input(6), node.input(7))
    packed = scaled_sums(node, sums, node.value(3), node.value(4), node.input(2))
    return attended(node, packed, node.input(5), node.input(8))


def _embed_layer_normalization(node: Node) -> Sequence[Value]:
    """QEmbedLayerNormalization: ids, tables, gamma, beta, mask, then scales and zero points."""
    shape = node.shape(0)
    if len(shape) != 2:
        raise node.error("the input has the wrong rank", expected="2", actual=shape)
    check_bytes(node, 2, 3, 5, 6)
    words = _real(node, gathered(node, node.value(2), node.value(0)), 8, 13)
    positions = _real(node, _first_rows(node, node.value(3), shape[1]), 9, 14)
    segments = None
    if node.has(1) and node.has(4):
        check_bytes(node, 4)
        segments = _real(node, gathered(node, node.value(4), node.value(1)), 10, 15)
    gamma, beta = _real(node, node.value(5), 11, 16), _real(node, node.value(6), 12, 17)
    normalized, _ = embedded(node, words, positions, segments, gamma, beta)
    return normalized, mask_lengths(node, shape)


def _first_rows(node: Node, table: Value, count: int) -> Value:
    shape = table.info.known_shape
    if len(shape) != 2 or count > shape[0]:
        raise node.error("there are not enough positions", expected=f"{count} rows", actual=shape)
    return reshaped(node, taken(node, table, 0, 0, count), (1, count, shape[1]))


def _where(node: Node) -> Value:
    """QLinearWhere: (condition, x, scale, point, y, scale, point, scale, point)."""
    check_bytes(node, 1, 4)
    x, y = _real(node, node.value(1), 2, 3), _real(node, node.value(4), 5, 6)
    output = output_of_bytes(node, 7, node.type(1))
    chosen = selected(node, node.value(0), x, y)
    return as_integers(node, node.layer(Quantize(rounds_to_even=True), chosen, output=output))


def _dynamic_lstm(node: Node) -> Sequence[Value]:
    """DynamicQuantizeLSTM: an LSTM whose weights are bytes (directions, depth, 4 * units).

    Notes
    -----
    ONNX Runtime rounds the factors of the weights to 8 bits; here they stay unchanged.
    """
    weights = [_directions(node, index, scale, scale + 1) for index, scale in ((1, 8), (2, 10))]
    operator = operator_of("LSTM")
    assert operator is not None  # it is one of ONNX's own
    inner = NodeData("LSTM", node.data.name, 7, node.data.attributes, 3, (True,) * 3)
    inputs = [node.value(0), *weights, *(node.input(index) for index in range(3, 8))]
    converted = operator.convert(node.of(inner, inputs))
    return [converted] if isinstance(converted, Value) else converted


def _directions(node: Node, index: int, scale: int, zero_point: int) -> Value:
    """Weights (directions, 4 * units, depth) in floats; a constant if all operands are."""
    check_bytes(node, index)
    if node.rank(index) != 3:
        raise node.error(f"input {index} has the wrong rank", expected="3", actual=node.rank(index))
    count, _, rows = node.shape(index)
    places = [at for at in (zero_point, scale) if node.has(at)]
    for at in places:
        shape = node.shape(at)
        if shape not in ((count,), (count, rows)):
            raise node.error(
                f"input {at} has the wrong shape",
                expected=f"({count}) or ({count}, {rows})",
                actual=shape,
            )
    stored = [node.value(at).data for at in (index, *places)]
    known = [array.astype(np.float32) for array in stored if array is not None]
    # Backends take constant weights only, so they are not left to layers that compute them.
    if len(known) == len(stored):
        real = known[0]
        for at, array in zip(places, known[1:], strict=True):
            per_direction = array.reshape(count, 1, array.size // count)
            real = real - per_direction if at == zero_point else real * per_direction
        return node.constant(np.ascontiguousarray(real.transpose(0, 2, 1)), DataType.FLOAT32)
    computed = node.cast(node.value(index), DataType.FLOAT32)
    for at in places:
        operation = BinaryOperation.SUB if at == zero_point else BinaryOperation.MUL
        each_shape = (count, 1, math.prod(node.shape(at)) // count)
        factors = node.cast(reshaped(node, node.value(at), each_shape), DataType.FLOAT32)
        computed = binary(node, operation, computed, factors)
    return transposed(node, computed, (0, 2, 1))


# Tables of embeddings


def _gather_blocks(node: Node) -> Value:
    """GatherBlockQuantized: (data, indices, scales, zero points), the blocks along one axis.

    Notes
    -----
    The gathered elements become floats, not the table. Bytes hold 8 bits, or two numbers of 4, the
    first one in the lower half.
    """
    rank, kind = node.rank(0), node.type(0)
    axis = node.axis(node.integer("gather_axis", 0), rank)
    along = node.axis(node.integer("quantize_axis", 1), rank)
    bits, block = node.integer("bits", 4), node.integer("block_size", 128)
    is_packed = kind is DataType.UNSIGNED8 and bits == 4
    is_last = along == rank - 1
    if bits not in (4, 8):
        raise node.error("the attribute 'bits' is not supported", expected="4 or 8", actual=bits)
    if block < 1:
        raise node.error("the attribute 'block_size' is not positive", actual=block)
    if axis == along or (is_packed and not is_last):
        raise node.error(
            "the attribute 'quantize_axis' is not supported",
            expected="another axis than gather_axis, and the last one for packed bytes",
            actual=along,
        )
    parts = [
        None if value is None else gathered(node, value, node.value(1), axis)
        for value in (node.value(0), node.value(2), node.input(3))
    ]
    data, scales, points = parts
    assert data is not None
    assert scales is not None
    if is_packed:
        data = _halves(node, data)
        points = None if points is None else _first_columns(node, _halves(node, points), scales)
    shape = data.info.known_shape
    at = along if along < axis else along + len(shape) - rank
    real = node.cast(data, DataType.FLOAT32)
    if points is not None:
        floats = node.cast(points, DataType.FLOAT32)
        real = binary(node, BinaryOperation.SUB, real, spread(node, floats, shape, at, block))
    elif kind is DataType.UNSIGNED8:
        real = binary(node, BinaryOperation.SUB, real, float(1 << (bits - 1)))
    factors = spread(node, node.cast(scales, DataType.FLOAT32), shape, at, block)
    return node.cast(binary(node, BinaryOperation.MUL, real, factors), scales.info.data_type)


def _halves(node: Node, packed: Value) -> Value:
    """Numbers of 4 bits of bytes, twice as many along the last axis."""
    wide = node.cast(packed, DataType.SIGNED32)
    low = binary(node, BinaryOperation.FLOOR_MOD, wide, 16)
    high = binary(node, BinaryOperation.FLOOR_DIV, wide, 16)
    shape = packed.info.known_shape
    pairs = [reshaped(node, part, (*shape, 1)) for part in (low, high)]
    both = node.layer(Concat(len(shape)), *pairs)
    return reshaped(node, both, (*shape[:-1], 2 * shape[-1]))


def _first_columns(node: Node, value: Value, like: Value) -> Value:
    """The first columns, as many as another value has."""
    rank, count = len(value.info.known_shape), like.info.known_shape[-1]
    return taken(node, value, rank - 1, 0, min(count, value.info.known_shape[-1]))


def _type_of_scale(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    return types[2] or DataType.FLOAT32


OPERATORS: OperatorTable = {
    "com.microsoft.DynamicQuantizeLSTM": Operator(_dynamic_lstm),
    "com.microsoft.GatherBlockQuantized": Operator(_gather_blocks, types=(_type_of_scale,)),
    "com.microsoft.QAttention": Operator(_attention, types=(3,)),
    "com.microsoft.QEmbedLayerNormalization": Operator(
        _embed_layer_normalization, tuple(range(8, 18)), (8, DataType.SIGNED32)
    ),
    "com.microsoft.QLinearWhere": Operator(_where, (2, 3, 5, 6, 7, 8), (1,)),
}
