"""Networks whose shapes follow from elements of inputs, other ones with each call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from armpy.compiler import OptimizedNetwork, optimize_graph
from armpy.core.symbolic import SymbolicTrace
from armpy.execution import Runtime, RuntimeOptions
from armpy.execution.programs.symbolic_programs import ORDINARY_PLANS
from armpy.graph import Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import BroadcastTo, Concat, Reshape, StridedSlice, Tile, TopkV2
from armpy.ops.operation import Array
from tests.support.networks import ADD, RELU, f32, i32

Make = Callable[[Network, Value, Value], Value]
X: Array = np.random.default_rng(3).normal(size=(24, 16)).astype(np.float32)


def top(net: Network, x: Value, sizes: Value) -> Value:
    """As many of the largest elements as the first size says."""
    first = net.add(StridedSlice((0,), (1,), (1,), shrink_axis_mask=1), sizes)
    return net.add_layer(TopkV2(), [x, first]).outputs[0]


def cut(net: Network, x: Value, sizes: Value) -> Value:
    """Rows and columns up to the sizes."""
    return net.add(StridedSlice(begin=(1, 0), stride=(1, 1)), x, None, sizes)


def repeated(net: Network, x: Value, sizes: Value) -> Value:
    """Tiles, as many along each axis as the sizes say."""
    return net.add(Tile(), x, sizes)


def expanded(net: Network, x: Value, sizes: Value) -> Value:
    """Images, whose number is computed from the sizes."""
    whole = net.add(
        Concat(0), net.add(ADD, sizes, sizes), net.constant(np.array(X.shape, np.int32))
    )
    return net.add(BroadcastTo(), x, whole)


def reshaped(net: Network, x: Value, sizes: Value) -> Value:
    """Tiles in a shape that follows from how many there are."""
    tiled = net.add(Tile(), x, sizes)
    return net.add(
        Reshape(), tiled, net.add(Concat(0), sizes, net.constant(np.array([-1], np.int32)))
    )


def network(make: Make) -> Network:
    net = Network()
    part = make(net, net.input("x", f32(*X.shape)), net.input("sizes", i32(2)))
    net.output("y", net.add(RELU, part))
    return net


def load(make: Make) -> Model:
    return Model(network(make), Runtime(RuntimeOptions(["NumbaAcc", "CpuRef"], num_threads=1)))


@pytest.mark.slow
@pytest.mark.parametrize("make", [top, cut, repeated, expanded, reshaped])
def test_values_after_the_third_need_no_preparation_of_their_own(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_prepared = 0

    def optimize(*arguments: Any) -> OptimizedNetwork:  # Any: they are passed on
        nonlocal num_prepared
        num_prepared += 1
        return optimize_graph(*arguments)

    pairs = [(number + 1, number) for number in (3, 4, 9, 10, 5, 13, 6, 14)]
    inputs = [{"x": X, "sizes": np.array(pair, np.int32)} for pair in pairs]
    expected = [load(make).run(each)["y"] for each in inputs]
    for room in ("planning", "symbolic_programs"):
        monkeypatch.setattr(f"armpy.execution.programs.{room}.optimize_graph", optimize)
    model, after_third = load(make), 0
    for number, (each, y) in enumerate(zip(inputs, expected, strict=True)):
        np.testing.assert_array_equal(model.run(each)["y"], y)
        if number == ORDINARY_PLANS:
            after_third = num_prepared
    assert num_prepared == after_third


@pytest.mark.slow
def test_a_network_prepared_for_each_value_is_reported_with_input_element_and_layer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begin = SymbolicTrace.__init__

    def begin_and_fix_last(trace: SymbolicTrace, sizes: Sequence[int]) -> None:
        begin(trace, sizes)
        trace.fix(trace.given[-1])

    monkeypatch.setattr("armpy.execution.programs.symbolic_programs.ENOUGH_TRACES", 2)
    monkeypatch.setattr(SymbolicTrace, "__init__", begin_and_fix_last)
    model = load(repeated)
    for number in range(1, ORDINARY_PLANS + 5):
        y = model.run({"x": X, "sizes": np.array([2, number], np.int32)})["y"]
        np.testing.assert_array_equal(y, np.maximum(np.tile(X, (2, number)), 0))
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [
        "the network is prepared anew for each size of element 1 of 'sizes', which Tile 'Tile_0'"
        " reads"
    ]
