"""Work of layers, counted by hand, and the costs that follow."""

from __future__ import annotations

from armpy.inspect import Work, work_of
from armpy.ops import (
    BatchMatMul,
    BinaryOperation,
    ElementwiseBinary,
    Pooling2d,
    Reshape,
)
from armpy.tensor import TensorInfo
from armpy.types import DataType

F32 = DataType.FLOAT32


def info(*shape: int | None, of: DataType = F32) -> TensorInfo:
    return TensorInfo(shape, of)


def test_matrices_multiply_rows_with_columns_either_way() -> None:
    output = [info(7, 2, 5)]
    assert work_of(BatchMatMul(), [info(7, 2, 3), info(7, 3, 5)], output).flops == 2 * 70 * 3
    swapped = BatchMatMul(transpose_x=True)
    assert work_of(swapped, [info(7, 3, 2), info(7, 3, 5)], output).flops == 2 * 70 * 3


def test_pooling_looks_at_every_element_of_its_windows() -> None:
    operation = Pooling2d(pool_size=(2, 2), stride=(2, 2))
    assert work_of(operation, [info(1, 4, 4, 3)], [info(1, 2, 2, 3)]).flops == 12 * 4


def test_moves_have_bytes_only() -> None:
    assert work_of(Reshape((6,)), [info(2, 3)], [info(6)]) == Work(0.0, 48.0)


def test_unknown_dimensions_count_as_one() -> None:
    add = ElementwiseBinary(BinaryOperation.ADD)
    assert work_of(add, [info(None, 4), info(4)], [info(None, 4)]) == Work(4.0, 48.0)
