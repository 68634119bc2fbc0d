"""Networks that are dropped, exhausted memory, and what must not leak."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Reshape
from armpy_testing.backends.dynamic_modules import private_modules, write_module
from armpy_testing.backends.fake_backends import (
    CompilingBackend,
    FakeBackend,
    Handles,
    Outputs,
    OwnMemoryBackend,
    Step,
    runtime_of,
)
from armpy_testing.effort import effort
from armpy_testing.models.networks import ADD, chain, diamond, f32, floats, i32, ints
from armpy_testing.shared import shared_file


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
        alive.extend(
            weakref.ref(thing)
            for thing in (model, network, *network.program_cache.programs.values())
        )
        model.close()
        if isinstance(backend, CompilingBackend):
            backend.offered.clear()  # it keeps what it was offered, for other tests

    tracemalloc.start()
    try:
        for number in range(effort(60)):
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


@pytest.mark.slow
def test_a_closed_model_frees_its_network_even_if_the_model_is_kept() -> None:
    model = Model(diamond(), runtime_of())
    network = weakref.ref(model.runtime.get_network(model.network_id))
    model.close()
    gc.collect()
    assert network() is None


@pytest.mark.slow
def test_arrays_of_the_caller_are_let_go_after_an_execution() -> None:
    model = Model(diamond(), runtime_of())
    x = floats(1, 2, 3, 4)
    result = model(x)
    assert isinstance(result, np.ndarray)
    arrays = [weakref.ref(x), weakref.ref(result)]
    del x, result
    gc.collect()
    assert [array() for array in arrays] == [None, None]


@pytest.mark.slow
def test_arrays_of_the_caller_are_let_go_after_a_failure() -> None:
    model = Model(diamond(), runtime_of(FakeBackend(faults={"execute": ValueError("oops")})))
    x = floats(1, 2, 3, 4)
    with pytest.raises(ArmpyError):
        model(x)
    array = weakref.ref(x)
    del x
    gc.collect()
    assert array() is None


class Noting(FakeBackend):
    """Keeps the tensors that its layers write."""

    def __init__(self) -> None:
        super().__init__("Noting")
        self.written: list[object] = []

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        self.written += outputs
        super().execute(step, inputs, outputs)


# Objects that are dropped without being closed leak nothing


DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
X = floats(-1, 2, 3, 4)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a backend, which every registry looks into."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "modules"
    write_module(folder, "Arm_TestDynamic_backend")
    folder.chmod(0o755)
    monkeypatch.setenv("ARMPY_DYNAMIC_BACKENDS_PATH", str(folder))
    return folder


def num_descriptors() -> int:
    """Files that this process has open; 0 where that is unknown."""
    path = Path("/proc/self/fd")
    return len(os.listdir(path)) if path.exists() else 0


def use_runtime() -> object:
    runtime = Runtime(RuntimeOptions(backends=["TestDynamic", "CpuRef"], profiling=True))
    Model(chain(), runtime)(X)
    return runtime.registry.get("TestDynamic")


def use_native_code() -> object:
    runtime = Runtime(RuntimeOptions(backends=["NumbaAcc", "TestDynamic", "CpuRef"], num_threads=2))
    Model(chain(), runtime)(X)
    return runtime


def load_file() -> object:
    return armpy.load(DIGITS, backends=["TestDynamic"])


def ask_devices() -> object:
    nnapi = pytest.importorskip("armpy_nnapi", reason="armpy-nnapi is not installed")
    manager = nnapi.DeviceManager(RuntimeOptions())
    assert "TestDynamic" in [device.backend_id for device in manager.devices]
    return manager


def fail_to_make() -> object:
    options = {"TestDynamic": {"unknown": 1}}
    with pytest.raises(InvalidArgumentError, match="no option 'unknown'") as caught:
        Runtime(RuntimeOptions(backends=["TestDynamic"], backend_options=options))
    return caught.value


def num_threads() -> int:
    """Threads that run, without those of the process for deadlines and idle memory, which end."""
    of_the_process = ("armpy-deadlines", "armpy-idling")
    return sum(thread.name not in of_the_process for thread in threading.enumerate())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("use", "count"),
    [
        (use_runtime, 100),
        (use_native_code, 30),
        (load_file, 20),
        (ask_devices, 20),
        (fail_to_make, 20),
    ],
)
def test_what_is_dropped_leaves_nothing(
    directory: Path, use: Callable[[], object], count: int
) -> None:
    use()  # what is made once for the process
    gc.collect()
    assert not private_modules()
    threads, descriptors = num_threads(), num_descriptors()
    left = [weakref.ref(use()) for _ in range(count)]
    gc.collect()
    assert not private_modules()
    assert not [reference for reference in left if reference() is not None]
    assert num_threads() <= threads
    assert num_descriptors() <= descriptors


@pytest.mark.slow
def test_a_runtime_goes_with_its_last_model_without_the_collector(directory: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        model = armpy.load(DIGITS, backends=["TestDynamic"])
        assert private_modules()
        del model
        assert not private_modules()
    finally:
        gc.enable()


# A process without memory, or without its working directory: armpy's own errors, or answers


MODEL = ("models", "mlperf_tiny", "kws_ref_model.tflite")
ROOT = Path(__file__).parents[2]

WITHOUT_MEMORY = """\
import resource, sys
import numpy as np
import armpy
from armpy import DataType, Model, Network, Runtime, RuntimeOptions, TensorInfo, ops

def limit(extra_bytes):
    text = open("/proc/self/status").read()
    used = int(text.partition("VmData:")[2].split()[0]) << 10
    limit = resource.RLIM_INFINITY if extra_bytes is None else used + extra_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))

def negation(size):
    net = Network("negation")
    x = net.input("x", TensorInfo((size,), DataType.FLOAT32))
    for _ in range(2):
        x = net.add(ops.ElementwiseUnary(ops.UnaryOperation.NEG), x)
    net.output("y", x)
    return net

SIZE = 8 << 20
runtime = Runtime(RuntimeOptions(backends=["CpuRef"]))
model, given = Model(negation(SIZE), runtime), np.ones(SIZE, np.float32)
model.run({"x": given[:SIZE]})
calls = {
    "call": lambda: model(given),
    "run": lambda: model.run({"x": given}),
    "enqueue": lambda: runtime.enqueue_workload(0, {"x": given}),
    "start": lambda: model.start({"x": given}).result(30),
    "bind": lambda: model.bind({"x": given})(),
    "deadline": lambda: model.run({"x": given}, deadline_s=30.0),
    "load": lambda: armpy.load(sys.argv[1], backends=["CpuRef"]),
    "network": lambda: Model(negation(SIZE + 1), runtime),
}
model.start({"x": given}).result(30)  # the threads are there
for name, call in calls.items():
    model.free_working_memory()
    for extra_bytes in (2 << 20, 20 << 20, 60 << 20):
        limit(extra_bytes)
        try:
            call()
            outcome = "answered"
        except armpy.ArmpyError as error:
            outcome = type(error).__name__
        finally:
            limit(None)
        print(name, extra_bytes, outcome)
assert (model(given) == given).all()
"""


def done(program: str, *arguments: str, folder: Path) -> str:
    """What a program prints."""
    environment = os.environ | {"ARMPY_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits what Linux counts")
def test_process_without_memory_gets_armpys_error(tmp_path: Path) -> None:
    lines = done(WITHOUT_MEMORY, str(shared_file(*MODEL)), folder=tmp_path).splitlines()
    outcomes = [line.split()[-1] for line in lines]
    errors = {"MemoryLimitError", "BackendError", "BackendCapabilityError", "QueueFullError"}
    assert set(outcomes) <= errors | {"answered"}
    assert outcomes.count("MemoryLimitError") >= 5, lines
