"""Kinds of layers, and the costs that follow from rates."""

from __future__ import annotations

import pytest

from armpy.compiler.devices import FigureSource
from armpy.inspect import Work
from armpy.ops import BinaryOperation, Convolution2d, ElementwiseBinary, Reshape
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_tools.devices.costs import BackendCosts, CopyRate, Rate, transition_seconds
from armpy_tools.devices.kinds import kind_of, type_class


def info(*shape: int | None, of: DataType = DataType.FLOAT32) -> TensorInfo:
    return TensorInfo(shape, of)


def test_kinds_separate_slow_from_fast() -> None:
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
