"""Work of layers, counted by hand, and the costs that follow."""

from __future__ import annotations

import pytest

from armpy.compiler.devices import (
    BackendCosts,
    CopyRate,
    FigureSource,
    Rate,
    Work,
    kind_of,
    transition_seconds,
    type_class,
    work_of,
)
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


def test_kinds_tell_slow_from_fast() -> None:
    image = info(1, 5, 5, 3)
    assert kind_of(Convolution2d(), [image, info(8, 1, 1, 3)]) == "Convolution2d:pointwise"
    assert kind_of(Convolution2d(), [image, info(8, 3, 3, 3)]) == "Convolution2d:window"
    assert kind_of(ElementwiseBinary(BinaryOperation.DIV)) == "ElementwiseBinary:DIV"
    assert kind_of(Reshape((6,))) == "Reshape"


@pytest.mark.parametrize(
    ("data_type", "expected"),
    [
        (DataType.FLOAT32, "float32"),
        (DataType.BFLOAT16, "float16"),
        (DataType.QASYMM_S8, "quant8"),
        (DataType.QSYMM_S16, "quant16"),
        (DataType.SIGNED32, "int"),
        (DataType.BOOLEAN, "bool"),
    ],
)
def test_signed_and_unsigned_types_cost_alike(data_type: DataType, expected: str) -> None:
    assert type_class([None, info(1, of=data_type)]) == expected


RATES = {
    "Convolution2d:window/float32": Rate(1.0),
    "Convolution2d/float32": Rate(2.0),
    "products/float32": Rate(3.0),
    "products/quant8": Rate(4.0),
    "elements/float32": Rate(5.0),
    "*": Rate(6.0),
}


@pytest.mark.parametrize(
    ("kind", "types", "overhead_s"),
    [
        ("Convolution2d:window", "float32", 1.0),
        ("Convolution2d:pointwise", "float32", 2.0),
        ("FullyConnected", "float32", 3.0),
        ("Convolution2d:window", "quant8", 4.0),
        ("Convolution2d:window", "float16", 1.0),
        ("Softmax", "quant8", 5.0),
        ("Reshape", "float32", 6.0),
    ],
)
def test_the_nearest_rate_is_taken(kind: str, types: str, overhead_s: float) -> None:
    costs = BackendCosts("Fast", FigureSource.MEASURED, RATES)
    assert costs.rate_of(kind, types).overhead_s == overhead_s


def test_seconds_are_overhead_and_work() -> None:
    assert Rate(1.0, 0.5, 0.25).seconds(Work(4, 8)) == 1 + 2 + 2
    assert Rate(1.0, 0.5, 0.25, 2.0).scaled(2.0, 3.0) == Rate(2.0, 1.0, 0.5, 6.0)


def test_only_foreign_memory_costs_copies() -> None:
    host = BackendCosts("Host", FigureSource.MEASURED)
    also_host = BackendCosts("AlsoHost", FigureSource.MEASURED)
    card = BackendCosts(
        "Card",
        FigureSource.MEASURED,
        copy_in=CopyRate(1.0, 0.5),
        copy_out=CopyRate(2.0, 0.25),
        shares_host_memory=False,
    )
    other = BackendCosts(
        "Other", FigureSource.MEASURED, copy_in=CopyRate(8.0), shares_host_memory=False
    )
    assert transition_seconds(host, also_host, 100) == 0
    assert transition_seconds(card, card, 100) == 0
    assert transition_seconds(host, card, 100) == 51
    assert transition_seconds(card, None, 100) == 27
    assert transition_seconds(card, other, 100) == 27 + 8
