"""The sample drivers: one that declares and caches, one with a queue, one that fails on command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy import CompilationCaching
from armpy.backend import (
    ICompletion,
    NetworkResources,
    PreparationRequest,
    ProgramFit,
    SavedProgram,
)
from armpy.errors import ArmpyError, BackendCapabilityError, BackendUnavailableError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import SubgraphView
from armpy.graph.network import Network
from armpy.ops import FullyConnected
from armpy.types import DataType, DeviceType
from armpy_conformance import run_conformance
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    DurationCode,
    Execution,
    ModelBuilder,
    OperandType,
)
from armpy_testing.effort import part_of_kit
from armpy_testing.example_backends import EXAMPLES
from armpy_testing.models.networks import ADD, RELU, chain, diamond, f32, floats

pytestmark = pytest.mark.slow

DRIVERS = EXAMPLES / "drivers"
RULES = {
    "Caching": ("compiled", "lifecycle"),
    "Faulty": ("support", "lifecycle", "graphs"),
    "Queue": ("executions", "buffers", "arenas", "tensors", "imports", "threads"),
}
"""Of the contract, what each is an example of; all rules are tried in the full form."""

NAMES = [*RULES]
X = floats(-1, 0, 1, 2)
DIAMOND_OF_X = floats(1, 1, 5, 9)  # relu(x) + 1 + 3 relu(x) by hand: 1 + 4 max(x, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy, so that nothing is written in the checkout."""
    place = tmp_path / "drivers"
    shutil.copytree(DRIVERS, place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def runtime_with(folder: Path, name: str, faults: str = "") -> Runtime:
    """One that prefers a driver and has CpuRef for what it does not take."""
    options = {"SampleFaulty": {"faults": faults}} if name == "Faulty" else {}
    ids = [f"Sample{name}", "CpuRef"]
    return Runtime(RuntimeOptions(ids, dynamic_backends_path=folder, backend_options=options))


def run(runtime: Runtime, **feeds: object) -> Any:  # Any: an array of any type
    """The diamond's output."""
    return runtime.enqueue_workload(runtime.load_network(diamond()), feeds or {"x": X})["y"]


def test_every_driver_is_tested() -> None:
    assert [path.stem.split("_")[1] for path in sorted(DRIVERS.glob("*_backend.py"))] == NAMES


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Caching", marks=pytest.mark.nightly),
        pytest.param("Faulty", marks=pytest.mark.nightly),
        "Queue",
    ],
)
def test_each_passes_the_conformance_kit(folder: Path, name: str) -> None:
    options = RuntimeOptions(dynamic_backends_path=folder)
    layers = ("ElementwiseBinary", "Activation", "FullyConnected", "pattern/")
    rules = (f"contract/{area}/" for area in RULES[name])
    parts = part_of_kit(*rules, *layers)
    result = run_conformance(f"Sample{name}", runtime_options=options, filter=parts)
    assert not result.problems
    for part in layers:
        assert any(part in result.case and result.ran for result in result.results), part


@pytest.mark.parametrize("name", NAMES)
def test_each_computes_a_whole_network_by_itself(folder: Path, name: str) -> None:
    with runtime_with(folder, name) as runtime:
        network = runtime.load_network(diamond())
        y = runtime.enqueue_workload(network, {"x": X})["y"]
        np.testing.assert_array_equal(y, DIAMOND_OF_X)
        placement = runtime.get_network(network).placement
    assert placement is not None
    assert set(placement.layers_by_backend) == {f"Sample{name}"}


def fully_connected() -> Network:
    """``relu(x W^T + b) + x``, x of (2, 2)."""
    net = Network("fully connected")
    x = net.input("x", f32(2, 2))
    weights = net.constant(np.array([[1, 2], [3, -4]], np.float32))
    product = net.add(FullyConnected(), x, weights, net.constant(floats(0, 1)))
    net.output("y", net.add(ADD, net.add(RELU, product), x))
    return net


X_2 = np.array([[1, 1], [2, 0]], np.float32)
Y_2 = [[4, 1], [4, 7]]  # by hand: relu([[3, -1 + 1], [2, 6 + 1]]) + x


def caching_driver(folder: Path) -> Any:  # Any: its class is in a file that only armpy loads
    return runtime_with(folder, "Caching").registry.get("SampleCaching")


def saved_program(driver: Any) -> SavedProgram:
    """What the driver writes down of the fully connected network."""
    graph = fully_connected().build()
    view = SubgraphView.of(graph, graph.layers)
    (substitution,) = driver.optimize_subgraph_view(view, PreparationRequest()).substitutions
    (layer,) = substitution.replacement.layers
    saved: SavedProgram = driver.get_programs().save(layer.operation.program, {})
    return saved


def test_what_was_saved_runs_without_being_compiled_again(folder: Path) -> None:
    driver = caching_driver(folder)
    saved, programs = saved_program(driver), driver.get_programs()
    assert np.frombuffer(saved.parts["constants"], "<f4").tolist() == [1, 2, 3, -4, 0, 1]
    assert saved.code == ()
    about = json.loads(json.dumps(saved.about))
    assert programs.check(about, {}).fit is ProgramFit.ACCEPTED
    program = programs.load(saved._replace(about=about))
    assert driver.num_compiled == 1
    y = np.empty((2, 2), np.float32)
    program.run([X_2], [y])
    assert y.tolist() == Y_2


@pytest.mark.parametrize("about", [{}, {"format": "sample program 0"}, {"format": ["odd"]}])
def test_programs_of_another_format_are_refused(folder: Path, about: dict[str, object]) -> None:
    check = caching_driver(folder).get_programs().check(about, {})
    assert check.fit is ProgramFit.REBUILD
    assert "the format is" in check.reason


def changed(saved: SavedProgram, old: str, new: str) -> SavedProgram:
    """The same with something else in its notes."""
    text = json.dumps(saved.about)
    assert old in text
    return saved._replace(about=json.loads(text.replace(old, new)))


def test_what_holds_no_program_is_refused(folder: Path) -> None:
    driver = caching_driver(folder)
    saved, programs = saved_program(driver), driver.get_programs()
    constants = saved.parts["constants"]
    for wrong, why in (
        (saved._replace(parts={}), "constants"),
        (saved._replace(parts={"constants": constants[4:]}), "do not take 20 bytes"),
        (saved._replace(about={"format": saved.about["format"]}), "missing or odd"),
        (changed(saved, '"outputs": [', '"outputs": [77, '), "not between 0 and"),
        (changed(saved, "CLAMP", "UPPER"), r"no functions \{'UPPER'\}"),
        (changed(saved, '"num_inputs": 1', '"num_inputs": [1]'), "missing or odd"),
    ):
        with pytest.raises(BackendCapabilityError, match=f"holds no program: .*{why}"):
            programs.load(wrong)


def test_what_the_caching_driver_declares_is_read(folder: Path) -> None:
    with runtime_with(folder, "Caching") as runtime:
        facts = runtime.devices[0]
    assert facts.figures is not None
    assert facts.figures.tensors[DataType.FLOAT32].exec_time == 0.8
    assert (facts.num_cache_files, facts.num_data_cache_files) == (1, 1)
    assert (facts.type, facts.feature_level) == (DeviceType.ACCELERATOR, 29)


def test_the_core_keeps_what_the_caching_driver_compiles(folder: Path, tmp_path: Path) -> None:
    caching = CompilationCaching(tmp_path / "cache")
    options = RuntimeOptions(["SampleCaching"], dynamic_backends_path=folder, caching=caching)
    for is_hit in (False, True):
        with Runtime(options) as runtime:
            network = runtime.load_network(fully_connected())
            y = runtime.enqueue_workload(network, {"x": X_2})["y"]
            assert np.asarray(y).tolist() == Y_2
            placement = runtime.get_network(network).placement
            driver: Any = runtime.registry.get("SampleCaching")
            assert driver.num_compiled == (0 if is_hit else 1)
        assert placement is not None
        assert [use.is_hit for use in placement.cache_uses] == [is_hit]


def test_the_queue_answers_before_its_device_is_done(folder: Path) -> None:
    runtime = runtime_with(folder, "Queue")
    driver: Any = runtime.registry.get("SampleQueue")
    module = sys.modules[type(driver).__module__]
    handles = [module.BufferHandle(f32(4)) for _ in range(2)]
    handles[0].copy_in_from(X)
    workload = driver.create_workload_factory(NetworkResources()).create_workload(RELU, None)
    driver._queue.submit(time.sleep, 0.1)
    completion = workload.enqueue(handles[:1], handles[1:])
    assert isinstance(completion, ICompletion)
    assert not completion.wait(0)
    assert handles[1].map(write=False).tolist() == [0, 0, 0, 0]
    handles[1].unmap()
    assert completion.wait()
    result = np.empty(4, np.float32)
    handles[1].copy_out_to(result)
    assert result.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("isolation", [{}, {"SampleQueue": "process"}])
@pytest.mark.parametrize("way", ["compute", "start", "fenced"])
def test_the_queue_reports_the_time_of_its_device(
    folder: Path, way: str, isolation: dict[str, str]
) -> None:
    options = RuntimeOptions(["SampleQueue"], dynamic_backends_path=folder, isolation=isolation)
    with DeviceManager(options) as manager:
        builder = ModelBuilder()
        total = builder.add(*(builder.input(np.float32, (4,)) for _ in range(2)))
        compilation = Compilation.create_for_devices(builder.finish(total), manager.devices)
        compilation.finish()
        execution, result = Execution(compilation), np.zeros(4, np.float32)
        execution.set_measure_timing(True)
        for index in (0, 1):
            execution.set_input(index, X)
        execution.set_output(0, result, OperandType.of(result))
        if way == "compute":
            execution.compute()
        elif way == "start":
            execution.start_compute().wait(30)
        else:
            execution.start_compute_with_dependencies([]).wait(30)
        assert result.tolist() == [-2, 0, 2, 4]
        on_hardware = execution.get_duration(DurationCode.ON_HARDWARE)
        assert 0 < on_hardware <= execution.get_duration(DurationCode.IN_DRIVER) < 60 * 10**9


EXITS = {"abort": -6, "segfault": -11, "kill": -9, "exit": 0}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("load", "exit"),
        ("open", "kill"),
        ("support", "segfault"),
        ("optimize", "abort"),
        ("prepare", "segfault"),
        ("execute", "abort"),
        ("execute", "segfault"),
        ("execute", "kill"),
        ("execute", "exit"),
    ],
)
def test_the_faulty_one_ends_its_process_at_a_set_place(
    folder: Path, place: str, kind: str
) -> None:
    done = in_a_process(folder, f"{place}={kind}")
    assert done.returncode == EXITS[kind]
    assert "the answer is" not in done.stdout


def in_a_process(
    folder: Path, faults: str, timeout_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a chain of one layer in a process that has the faults in its environment."""
    program = f"""
import numpy as np
from armpy.execution import Runtime, RuntimeOptions
from armpy_testing.models.networks import chain
options = RuntimeOptions(["SampleFaulty"], dynamic_backends_path={str(folder)!r})
with Runtime(options) as runtime:
    network = runtime.load_network(chain(1))
    print("the answer is", runtime.enqueue_workload(network, {{"x": np.zeros(4, np.float32)}}))
"""
    # Compiled parts of another process would be restored: then nothing is optimised.
    with tempfile.TemporaryDirectory() as cache:
        return subprocess.run(
            [sys.executable, "-X", "faulthandler=0", "-c", program],
            env=os.environ | {"ARMPY_SAMPLE_FAULTS": faults, "ARMPY_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )


def test_without_faults_the_same_process_answers(folder: Path) -> None:
    done = in_a_process(folder, "")
    assert (done.returncode, done.stdout.strip()) == (
        0,
        "the answer is {'y': array([1., 1., 1., 1.], dtype=float32)}",
    )


def test_it_hangs_at_a_set_place(folder: Path) -> None:
    with ThreadPoolExecutor() as pool:  # they need not wait for each other
        hung = {
            place: pool.submit(in_a_process, folder, f"{place}=hang", timeout_s=4)
            for place in ("load", "execute", "close")
        }
    for place, done in hung.items():
        assert isinstance(done.exception(), subprocess.TimeoutExpired), place


@pytest.mark.parametrize(
    "faults",
    [
        "support=raise",
        "support=raise_other",
        "support=none",
        "support=refuse",
        "optimize=raise",
        "optimize=raise_other",
        "optimize=shapes",
        "optimize=drop",
        "optimize=none",
        "prepare=raise",
        "prepare=raise_other",
        "prepare=none",
    ],
)
def test_what_it_cannot_prepare_runs_elsewhere(folder: Path, faults: str) -> None:
    with runtime_with(folder, "Faulty", faults) as runtime:
        network = runtime.load_network(diamond())
        y = runtime.enqueue_workload(network, {"x": X})["y"]
        np.testing.assert_array_equal(y, DIAMOND_OF_X)
        placement = runtime.get_network(network).placement
    assert placement is not None
    assert set(placement.layers_by_backend) == {"CpuRef"}


def test_it_refuses_to_open(folder: Path) -> None:
    options = RuntimeOptions(
        ["SampleFaulty"],
        dynamic_backends_path=folder,
        backend_options={"SampleFaulty": {"faults": "open=raise"}},
    )
    with pytest.raises((BackendUnavailableError, ArmpyError), match="reports a failure"):
        Runtime(options)


@pytest.mark.parametrize(
    ("faults", "text"),
    [
        ("execute=raise", "the device reports a failure"),
        ("execute=raise_other", "a mistake of the driver in 'execute'"),
    ],
)
def test_it_raises_when_it_executes(folder: Path, faults: str, text: str) -> None:
    with runtime_with(folder, "Faulty", faults) as runtime, pytest.raises(ArmpyError, match=text):
        run(runtime)


def test_it_lies_when_it_executes(folder: Path) -> None:
    with runtime_with(folder, "Faulty", "execute=wrong") as runtime:
        np.testing.assert_array_equal(run(runtime), DIAMOND_OF_X + 1)
    with runtime_with(folder, "Faulty", "execute=nan") as runtime:
        assert np.isnan(run(runtime)).all()


def test_it_fails_at_a_set_call_and_value(folder: Path) -> None:
    with runtime_with(folder, "Faulty", "execute=raise:2, execute=wrong@7") as runtime:
        network = runtime.load_network(chain(1))

        def answer(value: float) -> float:
            feeds = {"x": np.full(4, value, np.float32)}
            return float(runtime.enqueue_workload(network, feeds)["y"][0])

        assert answer(1) == 2
        with pytest.raises(ArmpyError, match="reports a failure"):
            answer(1)
        assert answer(7) == 9
        assert answer(1) == 2


def test_it_gives_back_the_memory_that_it_has_eaten(folder: Path) -> None:
    done = in_a_process(folder, "execute=eat")
    assert done.returncode == 1
    assert "pieces of 16 MiB were not enough" in done.stderr


@pytest.mark.parametrize("faults", ["explode", "execute=explode", "load=wrong", "execute=abort:x"])
def test_a_fault_that_there_is_not_is_refused(folder: Path, faults: str) -> None:
    with pytest.raises(ArmpyError, match="cannot fail like that"):
        runtime_with(folder, "Faulty", faults).load_network(chain(1))
