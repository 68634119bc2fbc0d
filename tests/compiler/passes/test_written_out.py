"""Layers that files have written out as several."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armpy import Network, ops
from armpy.graph import Graph, Value
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.models.networks import ADD, MUL, f32
from tests.support.passes import after_pass, names, random_inputs, run

SUB, DIV, POWER = (
    ops.ElementwiseBinary(kind)
    for kind in (ops.BinaryOperation.SUB, ops.BinaryOperation.DIV, ops.BinaryOperation.POWER)
)
SQRT, ERF, SQUARE = (
    ops.ElementwiseUnary(kind)
    for kind in (ops.UnaryOperation.SQRT, ops.UnaryOperation.ERF, ops.UnaryOperation.SQUARE)
)
MEAN = ops.Reduce(ops.ReduceOperation.MEAN, (-1,), keep_dims=True)


def scalar(net: Network, number: float) -> Value:
    return net.constant(np.array(number, np.float32))


def vector(net: Network, length: int) -> Value:
    return net.constant(np.linspace(0.5, 1.5, length, dtype=np.float32))


def normalised(net: Network, x: Value, square: str = "power") -> Value:
    """Layer normalisation as exporters write it."""
    centred = net.add(SUB, x, net.add(MEAN, x))
    if square == "power":
        squares = net.add(POWER, centred, scalar(net, 2))
    elif square == "product":
        squares = net.add(MUL, centred, centred)
    else:
        squares = net.add(SQUARE, centred)
    deviation = net.add(SQRT, net.add(ADD, net.add(MEAN, squares), scalar(net, 1e-5)))
    ratio = net.add(DIV, centred, deviation)
    return net.add(ADD, net.add(MUL, ratio, vector(net, 8)), vector(net, 8))


def gelu(net: Network, x: Value, form: int, half: float = 0.5) -> Value:
    """Gelu in one of the ways in which it is written."""
    if form == 2:
        inner = net.add(MUL, x, scalar(net, math.sqrt(0.5)))
    else:
        inner = net.add(DIV, x, scalar(net, math.sqrt(2)))
    probability = net.add(ADD, net.add(ERF, inner), scalar(net, 1))
    if form == 0:
        return net.add(MUL, net.add(MUL, x, probability), scalar(net, half))
    if form == 1:
        return net.add(MUL, x, net.add(MUL, scalar(net, half), probability))
    return net.add(MUL, net.add(MUL, x, scalar(net, half)), probability)


def joined(net: Network) -> Graph:
    """A network after the pass, which must agree with what it was."""
    graph = net.build()
    result = after_pass("join_written_out", graph)
    inputs = random_inputs(graph)
    expected = run(graph, inputs)
    for name, got in run(result, inputs).items():
        np.testing.assert_allclose(got, expected[name], 1e-5, 1e-5, err_msg=name)
    return result


@pytest.mark.parametrize("form", range(3))
def test_other_factors_are_no_gelu(form: int) -> None:
    net = Network()
    net.output("y", gelu(net, net.input("x", f32(2, 8)), form, half=0.4))
    graph = net.build()
    assert after_pass("join_written_out", graph) is graph


def test_a_sum_after_products_is_their_bias() -> None:
    net = Network()
    weights = net.constant(np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3))
    product = net.add(ops.FullyConnected(keep_num_dims=True), net.input("x", f32(2, 4, 3)), weights)
    net.output("y", net.add(ADD, vector(net, 8), product))
    (layer,) = joined(net).layers
    assert layer.operand("bias") is not None


@pytest.mark.parametrize("what", ["rows", "reader", "bias"])
def test_other_sums_are_no_bias(what: str) -> None:
    net = Network()
    weights = net.constant(np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3))
    x = net.input("x", f32(8, 3))
    bias = (vector(net, 8),) if what == "bias" else ()
    product = net.add(ops.FullyConnected(), x, weights, *bias)
    term = vector(net, 8)
    if what == "rows":
        term = net.constant(np.arange(8, dtype=np.float32).reshape(8, 1))
    net.output("y", net.add(ADD, product, term))
    if what == "reader":
        net.output("z", product)
    graph = net.build()
    assert after_pass("join_written_out", graph) is graph


@pytest.mark.parametrize("what", ["result", "axes", "largest", "backend"])
def test_layers_stay_where_others_need_what_lies_between(what: str) -> None:
    net = Network()
    x = net.input("x", f32(2, 8, 8))
    largest = ops.Reduce(ops.ReduceOperation.MAX, MEAN.axes, keep_dims=True)
    centred = net.add(SUB, x, net.add(largest if what == "largest" else MEAN, x))
    squares = net.add(SQUARE, centred)
    axes = ops.Reduce(ops.ReduceOperation.MEAN, (1 if what == "axes" else 2,), keep_dims=True)
    deviation = net.add(SQRT, net.add(ADD, net.add(axes, squares), scalar(net, 1e-5)))
    ratio = net.add(DIV, centred, deviation)
    net.output("y", net.add(ADD, net.add(MUL, ratio, vector(net, 8)), vector(net, 8)))
    if what == "result":
        net.output("centred", centred)
    graph = net.build()
    operations = [ops.ElementwiseBinary, ops.ElementwiseUnary, ops.Reduce]
    backends = [FakeBackend("Only", operations=operations)] if what == "backend" else []
    assert after_pass("join_written_out", graph, *backends) is graph


def test_joined_layers_have_the_operations_that_they_stand_for() -> None:
    net = Network()
    x = net.input("x", f32(2, 8))
    net.output("y", gelu(net, normalised(net, x), 0))
    assert names(joined(net)) == ["LayerNormalization", "Activation"]
