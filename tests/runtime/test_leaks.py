from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from armpy.errors import ArmpyError
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Reshape
from tests.support.effort import effort
from tests.support.fake_backends import CompilingBackend, FakeBackend, OwnMemoryBackend, runtime_of
from tests.support.networks import ADD, diamond, f32, floats, i32, ints


def stepwise() -> Graph:
    net = Network()
    shape = net.add(ADD, net.input("shape", i32(2)), net.constant(ints(0, 0)))
    net.output("y", net.add(Reshape(), net.input("x", f32(4)), shape))
    return net.build()


def run_diamond(model: Model) -> object:
    return model(floats(1, 2, 3, 4))


def run_stepwise(model: Model) -> object:
    return model.run({"x": floats(1, 2, 3, 4), "shape": ints(2, 2)})


Case = tuple[Callable[[], Graph], Callable[[Model], object], FakeBackend]

CASES: dict[str, Case] = {
    "plain": (diamond, run_diamond, FakeBackend()),
    "compiled": (diamond, run_diamond, CompilingBackend()),
    "own memory": (diamond, run_diamond, OwnMemoryBackend()),
    "stepwise": (stepwise, run_stepwise, FakeBackend()),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_nothing_outlives_many_models(name: str) -> None:
    make, run, backend = CASES[name]
    runtime = runtime_of(backend)
    graph = make()
    alive: list[weakref.ref[object]] = []

    def once() -> None:
        model = Model(graph, runtime)
        run(model)
        network = runtime.get_network(model.network_id)
        alive.extend(weakref.ref(thing) for thing in (model, network, *network._plans.values()))
        model.close()
        if isinstance(backend, CompilingBackend):
            backend.offered.clear()  # it keeps what it was offered, for other tests

    tracemalloc.start()
    try:
        for number in range(effort(60, 200)):
            once()
            if number == 20:
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
                alive.clear()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert [thing() for thing in alive if thing() is not None] == []
    assert grown < 200_000  # weakrefs, counters, caches of the interpreter; less than 2 KiB each


def test_a_closed_model_frees_its_network_even_if_the_model_is_kept() -> None:
    model = Model(diamond(), runtime_of())
    network = weakref.ref(model.runtime.get_network(model.network_id))
    model.close()
    gc.collect()
    assert network() is None


def test_arrays_of_the_caller_are_let_go_after_an_execution() -> None:
    model = Model(diamond(), runtime_of())
    x = floats(1, 2, 3, 4)
    result = model(x)
    assert isinstance(result, np.ndarray)
    arrays = [weakref.ref(x), weakref.ref(result)]
    del x, result
    gc.collect()
    assert [array() for array in arrays] == [None, None]


def test_arrays_of_the_caller_are_let_go_after_a_failure() -> None:
    model = Model(diamond(), runtime_of(FakeBackend(faults={"execute": ValueError("oops")})))
    x = floats(1, 2, 3, 4)
    with pytest.raises(ArmpyError):
        model(x)
    array = weakref.ref(x)
    del x
    gc.collect()
    assert array() is None


def test_memory_of_executions_is_used_again() -> None:
    model = Model(diamond(), runtime_of())
    x = np.zeros(4, np.float32)
    model(x)
    (plan,) = model.runtime.get_network(model.network_id)._plans.values()
    idle = plan._idle  # type: ignore[union-attr]  # it is compiled
    before = list(idle)
    for _ in range(5):
        model(x)
    assert list(idle) == before
    assert len(before) == 1
