from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.backend import IWorkloadFactory
from armpy.errors import LayerValidationError
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation
from armpy_testing.backends.fake_backends import (
    CompilingBackend,
    CountingManager,
    FakeBackend,
    OwnMemoryBackend,
    runtime_of,
)
from armpy_testing.models.networks import ADD, chain, diamond, f32, floats
from armpy_testing.threads import THREADS, in_threads


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "backend",
    [
        FakeBackend(),
        CompilingBackend(),
        OwnMemoryBackend(operations={Activation}),
        FakeBackend(memory_manager=CountingManager()),
    ],
    ids=["plain", "compiling", "own memory", "memory manager"],
)
def test_threads_that_share_a_model_get_their_own_answers(backend: FakeBackend) -> None:
    model = Model(diamond(), runtime_of(backend))

    def work(number: int) -> None:
        for turn in range(200):
            x = np.full(4, number * 1000 + turn, np.float32)
            np.testing.assert_array_equal(model(x), x + 1 + 3 * x)

    assert in_threads(work) == []


class _JustTaken(deque[object]):
    """Looks as if it held something, which another thread has taken since."""

    def __len__(self) -> int:
        return 1


def test_working_memory_that_another_thread_has_just_taken_is_made_anew() -> None:
    model = Model(diamond(), runtime_of())
    (program,) = model.runtime.get_network(model.network_id).program_cache.programs.values()
    program._idle = _JustTaken()  # type: ignore[union-attr]  # it is compiled
    np.testing.assert_array_equal(model(floats(1, 1, 1, 1)), [5, 5, 5, 5])


def test_backends_memory_is_held_once_for_overlapping_executions() -> None:
    manager = CountingManager()
    model = Model(diamond(), runtime_of(FakeBackend(memory_manager=manager)))
    assert in_threads(lambda _: [model(floats(1, 1, 1, 1)) for _ in range(100)]) == []
    assert (manager.held, manager.most_held) == (0, 1)


class Slow(FakeBackend):
    """Counts how many workloads it makes."""

    def __init__(self) -> None:
        super().__init__("Slow")
        self.made = 0

    def create_workload_factory(self, network):  # type: ignore[no-untyped-def]  # as base
        outer = self
        inner: IWorkloadFactory = super().create_workload_factory(network)

        class Factory(type(inner)):  # type: ignore[misc]  # a class made here
            def create_workload(self, operation, info):  # type: ignore[no-untyped-def]  # as base
                outer.made += 1
                threading.Event().wait(0.01)
                return inner.create_workload(operation, info)

        return Factory({})


def test_threads_that_race_for_a_new_shape_prepare_it_once() -> None:
    backend = Slow()
    model = Model(chain(2, (None,)), runtime_of(backend))
    assert in_threads(lambda _: model(np.zeros(3, np.float32))) == []
    assert backend.made == 2


def test_an_error_while_preparing_releases_its_locks() -> None:
    net = Network()
    net.output("y", net.add(ADD, net.input("a", f32(None)), net.input("b", f32(None))))
    model = Model(net, runtime_of())

    def work(number: int) -> None:
        for _ in range(10):
            if number % 2:
                with pytest.raises(LayerValidationError, match="do not broadcast"):
                    model(floats(1, 2), floats(1, 2, 3))
            else:
                np.testing.assert_array_equal(model(floats(1, 2), floats(1, 2)), [2, 4])

    assert in_threads(work) == []


def counter() -> Graph:
    net = Network()
    state = net.variable("state", f32(1))
    total = net.add(ADD, state, net.input("x", f32(1)))
    net.assign(state, total)
    net.output("total", total)
    return net.build()


def test_a_network_with_state_counts_every_execution_once() -> None:
    model = Model(counter(), runtime_of())
    seen: list[float] = []

    def work(_: int) -> None:
        for _ in range(100):
            result = model(floats(1))
            assert isinstance(result, np.ndarray)
            seen.append(float(result[0]))

    assert in_threads(work) == []
    assert sorted(seen) == list(range(1, THREADS * 100 + 1))


@pytest.mark.slow
def test_networks_are_loaded_and_unloaded_side_by_side() -> None:
    runtime = runtime_of()
    ids: list[int] = []

    def work(number: int) -> None:
        for _ in range(10):
            network = runtime.load_network(chain(1))
            ids.append(network)
            runtime.enqueue_workload(network, {"x": floats(0, 0, 0, 0)})
            runtime.unload_network(network)

    assert in_threads(work) == []
    assert sorted(ids) == list(range(THREADS * 10))


# Models in sub-interpreters


MODEL = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"

SCRIPT = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreter = interpreters.create()
interpreters.run_string(interpreter, f'''
import sys
sys.path[:] = {sys.path!r}
import numpy as np
import armpy
model = armpy.load({sys.argv[1]!r}, backends=[{sys.argv[2]!r}])
scores = model(np.zeros((1, 16, 16, 1), np.int8))
with open({sys.argv[3]!r}, "wb") as file:
    np.save(file, scores)
''')
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not any(importlib.util.find_spec(n) for n in ("_interpreters", "_xxsubinterpreters")),
    reason="this Python has no sub-interpreters",
)
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="NumPy refuses isolated interpreters")
@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
def test_a_model_left_open_in_a_sub_interpreter_lets_the_process_end(
    tmp_path: Path, backend: str
) -> None:
    answer = tmp_path / "scores.npy"
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(MODEL), backend, str(answer)]
    ended = subprocess.run(command, timeout=120, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    with armpy.load(MODEL, backends=["CpuRef"]) as model:
        expected = model(np.zeros((1, 16, 16, 1), np.int8))
    assert np.array_equal(np.load(answer), expected)
