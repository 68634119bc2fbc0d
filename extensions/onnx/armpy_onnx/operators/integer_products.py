"""Operators that multiply matrices of quantised elements."""

from __future__ import annotations

import numpy as np

from armpy.graph import Value
from armpy.ops.dense import BatchMatMul, BlockwiseFullyConnected, FullyConnected
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.operation import Array
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.ops.reshaping import Reshape
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_onnx.blocks import reshaped
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.operators.quantization import dynamically_quantized, rounded
from armpy_onnx.quantized import (
    QUANTIZED,
    as_integers,
    as_quantized,
    binary,
    check_bytes,
    meets_halves,
    quantization_of,
    real_elements,
    transposed_weights,
    unpacked,
)

_SUMS = TensorInfo(None, DataType.SIGNED32)
_ONE = 1.0


def _matrix(node: Node, index: int, is_left: bool) -> Value:
    """An input of bytes as matrices; a vector is a row on the left, a column on the right."""
    value = node.value(index)
    check_bytes(node, index)
    if not node.rank(index):
        raise node.error(f"input {index} has the wrong rank", expected="1 or more", actual=0)
    if node.rank(index) > 1:
        return value
    return node.layer(Reshape((1, -1) if is_left else (-1, 1)), value)


def _without_vectors(node: Node, lhs: int, rhs: int, product: Value) -> Value:
    """A product without the axes that `_matrix` has added."""
    shape = list(product.info.known_shape)
    if node.rank(rhs) == 1:
        del shape[-1]
    if node.rank(lhs) == 1:
        del shape[-1 if node.rank(rhs) == 1 else -2]
    return reshaped(node, product, shape)


def _products(
    node: Node, a: Value, b: Value, of_a: Quantization, of_b: Quantization, output: TensorInfo
) -> Value:
    """Products of matrices of bytes; constant ones on the right are weights."""
    left = as_quantized(node, a, of_a)
    if b.data is not None and b.info.rank == 2:
        weights = transposed_weights(node, b, of_b, a.info.data_type)
        return node.layer(FullyConnected(keep_num_dims=True), left, weights, output=output)
    return node.layer(BatchMatMul(), left, as_quantized(node, b, of_b), output=output)


def _known_point(node: Node, value: Value | None) -> int | None:
    """A zero point that is one number for a whole tensor; None if it is not known, or several."""
    if value is None:
        return 0
    points = () if value.data is None else node.data.whole(value.data, "a zero point")
    return points[0] if len(points) == 1 else None


def _integers_of(node: Node, value: Value, point: int) -> Value:
    """Bytes less a zero point, in int32."""
    wide = node.cast(value, DataType.SIGNED32)
    return binary(node, BinaryOperation.SUB, wide, node.like(wide, point)) if point else wide


def integer_product(
    node: Node, a: Value, b: Value, a_point: Value | None, b_point: Value | None
) -> Value:
    """Sums of products of bytes less their zero points, in int32.

    Parameters
    ----------
    a, b : Value, int8 or uint8, shapes (..., rows, depth) and (..., depth, columns)
    a_point, b_point : Value or None
        One for all, or one per row of `a`, per column of `b`.

    Notes
    -----
    Zero points that are not constant are taken off afterwards: ``(a - p) (b - q)`` is
    ``a b - p sum(b) - sum(a) q + depth p q``.
    """
    known_a, known_b = (_known_point(node, point) for point in (a_point, b_point))
    of_a, of_b = (Quantization.per_tensor(_ONE, known or 0) for known in (known_a, known_b))
    sums = _products(node, a, b, of_a, of_b, _SUMS)
    add_up = ReduceOperation.SUM
    others: list[Value] = []
    if known_a is None and a_point is not None:
        of_rows = _rows(node, node.cast(a_point, DataType.SIGNED32))
        columns = node.layer(Reduce(add_up, (-2,), True), _integers_of(node, b, known_b or 0))
        sums = binary(node, BinaryOperation.SUB, sums, _times(node, of_rows, columns))
        others.append(of_rows)
    if known_b is None and b_point is not None:
        of_columns = node.cast(b_point, DataType.SIGNED32)
        rows = node.layer(Reduce(add_up, (-1,), True), _integers_of(node, a, known_a or 0))
        sums = binary(node, BinaryOperation.SUB, sums, _times(node, rows, of_columns))
        others.append(of_columns)
    if len(others) == 2:
        depth = node.constant(np.int32(a.info.known_shape[-1]))
        both = _times(node, _times(node, others[0], others[1]), depth)
        sums = binary(node, BinaryOperation.ADD, sums, both)
    return sums


def _times(node: Node, lhs: Value, rhs: Value) -> Value:
    """Product element by element."""
    return binary(node, BinaryOperation.MUL, lhs, rhs)


def _mat_mul_integer(node: Node) -> Value:
    a, b = _matrix(node, 0, True), _matrix(node, 1, False)
    product = integer_product(node, a, b, node.input(2), node.input(3))
    return _without_vectors(node, 0, 1, product)


def scaled_sums(
    node: Node, sums: Value, a_scale: Value, b_scale: Value, bias: Value | None = None
) -> Value:
    """Sums of products as real numbers."""
    scale = _times(node, *(node.cast(factor, DataType.FLOAT32) for factor in (a_scale, b_scale)))
    real = _times(node, node.cast(sums, DataType.FLOAT32), scale)
    return real if bias is None else binary(node, BinaryOperation.ADD, real, bias)


def _rows(node: Node, value: Value) -> Value:
    """Scales or zero points of rows, if there are several, as a column."""
    shape = value.info.known_shape
    return node.layer(Reshape((-1, 1)), value) if len(shape) == 1 and shape[0] > 1 else value


def _q_linear_mat_mul(node: Node) -> Value:
    a, b = _matrix(node, 0, True), _matrix(node, 3, False)
    product = _quantized_product(node, a, b)
    if product is None:
        sums = integer_product(node, a, b, node.input(2), node.input(5))
        real = scaled_sums(node, sums, _rows(node, node.value(1)), node.value(4))
        scale = node.cast(_rows(node, node.value(6)), DataType.FLOAT32)
        steps = binary(node, BinaryOperation.DIV, real, scale)
        product = rounded(node, steps, _rows(node, node.value(7)), node.type(7))
    return _without_vectors(node, 0, 3, product)


def _quantized_product(node: Node, a: Value, b: Value) -> Value | None:
    """QLinearMatMul as one layer; None if there is none for these types and scales."""
    rank = b.info.rank or 0
    of_a = quantization_of(node, 1, 2, 2)
    of_b = quantization_of(node, 4, 5, rank, -1)
    of_y = quantization_of(node, 6, 7, 2)
    if of_a is None or of_b is None or of_y is None or node.type(7) is not a.info.data_type:
        return None
    is_weights = b.data is not None and rank == 2
    is_mixed = a.info.data_type is not b.info.data_type
    has_several = of_b.axis is not None and (any(of_b.zero_points) or not is_weights)
    if of_a.axis is not None or of_y.axis is not None or has_several:
        return None
    if is_mixed and not is_weights:
        return None
    factors = np.float64(of_a.scale) * np.array(of_b.scales) / of_y.scale
    if meets_halves(factors):
        return None
    output = TensorInfo(None, QUANTIZED[node.type(7)], of_y)
    return as_integers(node, _products(node, a, b, of_a, of_b, output))


def _to_float(node: Node) -> Value:
    a, b = _matrix(node, 0, True), _matrix(node, 1, False)
    sums = integer_product(node, a, b, node.input(4), node.input(5))
    real = scaled_sums(node, sums, node.value(2), node.value(3), node.input(6))
    return _without_vectors(node, 0, 1, real)


def _dynamic_product(node: Node) -> Value:
    a, a_scale, a_point = dynamically_quantized(node, node.value(0))
    sums = integer_product(node, a, _matrix(node, 1, False), a_point, node.input(3))
    return scaled_sums(node, sums, a_scale, node.value(2), node.input(4))


def _mat_mul_n_bits(node: Node) -> Value:
    """MatMulNBits: weights of few bits in blocks, floats only if blocks are in another order.

    Notes
    -----
    a (..., K); b uint8 (N, blocks, bytes), the first number in the lowest bits; scales
    (N * blocks); zero points as `b`, (N * blocks' bytes), or floats; the middle without them.
    """
    bits, block = node.integer("bits", 4), node.integer("block_size")
    depth, units = node.integer("K"), node.integer("N")
    if bits not in (2, 4, 8):
        raise node.error("the attribute 'bits' is not supported", expected="2, 4, 8", actual=bits)
    if block < 1 or depth < 1 or units < 1:
        raise node.error(
            "a size is not positive",
            expected="attributes block_size, K and N of 1 or more",
            actual=f"{block}, {depth} and {units}",
        )
    blocks, scales = -(-depth // block), real_elements(node, 2)
    packed = node.array(1)
    fits = packed.dtype == np.uint8 and packed.size * 8 == units * blocks * block * bits
    if not fits or scales is None or scales.size != units * blocks:
        raise node.error(
            "the weights or their scales have the wrong type or size",
            expected=f"{units} rows of {blocks} blocks of {block * bits // 8} bytes",
            actual=f"{packed.dtype} {packed.shape}",
        )
    value, terms = (
        None if each is None else node.cast(each, DataType.FLOAT32)
        for each in (node.value(0), node.input(5))
    )
    assert value is not None
    points = _zero_points(node, bits, (units, blocks))
    if not node.has(4) and (points is None or points.dtype == np.uint8):
        # Level 4 allows activations of 8 bits, which ONNX Runtime then has as well.
        quantizes_input = node.integer("accuracy_level", 0) == 4 and bits == 4
        operation = BlockwiseFullyConnected(bits, quantizes_input)
        product = node.layer(
            operation,
            value,
            node.constant(packed.reshape(units, blocks, -1), DataType.UNSIGNED8),
            node.constant(scales.reshape(units, blocks), DataType.FLOAT32),
            None if points is None else node.constant(points, DataType.UNSIGNED8),
            terms,
        )
        return node.cast(product, node.type(0))
    numbers = unpacked(packed.reshape(units, -1), bits)[:, :depth]
    middle = np.full((units, blocks), 1 << (bits - 1), np.float32)
    of_blocks = _blocks_of(node, depth, block, blocks)
    real = numbers - (middle if points is None else points.astype(np.float32))[:, of_blocks]
    real *= scales.reshape(units, blocks)[:, of_blocks]
    weights = node.constant(real.astype(np.float32))
    product = node.layer(FullyConnected(keep_num_dims=True), value, weights, terms)
    return node.cast(product, node.type(0))


def _zero_points(node: Node, bits: int, shape: tuple[int, int]) -> Array | None:
    """Zero points (units, blocks), uint8 or floats; None for the middle of the range."""
    if not node.has(3):
        return None
    given, (units, blocks) = node.array(3), shape
    if given.dtype == np.uint8:
        row = -(-blocks * bits // 8)
        if given.size != units * row:
            raise node.error(
                "the number of zero points is wrong",
                expected=f"{units * row} bytes",
                actual=given.size,
            )
        return unpacked(given.reshape(units, row), bits)[:, :blocks]
    if given.size != units * blocks:
        raise node.error(
            "the number of zero points is wrong", expected=str(units * blocks), actual=given.size
        )
    return np.asarray(real_elements(node, 3)).reshape(shape)


def _blocks_of(node: Node, depth: int, block: int, blocks: int) -> Array:
    """The block, whose scale it has, of each row of the weights."""
    if not node.has(4):
        return np.asarray(np.arange(depth) // block)
    block_indexes = np.asarray(node.ints(4), np.int64)[:depth]
    if block_indexes.shape != (depth,):
        raise node.error(
            "there is not one block index per row",
            expected=str(depth),
            actual=len(block_indexes),
        )
    if block_indexes.min() < 0 or block_indexes.max() >= blocks:
        raise node.error(
            "a block index is out of range",
            expected=f"0 to {blocks - 1}",
            actual=f"{block_indexes.min()} to {block_indexes.max()}",
        )
    return block_indexes


_PARAMETERS = (1, 2, 4, 5, 6, 7)

OPERATORS: OperatorTable = {
    "MatMulInteger": Operator(_mat_mul_integer, types=(DataType.SIGNED32,)),
    "QLinearMatMul": Operator(_q_linear_mat_mul, _PARAMETERS, (7,)),
    "com.microsoft.MatMulNBits": Operator(_mat_mul_n_bits, (1, 2, 3, 4)),
    "com.microsoft.MatMulIntegerToFloat": Operator(_to_float, types=(2,)),
    "com.microsoft.DynamicQuantizeMatMul": Operator(_dynamic_product),
}
