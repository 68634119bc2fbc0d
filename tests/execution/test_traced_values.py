"""Networks whose shapes follow from elements of inputs, other ones with each call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from armpy.core.symbolic import SymbolicTrace
from armpy.execution import Runtime, RuntimeOptions
from armpy.execution.programs.traced.trace import (
    MOST_TRACED,
    ORDINARY_PROGRAMS,
    Traces,
)
from armpy.graph import Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import (
    BroadcastTo,
    Cast,
    Concat,
    Gather,
    NonZero,
    Reshape,
    Shape,
    StridedSlice,
    Tile,
    TopkV2,
)
from armpy.ops.operation import Array
from armpy_testing.models.networks import ADD, RELU, f32, i32
from armpy_testing.preparations import watch_preparations

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


def network(make: Make, rows: int | None = X.shape[0]) -> Network:
    net = Network()
    part = make(net, net.input("x", f32(rows, X.shape[1])), net.input("sizes", i32(2)))
    net.output("y", net.add(RELU, part))
    return net


def load(make: Make, rows: int | None = X.shape[0]) -> Model:
    return Model(
        network(make, rows), Runtime(RuntimeOptions(["NumbaAcc", "CpuRef"], num_threads=1))
    )


@pytest.mark.slow
@pytest.mark.parametrize("make", [top, cut, repeated, expanded, reshaped])
def test_values_after_the_third_need_no_preparation_of_their_own(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[int] = []
    calls: list[Array] = []
    pairs = [(number + 1, number) for number in (3, 4, 9, 10, 5, 13, 6, 14)]
    inputs = [{"x": X, "sizes": np.array(pair, np.int32)} for pair in pairs]
    expected = [load(make).run(each)["y"] for each in inputs]
    watch_preparations(monkeypatch, lambda _: prepared.append(len(calls)))
    model = load(make)
    for each, y in zip(inputs, expected, strict=True):
        calls.append(model.run(each)["y"])
        np.testing.assert_array_equal(calls[-1], y)
    assert max(prepared) <= ORDINARY_PROGRAMS


@pytest.mark.parametrize("make", [top, cut, repeated])
def test_values_and_shapes_that_change_together_need_no_preparation_of_their_own(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[int] = []
    calls: list[tuple[dict[str, Array], Array]] = []
    watch_preparations(monkeypatch, lambda _: prepared.append(len(calls)))
    model = load(make, None)
    for size in (3, 4, 9, 10, 5, 13, 6, 14):
        inputs = {"x": X[: size + 2], "sizes": np.array((size, size // 2 + 1), np.int32)}
        calls.append((inputs, model.run(inputs)["y"]))
        assert "layers" in str(model.placement)
    assert max(prepared) <= ORDINARY_PROGRAMS
    for inputs, y in calls:
        np.testing.assert_array_equal(load(make, None).run(inputs)["y"], y)


def test_refused_traces_are_tried_again_ever_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, traced = Traces._trace, []

    def refuse(programs: Traces, shapes: Any) -> Any:  # Any: they are passed on
        traced.append(number)
        return trace(programs, shapes) if number > 12 else None

    monkeypatch.setattr(Traces, "_trace", refuse)
    model = load(repeated)
    for number in range(30):
        y = model.run({"x": X, "sizes": np.array([2, number], np.int32)})["y"]
        np.testing.assert_array_equal(y, np.maximum(np.tile(X, (2, number)), 0))
    assert traced[:4] == [2, 4, 8, 16]
    assert traced[-1] < 20


def test_many_templates_of_a_small_network_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = SymbolicTrace.__init__

    def begin_and_fix_last(trace: SymbolicTrace, sizes: Sequence[int]) -> None:
        begin(trace, sizes)
        for size in trace.given[-1:]:
            trace.fix(size)

    monkeypatch.setattr(SymbolicTrace, "__init__", begin_and_fix_last)
    model = load(repeated)
    prepared: list[int] = []
    watch_preparations(monkeypatch, lambda _: prepared.append(rows))
    every = range(1, MOST_TRACED + 5)  # a template for each, which is used again
    first = [(rows, columns) for columns in every for rows in (4, 5, 6)]
    for rows, columns in [*first, *((3, columns) for columns in every)]:
        y = model.run({"x": X, "sizes": np.array([rows, columns], np.int32)})["y"]
        np.testing.assert_array_equal(y, np.maximum(np.tile(X, (rows, columns)), 0))
    assert 3 not in prepared


@pytest.mark.parametrize("backends", [["CpuRef"], ["NumbaAcc", "CpuRef"]])
def test_stages_are_planned_anew_where_ranks_are_others(backends: list[str]) -> None:
    net = Network()
    x, sizes = net.input("x", f32(12)), net.input("sizes", f32(None))
    for _ in range(3):
        shape = net.add(Shape(), net.add(Reshape(), x, net.add(Cast(), sizes, output=i32(None))))
        sizes = net.add(Cast(), shape, output=f32(None))
        places = net.add(Reshape((-1,)), net.add(NonZero(), sizes))
        sizes = net.add(Gather(), sizes, places)
    net.output("y", net.add(Reshape(), x, shape))
    model = Model(net, Runtime(RuntimeOptions(backends, num_threads=1)))
    y: Array = np.arange(12, dtype=np.float32)
    for given in 2 * [(12,), (3, 4), (4, 3), (2, 6), (2, 3, 2), (3, 2, 2), (12,), (1, 12), (2, 6)]:
        result = model.run({"x": y, "sizes": np.array(given, np.float32)})["y"]
        np.testing.assert_array_equal(result, y.reshape(given))
