"""Asking a runtime whether its backends can run a graph."""

from __future__ import annotations

from armpy import DataType, Network, TensorInfo
from armpy.backend import ReasonCode
from armpy.graph import Graph
from armpy.ops import BinaryOperation, ElementwiseBinary, ElementwiseUnary, UnaryOperation
from tests.support.fake_backends import FakeBackend, runtime_of

ADD = ElementwiseBinary(BinaryOperation.ADD)
FLOOR = ElementwiseUnary(UnaryOperation.FLOOR)


def floor_of_sum() -> Graph:
    """ADD of an input to itself, then FLOOR."""
    net = Network()
    x = net.input("x", TensorInfo((2,), DataType.FLOAT32))
    total = net.add(ADD, x, x, name="total")
    net.output("y", net.add(FLOOR, total, name="rounded"))
    return net.build()


def test_a_graph_is_supported_if_every_layer_is_by_some_backend() -> None:
    assert runtime_of(FakeBackend("Adder", {ElementwiseBinary})).get_layer_support(floor_of_sum())


def test_the_first_layer_that_nobody_takes_is_named_with_the_reason() -> None:
    runtime = runtime_of(FakeBackend("Adder", {ElementwiseBinary}), backends=["Adder"])
    answer = runtime.get_layer_support(floor_of_sum())
    assert not answer
    assert answer.code is ReasonCode.OPERATION
    assert answer.text == "ElementwiseUnary 'rounded': Adder does not do ElementwiseUnary"
