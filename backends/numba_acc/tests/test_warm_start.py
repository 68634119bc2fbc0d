from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

START = """
import json
import sys

import numpy as np
from armpy_numba_acc import NumbaBackend

from armpy import Network, Runtime, RuntimeOptions, TensorInfo, watch_progress
from armpy.ops import Convolution2d, FullyConnected
from armpy.plugins import BackendRegistry
from armpy.types import DataType

registry = BackendRegistry()
registry.register("NumbaAcc", NumbaBackend)
weights = np.random.default_rng(0).normal(size=(6, 3, 3, 4)).astype(np.float32)
net = Network()
x = net.input("x", TensorInfo((1, 8, 8, 4), DataType.FLOAT32))
y = net.add(Convolution2d(), x, net.constant(weights))
net.output("y", net.add(FullyConnected(), y, net.constant(np.ones((3, 216), np.float32))))
runtime = Runtime(RuntimeOptions(registry=registry))
steps = []
with watch_progress(lambda step: steps.append([step.done, step.total])):
    number = runtime.load_network(net)
image = np.arange(256, dtype=np.float32).reshape(1, 8, 8, 4) / 256
(result,) = runtime.enqueue_workload(number, {"x": image}).values()
compilers = {"numba", "armpy_numba_acc.llvm.compiler"}
found = sorted(compilers.intersection(sys.modules))
print(json.dumps({"result": result.tolist(), "compilers": found, "steps": steps}))
"""


def start(folder: Path, **variables: str) -> Any:  # Any: JSON
    """What a process says that runs a network and ends."""
    environment = {**os.environ, "ARMPY_CACHE_DIR": str(folder), **variables}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", START], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def cold(folder: Path) -> Any:  # Any: JSON
    return start(folder)


@pytest.mark.slow
def test_a_first_start_compiles_and_says_how_far_it_is(cold: Any) -> None:
    assert cold["compilers"] == ["armpy_numba_acc.llvm.compiler", "numba"]
    total = cold["steps"][0][1]
    assert total > 1
    assert cold["steps"] == [[done, total] for done in range(total + 1)]


@pytest.mark.slow
def test_a_warm_start_imports_no_compiler(cold: Any, folder: Path) -> None:
    assert start(folder) == {**cold, "compilers": [], "steps": []}


@pytest.mark.slow
def test_a_start_without_programs_imports_no_compiler(cold: Any, folder: Path) -> None:
    for path in (folder / "numba_acc").glob("program-*"):
        path.unlink()
    assert start(folder) == {**cold, "compilers": [], "steps": []}


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_costs_time_only(cold: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert start(tmp_path / "file") == cold


@pytest.mark.slow
def test_a_process_that_has_the_backend_and_does_not_use_it_loads_no_library() -> None:
    code = (
        "import importlib, pkgutil, sys; from armpy_numba_acc import NumbaBackend, lowering;"
        "from armpy.backend import PreparationRequest;"
        "NumbaBackend().get_layer_support(PreparationRequest());"
        "names = [module.name for module in pkgutil.iter_modules(lowering.__path__)];"
        "[importlib.import_module(f'{lowering.__name__}.{name}') for name in names];"
        "assert len(names) > 40;"
        "print([name for name in sys.modules if name.split('.')[0] in ('numba', 'llvmlite')])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


@pytest.mark.slow
def test_damaged_code_is_compiled_again(cold: Any, folder: Path) -> None:
    paths = sorted((folder / "numba_acc").glob("object-*"))
    paths[0].write_bytes(paths[0].read_bytes()[:-100])
    again = start(folder)
    assert (again["result"], again["steps"]) == (cold["result"], [[0, 1], [1, 1]])
