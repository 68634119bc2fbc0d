"""Work of layers, counted by hand, and the costs that follow."""

from __future__ import annotations

from armpy.inspect import Work, work_of
from armpy.ops import (
    BatchMatMul,
    BinaryOperation,
    Convolution2d,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    FullyConnected,
    Pooling2d,
    Reshape,
)
from armpy.tensor import TensorInfo
from armpy.types import DataType

F32 = DataType.FLOAT32


def info(*shape: int | None, of: DataType = F32) -> TensorInfo:
    return TensorInfo(shape, of)


def test_a_convolution_multiplies_each_output_with_one_filter() -> None:
    inputs = info(1, 5, 5, 3), info(8, 3, 3, 3), info(8)
    # 9 places times 8 filters, each 27 products; 75 + 216 + 8 + 72 elements of 4 bytes.
    assert work_of(Convolution2d(), inputs, [info(1, 3, 3, 8)]) == Work(2 * 9 * 8 * 27, 4 * 371)


def test_a_depthwise_convolution_multiplies_each_output_with_one_window() -> None:
    inputs = info(1, 5, 5, 4), info(1, 3, 3, 4), None
    work = work_of(DepthwiseConvolution2d(), inputs, [info(1, 3, 3, 4)])
    assert work.flops == 2 * 9 * 4 * 9


def test_a_dense_layer_multiplies_with_every_weight() -> None:
    work = work_of(FullyConnected(), [info(2, 10), info(3, 10), info(3)], [info(2, 3)])
    assert work.flops == 2 * 2 * 30


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
