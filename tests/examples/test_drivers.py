"""The sample driver, which keeps its programs and fails on command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy.backend import (
    PreparationRequest,
    ProgramFit,
    SavedProgram,
)
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import SubgraphView
from armpy.graph.network import Network
from armpy.ops import FullyConnected
from armpy_conformance import run_conformance
from armpy_testing.effort import part_of_kit
from armpy_testing.example_backends import EXAMPLES
from armpy_testing.models.networks import ADD, RELU, diamond, f32, floats

pytestmark = pytest.mark.slow

DRIVERS = EXAMPLES / "drivers"
X = floats(-1, 0, 1, 2)
DIAMOND_OF_X = floats(1, 1, 5, 9)  # relu(x) + 1 + 3 relu(x) by hand: 1 + 4 max(x, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy, so that nothing is written in the checkout."""
    place = tmp_path / "drivers"
    shutil.copytree(DRIVERS, place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def runtime_with(folder: Path, faults: str = "") -> Runtime:
    """Make a runtime that prefers the driver and has CpuRef for what it does not take."""
    options = {"SampleFaulty": {"faults": faults}}
    ids = ["SampleFaulty", "CpuRef"]
    return Runtime(RuntimeOptions(ids, dynamic_backends_path=folder, backend_options=options))


def driver_of(folder: Path) -> Any:  # Any: its class is in a file that only armpy loads
    """Load the driver without faults."""
    return runtime_with(folder).registry.get("SampleFaulty")


def run(runtime: Runtime, **feeds: object) -> Any:  # Any: an array of any type
    """The diamond's output."""
    return runtime.enqueue_workload(runtime.load_network(diamond()), feeds or {"x": X})["y"]


@pytest.mark.nightly
def test_without_faults_it_passes_the_conformance_kit(folder: Path) -> None:
    options = RuntimeOptions(dynamic_backends_path=folder)
    layers = ("ElementwiseBinary", "Activation", "FullyConnected", "pattern/")
    rules = (f"contract/{area}/" for area in ("compiled", "support", "lifecycle", "graphs"))
    parts = part_of_kit(*rules, *layers)
    result = run_conformance("SampleFaulty", runtime_options=options, filter=parts)
    assert not result.problems
    for part in layers:
        assert any(part in result.case and result.ran for result in result.results), part


def test_without_faults_it_computes_a_whole_network_by_itself(folder: Path) -> None:
    with runtime_with(folder) as runtime:
        network = runtime.load_network(diamond())
        y = runtime.enqueue_workload(network, {"x": X})["y"]
        np.testing.assert_array_equal(y, DIAMOND_OF_X)
        placement = runtime.get_network(network).placement
    assert placement is not None
    assert set(placement.layers_by_backend) == {"SampleFaulty"}


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


def saved_program(driver: Any) -> SavedProgram:
    """What the driver writes down of the fully connected network."""
    graph = fully_connected().build()
    view = SubgraphView.of(graph, graph.layers)
    (substitution,) = driver.optimize_subgraph_view(view, PreparationRequest()).substitutions
    (layer,) = substitution.replacement.layers
    saved: SavedProgram = driver.get_programs().save(layer.operation.program, {})
    return saved


def test_what_was_saved_runs_without_being_compiled_again(folder: Path) -> None:
    driver = driver_of(folder)
    saved, programs = saved_program(driver), driver.get_programs()
    assert np.frombuffer(saved.parts["constants"], "<f4").tolist() == [1, 2, 3, -4, 0, 1]
    assert saved.code == ()
    about = json.loads(json.dumps(saved.about))
    assert programs.check(about, {}).fit is ProgramFit.ACCEPTED
    program = programs.load(saved._replace(about=about))
    y = np.empty((2, 2), np.float32)
    program.run([X_2], [y])
    assert y.tolist() == Y_2


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
    with runtime_with(folder, faults) as runtime:
        network = runtime.load_network(diamond())
        y = runtime.enqueue_workload(network, {"x": X})["y"]
        np.testing.assert_array_equal(y, DIAMOND_OF_X)
        placement = runtime.get_network(network).placement
    assert placement is not None
    assert set(placement.layers_by_backend) == {"CpuRef"}


def test_it_lies_when_it_executes(folder: Path) -> None:
    with runtime_with(folder, "execute=wrong") as runtime:
        np.testing.assert_array_equal(run(runtime), DIAMOND_OF_X + 1)
    with runtime_with(folder, "execute=nan") as runtime:
        assert np.isnan(run(runtime)).all()
