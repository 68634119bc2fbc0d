"""Random networks across backends of every kind give what plain NumPy gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from armpy.backend import OptimizationViews
from armpy.graph import Graph, SubgraphView, Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary, ElementwiseUnary, UnaryOperation
from armpy.ops.operation import Array
from tests.support.fake_backends import (
    CompilingBackend,
    FakeBackend,
    OwnMemoryBackend,
    compiled,
    runtime_of,
)
from tests.support.networks import ADD, RELU, f32, floats

NEG = ElementwiseUnary(UnaryOperation.NEG)
X = floats(-3, -1, 0, 2)


@dataclass(frozen=True)
class Case:
    """A random network: what each layer computes and which layers (-1 is the input) it reads."""

    kinds: tuple[str, ...]
    reads: tuple[tuple[int, int], ...]
    results: frozenset[int]
    chunks: tuple[int, ...]

    def graph(self) -> Graph:
        net = Network()
        values: dict[int, Value] = {-1: net.input("x", f32(4))}
        for number, (kind, (first, second)) in enumerate(zip(self.kinds, self.reads, strict=True)):
            a, b = values[first], values[second]
            if kind == "add":
                values[number] = net.add(ADD, a, b)
            else:
                values[number] = net.add(RELU if kind == "relu" else NEG, a)
        for number in sorted(self.results):
            net.output(f"y{number}", values[number])
        return net.build()

    def expected(self) -> dict[str, Array]:
        values: dict[int, Array] = {-1: X}
        for number, (kind, (first, second)) in enumerate(zip(self.kinds, self.reads, strict=True)):
            a, b = values[first], values[second]
            values[number] = {"add": a + b, "relu": np.maximum(a, 0), "neg": -a}[kind]
        return {f"y{number}": values[number] for number in sorted(self.results)}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(1, 16))
    kinds = draw(st.lists(st.sampled_from(["add", "relu", "neg"]), min_size=count, max_size=count))
    reads = [
        (draw(st.integers(-1, number - 1)), draw(st.integers(-1, number - 1)))
        for number in range(count)
    ]
    results = draw(st.sets(st.integers(-1, count - 1), min_size=1, max_size=4))
    chunks = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    return Case(tuple(kinds), tuple(reads), frozenset(results), tuple(chunks))


def check(case: Case, *backends: FakeBackend) -> Model:
    """Run a case and compare."""
    model = Model(case.graph(), runtime_of(*backends))
    for _ in range(2):
        results = model.run({"x": X})
        for name, expected in case.expected().items():
            np.testing.assert_array_equal(results[name], expected, err_msg=name)
    return model


@given(cases())
def test_backends_that_share_memory(case: Case) -> None:
    check(case, FakeBackend("A", {ElementwiseBinary}), FakeBackend("B", {Activation}))


@given(cases())
def test_backends_with_memories_of_their_own(case: Case) -> None:
    check(case, OwnMemoryBackend("A", {ElementwiseBinary}), OwnMemoryBackend("B", {Activation}))


@given(cases())
def test_compilers_of_whole_subgraphs(case: Case) -> None:
    model = check(case, CompilingBackend("A", {ElementwiseBinary, Activation}))
    assert model.placement is not None
    assert all(r.text == "A does not do ElementwiseUnary" for r in model.placement.refusals)


@given(cases())
def test_compilers_of_random_parts_that_give_some_back(case: Case) -> None:
    def divide(view: SubgraphView) -> OptimizationViews:
        first, second, third, fourth = (
            view.part([layer for layer in view.layers if case.chunks[layer.id] == chunk])
            for chunk in range(4)
        )
        substituted = [part for part in (first, second) if part.layers and part.is_convex_in(view)]
        untouched = [part for part in (first, second) if part not in substituted]
        return OptimizationViews(
            [compiled(part) for part in substituted], [third], [*untouched, fourth]
        )

    check(case, CompilingBackend("A", divider=divide), FakeBackend("B", {Activation}))
