"""Operators that are products of matrices."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.dense import BatchMatMul, FullyConnected
from armpy.ops.elementwise import BinaryOperation
from armpy.types import DataType
from armpy_onnx.blocks import binary, reshaped, scaled, transposed
from armpy_onnx.node import HALVES, Node, Operator, OperatorTable, widened
from armpy_onnx.operators.convolution import activated


def matrix_product(
    node: Node, x: Value, y: Value, transpose_x: bool = False, transpose_y: bool = False
) -> Value:
    """The product of two tensors of matrices; vectors are matrices of one row or column."""
    left, right = x.info.known_shape, y.info.known_shape
    if not left or not right:
        raise node.error("a factor has no axes", expected="rank 1 or more", actual="rank 0")
    if len(left) == 1:
        x, transpose_x = reshaped(node, x, (1, *left)), False
    if len(right) == 1:
        y, transpose_y = reshaped(node, y, (*right, 1)), False
    if _are_weights(y) and not transpose_x:
        weights = y if transpose_y else transposed(node, y, (1, 0))
        product = node.layer(FullyConnected(keep_num_dims=True), x, weights)
    else:
        product = node.layer(BatchMatMul(transpose_x, transpose_y), x, y)
    shape = list(product.info.known_shape)
    if len(left) == 1:
        del shape[-2]
    if len(right) == 1:
        del shape[-1]
    return reshaped(node, product, shape)


def _are_weights(value: Value) -> bool:
    """Return whether a factor is one constant matrix that `FullyConnected` takes."""
    shape = value.info.known_shape
    floats = (DataType.FLOAT32, DataType.FLOAT16)
    return (
        value.data is not None
        and len(shape) == 2
        and 0 not in shape
        and value.info.data_type in floats
    )


def _mat_mul(node: Node) -> Value:
    return matrix_product(node, node.value(0), node.value(1))


def gemm(node: Node) -> Value:
    """ONNX's Gemm."""
    a, b, c = node.value(0), node.value(1), node.input(2)
    for index in range(2):
        if node.rank(index) != 2:
            raise node.error(
                "a factor is not a matrix", expected="rank 2", actual=node.shape(index)
            )
    transposes_a, transposes_b = node.flag("transA"), node.flag("transB")
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    addend = None if c is None or beta == 0 else scaled(node, c, beta)
    units = node.shape(1)[0 if transposes_b else 1]
    if (
        addend is not None
        and addend.data is not None
        and alpha == 1
        and _are_weights(b)
        and not transposes_a
        and addend.info.known_shape in ((units,), (1, units))
    ):
        weights = b if transposes_b else transposed(node, b, (1, 0))
        bias = reshaped(node, addend, (units,))
        return node.layer(FullyConnected(keep_num_dims=True), a, weights, bias)
    data_type = a.info.data_type
    if data_type in HALVES and (alpha != 1 or addend is not None):  # several layers round once
        wide = widened(node)
        a, b, c = wide.value(0), wide.value(1), wide.input(2)
        addend = None if c is None or beta == 0 else scaled(node, c, beta)
    result = scaled(node, matrix_product(node, a, b, transposes_a, transposes_b), alpha)
    if addend is not None:
        result = binary(node, BinaryOperation.ADD, result, addend)
    return node.cast(result, data_type)


def _fused_gemm(node: Node) -> Value:
    """A product with an activation that ONNX Runtime's optimiser has put into it."""
    names = ("activation_alpha", "activation_beta")
    params = [node.real(name) for name in names if node.attribute(name) is not None]
    return activated(node, gemm(node), params)


def _fused_mat_mul(node: Node) -> Value:
    """A product with axes swapped, as ONNX Runtime's optimiser writes it."""
    x, y = (
        _batch_last(node, index, node.flag(name))
        for index, name in enumerate(("transBatchA", "transBatchB"))
    )
    product = matrix_product(node, x, y, node.flag("transA"), node.flag("transB"))
    return scaled(node, product, node.real("alpha", 1.0))


def _batch_last(node: Node, index: int, is_moved: bool) -> Value:
    """A factor whose rows come ahead of its batches, the other way round."""
    value, rank = node.value(index), node.rank(index)
    if not is_moved or rank < 3:
        return value
    return transposed(node, value, (*range(1, rank - 1), 0, rank - 1))


OPERATORS: OperatorTable = {
    "MatMul": Operator(_mat_mul),
    "Gemm": Operator(gemm),
    "com.microsoft.FusedGemm": Operator(_fused_gemm, rounds_once=True),
    "com.microsoft.FusedMatMul": Operator(_fused_mat_mul),
    "com.microsoft.TransposeMatMul": Operator(_fused_mat_mul),
}
