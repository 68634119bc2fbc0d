"""All broken examples in one directory with a good one, and each by itself."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from armpy import NetworkProperties
from armpy.errors import BackendError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.model import Model
from armpy.plugins import BackendRegistry, Candidate, CandidateStatus, PluginOptions
from armpy_conformance import run_conformance
from armpy_testing.example_backends import EXAMPLES
from armpy_testing.models.networks import ADD, f32, floats

BROKEN = EXAMPLES / "broken"
HANG_TIMEOUT_S = 3.0

HARMLESS = {
    "NoGetBackendId": (CandidateStatus.REJECTED, r"it has no get_backend_id\(\)"),
    "NullId": (CandidateStatus.REJECTED, "its get_backend_id returned None"),
    "DuplicateId": (CandidateStatus.DUPLICATE, "another backend has the id 'CpuRef'"),
    "VersionTooNew": (CandidateStatus.REJECTED, r"made for API version 2\.999"),
    "OtherMajor": (CandidateStatus.REJECTED, r"made for API version 1\.5"),
    "WrongInstance": (CandidateStatus.REJECTED, "its factory made object, not an IBackendInternal"),
    "ExceptionAtImport": (CandidateStatus.FAILED, "RuntimeError: the device does not answer"),
    "SystemExitAtImport": (CandidateStatus.FAILED, "SystemExit: usage: tool"),
    "MissingDependency": (CandidateStatus.FAILED, "No module named 'acme_accelerator_runtime'"),
    "SyntaxError": (CandidateStatus.FAILED, r"SyntaxError: .*line 3"),
}
"""Status and reason of broken modules that do not end the process."""

DEADLY = {
    "AbortAtImport": (CandidateStatus.CRASHED, "SIGABRT"),
    "SegfaultAtImport": (CandidateStatus.CRASHED, "SIGSEGV"),
    "ExitAtImport": (CandidateStatus.CRASHED, "exited with code 0"),
    "HangAtImport": (CandidateStatus.HUNG, "did not finish within 3 s"),
}
"""The others, which are only survived with a probe."""

FALLS_BACK = {
    "WrongTypes": r"get_layer_support: the answer has the wrong type.*got 'everything'",
    "FailsToPrepare": r"preparation failed: .*the device has no memory left",
    "OptimizeRaises": r"optimize_subgraph_view: .*the compiler does not know this pattern",
    "DropsLayers": r"does not hold every layer of the offered view exactly once",
}
"""Modules that load, and why their layers go to the next backend."""

LIES = ("FailsToExecute", "WrongResults", "MutatesInputs")
"""Modules that load and prepare."""


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the many warnings out of the report, and probe results out of the user's cache."""
    monkeypatch.setattr(logging.getLogger("armpy.plugins"), "disabled", True)
    monkeypatch.setattr(logging.getLogger("armpy.compiler"), "disabled", True)
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def directory(path: Path, names: Mapping[str, object] | tuple[str, ...]) -> Path:
    """A directory with some broken modules and the good one."""
    for name in names:
        shutil.copy(BROKEN / f"Broken_{name}_backend.py", path)
    shutil.copy(EXAMPLES / "single_file" / "Arm_SampleDynamic_backend.py", path)
    shutil.copytree(BROKEN / "Broken_common", path / "Broken_common")
    return path


def addition(runtime: Runtime, properties: NetworkProperties | None = None) -> Model:
    """The sum of two vectors."""
    net = Network("addition")
    net.output("y", net.add(ADD, net.input("a", f32(2)), net.input("b", f32(2))))
    return Model(net, runtime, properties=properties)


def check_good_one(runtime: Runtime) -> None:
    """Check that the good backend is used with nothing named."""
    model = addition(runtime)
    assert model.placement is not None
    assert model.placement.layers_by_backend == {"SampleDynamic": 1}
    np.testing.assert_array_equal(model(floats(5, 3), floats(10, 8)), floats(15, 11))


def check_reasons(
    runtime: Runtime, expected: Mapping[str, tuple[CandidateStatus, str]]
) -> dict[str, Candidate]:
    """Check what became of each broken module."""
    candidates = {c.name: c for c in runtime.get_device_spec().candidates}
    for name, (status, reason) in expected.items():
        candidate = candidates[f"Broken_{name}_backend"]
        assert candidate.status is status, name
        assert re.search(reason, candidate.reason), f"{name}: {candidate.reason}"
    return candidates


def test_the_table_covers_every_broken_module() -> None:
    modules = {path.name.split("_")[1] for path in BROKEN.glob("*_backend.py")}
    assert modules == {*HARMLESS, *DEADLY, *FALLS_BACK, *LIES}


@pytest.mark.slow
def test_with_a_probe_all_of_them_are_survived(tmp_path: Path) -> None:
    everything = (*HARMLESS, *DEADLY, *FALLS_BACK, *LIES)
    options = PluginOptions(
        dynamic_backends_path=directory(tmp_path, everything),
        probe=True,
        probe_timeout_s=HANG_TIMEOUT_S,
    )
    runtime = Runtime(RuntimeOptions(registry=BackendRegistry.discover(options)))
    check_reasons(runtime, HARMLESS | DEADLY)
    check_good_one(runtime)


def broken_first(path: Path, name: str) -> Runtime:
    """A runtime that prefers one broken backend to CpuRef."""
    options = RuntimeOptions(
        dynamic_backends_path=directory(path, (name,)), backends=[f"Broken{name}", "CpuRef"]
    )
    return Runtime(options)


@pytest.mark.parametrize("name", FALLS_BACK)
def test_what_fails_before_a_network_runs_falls_back_with_the_reason(
    name: str, tmp_path: Path
) -> None:
    model = addition(broken_first(tmp_path, name))
    assert model.placement is not None
    assert model.placement.layers_by_backend == {"CpuRef": 1}
    (refusal,) = model.placement.refusals
    assert re.search(FALLS_BACK[name], refusal.text)
    np.testing.assert_array_equal(model(floats(5, 3), floats(10, 8)), floats(15, 11))


def test_a_failing_execution_is_an_error_that_names_backend_and_layer(tmp_path: Path) -> None:
    model = addition(broken_first(tmp_path, "FailsToExecute"))
    with pytest.raises(BackendError, match=r"BrokenFailsToExecute / Elem.*the device was removed"):
        model(floats(5, 3), floats(10, 8))


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LIES)
def test_the_conformance_kit_finds_who_lies_about_support(name: str, tmp_path: Path) -> None:
    options = RuntimeOptions(dynamic_backends_path=directory(tmp_path, (name,)))
    result = run_conformance(f"Broken{name}", runtime_options=options, filter="ElementwiseBinary/")
    assert {problem.operation for problem in result.problems} == {"ElementwiseBinary"}
