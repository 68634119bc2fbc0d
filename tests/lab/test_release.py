"""The scripts that try wheels and build a release."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "lab"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, ""),
        ({"outputs": [{"classes": [{"index": 1}]}]}, "the digit was read as 1"),
        ({"layers_by_backend": {"CpuRef": 10}}, "it ran on CpuRef"),
    ],
)
def test_wheels_are_judged_by_the_digit_and_the_backend(
    changed: dict[str, object], problem: str
) -> None:
    document = {
        "outputs": [{"classes": [{"index": 7}]}],
        "layers_by_backend": {"NumbaAcc": 10},
    }
    assert script("try_wheels").wrong_in(json.dumps(document | changed), "NumbaAcc") == problem


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return script("release")


def test_a_release_needs_one_version_and_a_dated_section(release: ModuleType) -> None:
    core = {"project": {"name": "armpy", "version": "1.2.0"}}
    good = {"name": "armpy-onnx", "version": "1.2.0", "dependencies": ["armpy==1.2.0", "onnx>=1"]}
    assert not [*release.version_problems([core, {"project": good}])]
    late = {**good, "version": "1.1.0", "dependencies": ["armpy>=1.2.0"]}
    assert [*release.version_problems([core, {"project": late}])] == [
        "armpy-onnx has version 1.1.0. Expected 1.2.0.",
        "armpy-onnx requires armpy>=1.2.0. Expected armpy==1.2.0.",
    ]
    groups = {"armpy.backends": {"Acme": "armpy_acme:Backend"}}
    backend = {**good, "name": "armpy-acme", "dependencies": ["armpy>=1.1"], "entry-points": groups}
    assert not [*release.version_problems([core, {"project": backend}])]
    early = {**backend, "dependencies": ["armpy>=1.1,<1.2"]}
    assert [*release.version_problems([core, {"project": early}])] == [
        "armpy-acme requires armpy>=1.1,<1.2. Expected a range with 1.2.0."
    ]
    assert not [*release.changelog_problems("## 1.2.0 (2026-12-01)\n", "1.2.0")]
    (problem,) = release.changelog_problems("## 1.2.0 (unreleased)\n", "1.2.0")
    assert "has no date" in problem
    (problem,) = release.changelog_problems("## 1.2.0 (2026-12-01)\n", "1.3.0")
    assert "has no section '## 1.3.0" in problem
    assert not [*release.tag_problems("", "1.2.0"), *release.tag_problems("v1.2.0", "1.2.0")]
    assert [*release.tag_problems("v1.2.1", "1.2.0")] == ["The tag is v1.2.1. Expected v1.2.0."]


def test_the_versions_of_this_tree_agree(release: ModuleType) -> None:
    projects = release.read_projects(release.ROOT)
    backends = {"armpy-litert", "armpy-native", "armpy-onnxruntime", "armpy-openvino"}
    assert set(release.backend_names(projects.values())) == backends
    places = ("extensions/*/pyproject.toml", "backends/*/pyproject.toml")
    others = [path for place in places for path in release.ROOT.glob(place)]
    assert len(projects) == 2 + len(others) - len(["numba_acc", "reference"])  # armpy's wheel
    assert not [*release.version_problems(projects.values())]
