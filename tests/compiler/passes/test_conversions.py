"""Conversions that take each other back, and those that are better done elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.graph import Value
from armpy_testing.models.networks import RELU, f32
from tests.support.passes import after, after_pass, names


def int8(*shape: int | None, scale: float = 0.3, zero_point: int = -5) -> TensorInfo:
    """Info of a quantised tensor."""
    return TensorInfo(shape or None, DataType.QASYMM_S8, Quantization.per_tensor(scale, zero_point))


def of_type(data_type: DataType, *shape: int) -> TensorInfo:
    return TensorInfo(shape or None, data_type)


def test_a_dequantisation_and_its_inverse_go() -> None:
    net = Network()
    x = net.input("x", int8(4, 5))
    real = net.add(ops.Dequantize(), x)
    net.output("y", net.add(ops.Quantize(), real, output=int8()))
    assert after("cancel_conversions", net).layers == ()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("data_type", [DataType.QASYMM_U8, DataType.QSYMM_S16, DataType.QSYMM_S8])
@pytest.mark.parametrize("scale", [2.0**-99, 1 / 3, 7e20])
def test_every_stored_element_comes_back(data_type: DataType, scale: float) -> None:
    low, high = data_type.integer_range
    info = TensorInfo((high - low + 1,), data_type, Quantization.per_tensor(scale))
    net = Network()
    values = np.arange(low, high + 1).astype(data_type.dtype)
    everything = net.constant(values, data_type=data_type, quantization=info.quantization)
    x = net.add(ops.Concat(0), net.input("x", info), everything)
    real = net.add(ops.Dequantize(), x)
    output = TensorInfo(None, data_type, info.quantization)
    net.output("y", net.add(ops.Quantize(), real, output=output))
    assert names(after("cancel_conversions", net)) == ["Concat"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("between", [DataType.UNSIGNED8, DataType.SIGNED32, DataType.FLOAT32])
def test_casts_that_change_integers_stay(between: DataType) -> None:
    net = Network()
    stored = net.add(ops.Cast(), net.input("x", int8(4)), output=of_type(between))
    net.output("y", net.add(ops.Cast(), stored, output=of_type(DataType.SIGNED8)))
    assert names(after("merge_casts", net)) == ["Cast", "Cast"]


@pytest.mark.slow
def test_movement_between_conversions_is_of_stored_elements() -> None:
    net = Network()
    value = net.add(ops.Dequantize(), net.input("x", int8(4, 6)))
    for operation in (ops.Reshape((2, 2, 6)), ops.Transpose((2, 0, 1)), ops.ReverseV2((0,))):
        value = net.add(operation, value)
    net.output("y", net.add(ops.Quantize(), value, output=int8()))
    rewritten = after("cancel_conversions", net)
    assert names(rewritten) == ["Reshape", "Transpose", "ReverseV2"]
    assert {v.info.data_type for v in rewritten.values()} == {DataType.QASYMM_S8}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("short", [DataType.FLOAT16, DataType.BFLOAT16])
def test_short_floats_come_back_from_float32(short: DataType) -> None:
    net = Network()
    value = net.add(ops.Cast(), net.input("x", f32(3, 4)), output=of_type(short))
    wide = net.add(ops.Cast(), value, output=of_type(DataType.FLOAT32))
    again = net.add(ops.Cast(), wide, output=of_type(short))
    net.output("y", net.add(ops.Cast(), again, output=of_type(DataType.FLOAT32)))
    rewritten = after("cancel_conversions", net)
    # What rounds, from float32 to the short type, stays.
    assert names(rewritten) == ["Cast", "Cast"]


def change(net: Network, value: Value, what: str) -> Value:
    """What lies between two conversions that stay."""
    if what == "computed":
        return net.add(RELU, value)
    if what == "read":
        value = net.add(ops.Reshape((20,)), value)
        net.output("z", value)
    return value


@pytest.mark.parametrize("what", ["computed", "read", "scale", "zero point", "type", "tiny"])
def test_conversions_stay_that_change_something(what: str) -> None:
    first = int8(4, 5, scale=2.0**-140 if what == "tiny" else 0.3, zero_point=5)
    last = {
        "scale": int8(scale=0.2, zero_point=5),
        "zero point": int8(zero_point=4),
        "type": TensorInfo(None, DataType.QASYMM_U8, Quantization.per_tensor(0.3, 5)),
    }.get(what, first.with_shape(None))
    net = Network()
    real = net.add(ops.Dequantize(), net.input("x", first))
    net.output("y", net.add(ops.Quantize(), change(net, real, what), output=last))
    graph = net.build()
    assert after_pass("cancel_conversions", graph) is graph


def test_conversions_stay_where_they_are_fewest() -> None:
    net = Network()
    some = net.add(ops.Slice((0, 0), (1, 6)), net.input("x", f32(4, 6)))
    net.output("y", net.add(ops.Quantize(), some, output=int8()))
    real = net.add(ops.Dequantize(), net.input("q", int8(2, 3)))
    net.output("z", net.add(ops.Tile((3, 1)), real))
    graph = net.build()
    assert after_pass("move_conversions", graph) is graph
