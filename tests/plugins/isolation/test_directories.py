"""Isolated backends from directories, and what they keep on disk."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from armpy import (
    CompilationCaching,
    InvalidArgumentError,
    Runtime,
    RuntimeOptions,
    backend_registry,
)
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.backends.injections import negation
from armpy_testing.models.networks import diamond

DRIVERS = Path(__file__).parents[3] / "backends/dynamic_examples/drivers"
X = np.array([-2, 0, 1, 2], np.float32)
Y = np.array([1, 1, 5, 9], np.float32)  # relu(x) + 1 + 3 relu(x) by hand: 1 + 4 max(x, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "drivers"
    shutil.copytree(DRIVERS, place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


@pytest.mark.slow
def test_a_sample_driver_computes_the_same_in_its_own_process(folder: Path) -> None:
    options = RuntimeOptions(["SampleFaulty"], dynamic_backends_path=folder, isolation="process")
    with Runtime(options) as runtime:
        network = runtime.load_network(diamond())
        np.testing.assert_array_equal(runtime.enqueue_workload(network, {"x": X})["y"], Y)
    assert not [module for module in sys.modules if "Sample" in module]


@pytest.mark.slow
def test_all_backends_of_directories_are_isolated_without_being_imported(folder: Path) -> None:
    options = RuntimeOptions(dynamic_backends_path=folder, isolation="process")
    with Runtime(options) as runtime:
        assert {"SampleFaulty", "CpuRef"} <= set(runtime.isolation)
        registered = {c.backend_id for c in runtime.get_device_spec().candidates}
        assert "SampleFaulty" in registered
        runtime.load_network(negation())
    assert not [module for module in sys.modules if "Sample" in module]


@pytest.mark.slow
def test_confined_worker_keeps_what_it_compiles_where_the_application_says(
    folder: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "kept"
    options = RuntimeOptions(
        ["SampleFaulty"],
        dynamic_backends_path=folder,
        isolation="process",
        caching=CompilationCaching(cache),
    )
    seen = []
    code = folder / "Sample_Faulty_backend.py"
    for is_changed in (False, False, True):
        if is_changed:
            code.write_text(code.read_text() + "# Changed.\n")
        with Runtime(options) as runtime:
            network = runtime.load_network(diamond())
            np.testing.assert_array_equal(runtime.enqueue_workload(network, {"x": X})["y"], Y)
        files = [path for path in cache.rglob("*") if path.is_file()]
        seen.append(sorted(str(path.relative_to(cache)) for path in files))
    assert seen[0]
    assert seen[1] == seen[0]  # found by the same key
    assert set(seen[2]) > set(seen[0])  # what the former code compiled is not used


DAMAGE = """
import builtins, sys
builtins.len = None
sys.modules["json"] = None
"""
"""What ruins the process that imports it."""


@pytest.mark.slow
def test_backends_that_damage_the_interpreter_harm_their_own_processes_alone(
    tmp_path: Path,
) -> None:
    at_creation = f"def backend_factory(): exec({DAMAGE!r})"
    write_module(tmp_path / "plugins", "Acme_A_backend", module_source("A", extra=DAMAGE))
    write_module(tmp_path / "plugins", "Acme_B_backend", module_source("B", extra=at_creation))
    registry = backend_registry(dynamic_backends_path=tmp_path / "plugins")
    registry.deregister("NumbaAcc")
    with Runtime(RuntimeOptions(registry=registry, isolation="process")) as runtime:
        network = runtime.load_network(diamond())
        np.testing.assert_array_equal(runtime.enqueue_workload(network, {"x": X})["y"], Y)
    states = {c.name: c.status.value for c in registry.candidates if c.path}
    assert callable(len)
    assert sys.modules["json"] is json
    assert states.keys() == {"Acme_A_backend", "Acme_B_backend"}
    assert "registered" not in states.values()


@pytest.mark.slow
def test_a_backend_that_is_not_there_cannot_be_isolated(folder: Path) -> None:
    """Another spelling would run in the application's process; names in directories are known."""
    options = RuntimeOptions(dynamic_backends_path=folder, isolation={"SampleFaulty": "process"})
    with Runtime(options) as runtime:
        assert "SampleFaulty" in runtime.isolation
    options = RuntimeOptions(dynamic_backends_path=folder, isolation={"SampleFalty": "process"})
    with pytest.raises(
        InvalidArgumentError, match=r"isolation: .*'SampleFalty'.*mean 'SampleFaulty'"
    ):
        Runtime(options)
    with pytest.raises(InvalidArgumentError, match="'Nope'"):
        Runtime(RuntimeOptions(["CpuRef"], isolation={"Nope": "process"}))
