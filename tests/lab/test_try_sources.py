"""The script that tries source archives installs what projects declare, and nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sources() -> ModuleType:
    path = ROOT / "lab" / "try_sources.py"
    spec = importlib.util.spec_from_file_location("try_sources", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def project(folder: Path, name: str, table: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n{table}\n')


def test_declared_extras_are_followed_and_others_are_not(
    sources: ModuleType, tmp_path: Path
) -> None:
    project(tmp_path, "core", 'dependencies = ["numpy>=2"]\noptional-dependencies.cli = ["click"]')
    project(tmp_path / "testing", "core-testing", 'dependencies = ["core[cli]==1", "pytest>=8"]')
    optional = 'test = ["core-testing"], cli = ["core-b"], old = ["tomli; python_version < \'3\'"]'
    project(
        tmp_path / "extensions" / "a",
        "core-a",
        f'dependencies = ["core==1", "onnx"]\noptional-dependencies = {{ {optional} }}',
    )
    project(tmp_path / "extensions" / "b", "core-b", 'dependencies = ["core-a[cli,old]"]')
    projects = sources.read_projects(tmp_path)
    assert [*projects] == ["core", "core-testing", "core-a", "core-b"]
    wanted = [Requirement("core-a[test]")]
    assert {*sources.declared(wanted, projects)} == {"core", "core-a", "core-testing"}
    assert sources.foreign(wanted, projects) == {"numpy>=2", "click", "onnx", "pytest>=8"}
    wanted = [Requirement("core-b")]
    assert {*sources.declared(wanted, projects)} == {"core", "core-a", "core-b"}
    assert sources.foreign(wanted, projects) == {"numpy>=2", "onnx"}
