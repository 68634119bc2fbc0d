"""The order of calls is the one that the documentation says."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from armpy_reference import ReferenceBackend

from armpy.execution import NetworkProperties, Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.models.networks import ADD, f32, floats
from armpy_testing.watchdogs import use_still_watchdog
from tests.support.recording_backend import Recorder, recording_backend

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "calls_in_order.md"
LISTS = re.compile(r"```text\n(.*?)```", re.DOTALL)
SECTIONS = [part.partition("\n") for part in PAGE.read_text().split("\n## ")]
LISTED = {title: [line.split() for line in LISTS.findall(text)] for title, _, text in SECTIONS}
DOCUMENTED = {title: lists[0] for title, lists in LISTED.items() if lists}


PROFILE = re.findall(r"^IBackend.*[pP]rofiling.*$", PAGE.read_text(), re.MULTILINE)
X = floats(-1, 2)
EXIT = """
import atexit
from tests.execution.test_order_of_calls import model_of
from tests.support.recording_backend import Recorder
recorder = Recorder()
atexit.register(lambda: print(*recorder.calls))  # the first is called last
model = model_of(recorder)
recorder.take()
"""


@pytest.fixture(autouse=True)
def still_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is released but by a look of the test's."""
    use_still_watchdog(monkeypatch)


def sums() -> Graph:
    """``y = x + x + x + x`` on vectors of 2: three layers that the recording backend takes."""
    net = Network()
    x = value = net.input("x", f32(2))
    for name in ("first", "second", "third"):
        value = net.add(ADD, value, x, name=name)
    net.output("y", value)
    return net.build()


def options_of(recorder: Recorder) -> RuntimeOptions:
    return RuntimeOptions(
        backends=["Full", "CpuRef"],
        registry=registry_of(recording_backend(recorder), ReferenceBackend()),
        backend_options={"Full": {"fast": True}},
    )


def model_of(recorder: Recorder) -> Model:
    """A model on a runtime of its own that has run once."""
    model = Model(sums(), Runtime(options_of(recorder)), closes_runtime=True)
    assert model(X).tolist() == [-4, 8]  # type: ignore[union-attr]  # there is one output
    return model


def once(calls: list[str]) -> list[str]:
    """Calls with one, or one pair, in the place of several in a row."""
    return re.sub(
        r"(?<!\S)((?:\S+ ){1,2}?)\1+", r"\1", "".join(f"{call} " for call in calls)
    ).split()


def test_the_order_from_the_first_to_the_last_call() -> None:
    recorder = Recorder()
    seen: dict[str, list[str]] = {}
    options = options_of(recorder)
    recorder.take()
    runtime = Runtime(options)
    seen["A runtime is made"] = recorder.take()
    network = runtime.load_network(sums())
    seen["A network is loaded"] = recorder.take()
    runtime.enqueue_workload(network, {"x": X})
    seen["It is executed"] = recorder.take()
    runtime.enqueue_workload(network, {"x": X})
    again = once(recorder.take())
    assert again == once(seen["It is executed"])[2:]
    model = Model(sums(), runtime)
    model.warm_up()
    recorder.take()
    execution = model.bind({"x": X})
    seen["It is bound to arrays"] = recorder.take()
    execution()
    assert once(recorder.take()) == again
    execution.close()
    assert LISTED["It is bound to arrays"][1:] == [once(recorder.take())]
    model.create_working_memory().close()
    seen["The application makes working memory"] = recorder.take()
    model.close()
    recorder.take()
    runtime.unload_network(network)
    seen["It is unloaded"] = recorder.take()
    runtime.close()
    seen["The runtime goes"] = recorder.take()
    assert {title: once(calls) for title, calls in seen.items()} == DOCUMENTED


def test_the_order_of_a_network_that_is_profiled() -> None:
    recorder = Recorder()
    runtime = Runtime(options_of(recorder))
    recorder.take()
    network = runtime.load_network(sums(), NetworkProperties(profiling=True))
    loading = once(recorder.take())
    profiler = runtime.get_profiler(network)
    assert profiler is not None
    assert profiler.events is not None  # which asks for them
    added = [call for call in loading if call not in DOCUMENTED["A network is loaded"]]
    assert [*added, *recorder.take()] == PROFILE
    position = loading.index("IBackendInternal.create_memory_manager")
    assert loading[position - len(added) : position] == added


def close(models: list[Model]) -> None:
    models.pop().close()


def drop(models: list[Model]) -> None:
    """Without the garbage collector."""
    gc.disable()
    try:
        models.pop()
    finally:
        gc.enable()


def collect(models: list[Model]) -> None:
    """In a ring of references, which the garbage collector finds."""
    ring: list[object] = [models.pop()]
    ring.append(ring)
    del ring
    gc.collect()


ENDS: list[Callable[[list[Model]], None]] = [close, drop, collect]
LAST_CALLS = [*DOCUMENTED["It is unloaded"], *DOCUMENTED["The runtime goes"]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("end", ENDS)
def test_the_order_at_the_end_of_a_runtime(end: Callable[[list[Model]], None]) -> None:
    recorder = Recorder()
    models = [model_of(recorder)]
    recorder.take()
    end(models)
    assert once(recorder.calls) == LAST_CALLS


@pytest.mark.slow
def test_the_order_at_the_interpreters_exit() -> None:
    command = [sys.executable, "-c", EXIT]
    folder = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert once(done.stdout.split()) == LAST_CALLS
