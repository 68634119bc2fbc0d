"""Distances between rows, as ONNX Runtime's converters of classical models write them."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.elementwise import BinaryOperation, UnaryOperation
from armpy.ops.reduction import ReduceOperation
from armpy.types import DataType
from armpy_onnx.blocks import binary, reduced, reshaped, scaled, unary
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.operators.matrices import matrix_product


def _distances(node: Node) -> Value:
    """Distances of each row of input 0 from each row of input 1.

    Notes
    -----
    ``a a + b b - 2 a b`` needs no table of all differences. It is computed in float64, as little
    is left of the squares of rows that lie near each other.
    """
    rows = [node.cast(node.value(index), DataType.FLOAT64) for index in (0, 1)]
    shapes = [node.shape(index) for index in (0, 1)]
    if any(len(shape) != 2 for shape in shapes) or shapes[0][1] != shapes[1][1]:
        raise node.error(
            "the inputs are not matrices of equally long rows",
            expected="(rows, features) and (other rows, features)",
            actual=" and ".join(map(str, shapes)),
        )
    is_root = node.choice("metric", "sqeuclidean", {"euclidean": True, "sqeuclidean": False})
    first, other = (
        reduced(node, ReduceOperation.SUM, unary(node, UnaryOperation.SQUARE, part), (1,), True)
        for part in rows
    )
    squares = binary(node, BinaryOperation.ADD, first, reshaped(node, other, (1, shapes[1][0])))
    products = scaled(node, matrix_product(node, rows[0], rows[1], transpose_y=True), 2)
    distances = binary(node, BinaryOperation.SUB, squares, products)
    distances = binary(node, BinaryOperation.MAXIMUM, distances, 0)
    if is_root:
        distances = unary(node, UnaryOperation.SQRT, distances)
    return node.cast(distances, node.type(0))


OPERATORS: OperatorTable = {"com.microsoft.CDist": Operator(_distances)}
