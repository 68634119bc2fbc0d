"""The wheel holds every package of the tree; backends and tools state the same as the root."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from armpy.backend import BACKEND_API_VERSION
from armpy.plugins import extension_tables

ROOT = Path(__file__).parents[1]
ROOTS = {
    "armpy": ".",
    "armpy_numba_acc": "backends/numba_acc",
    "armpy_reference": "backends/reference",
}
"""Where the packages of the wheel are."""


@pytest.mark.slow
def test_the_wheel_holds_every_stub_and_every_mark_of_types() -> None:
    """They are packed without being listed anywhere."""
    # In a process of its own: setuptools replaces distutils in the one that imports it.
    program = """import sys; from setuptools import Distribution
build = Distribution({"script_name": "setup.py", "packages": ["armpy"]}).get_command_obj("build_py")
build.ensure_finalized()
build.manifest_files = {}
for folder in sys.argv[1:]:
    print(*build.find_data_files(folder.replace("/", "."), folder), sep="\\n")"""
    for name, root in ROOTS.items():
        stubs = [*(ROOT / root / name).rglob("*.pyi"), ROOT / root / name / "py.typed"]
        folders = {path.parent.relative_to(ROOT / root).as_posix() for path in stubs}
        command = [sys.executable, "-c", program, *sorted(folders)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT / root)
        assert {ROOT / root / line for line in done.stdout.split()} >= set(stubs)


def test_source_archives_do_not_depend_on_who_builds_them() -> None:
    defaults = ConfigParser()
    defaults.read(ROOT / "setup.cfg")
    assert defaults.sections() == ["sdist"]
    assert dict(defaults["sdist"]) == {"owner": "root", "group": "root"}


@pytest.mark.slow
def test_the_packages_of_the_tree_are_found() -> None:
    find = tools()["setuptools"]["packages"]["find"]
    # In a process of its own: setuptools replaces distutils in the one that imports it.
    program = "import sys, setuptools; print(*setuptools.find_packages({!r}, include={!r}))"
    packages: list[str] = []
    for folder in find["where"]:
        text = program.format(str(ROOT / folder), find["include"])
        command = [sys.executable, "-c", text]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        packages += done.stdout.split()
    in_tree = [
        ".".join(path.parent.relative_to(ROOT / root).parts)
        for name, root in ROOTS.items()
        for path in (ROOT / root / name).rglob("__init__.py")
    ]
    assert sorted(packages) == sorted(in_tree)


def imported_packages(path: Path) -> set[str]:
    """The top-level packages that a module imports, wherever it does."""
    packages = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            packages |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            packages.add(node.module.partition(".")[0])
    return packages


@pytest.mark.slow
def test_backends_are_folders_of_their_own_which_the_core_does_not_import() -> None:
    folders = {"armpy_numba_acc": "numba_acc", "armpy_reference": "reference"}
    for package, folder in folders.items():
        home = ROOT / "backends" / folder
        assert (home / package / "__init__.py").is_file()
        assert (home / "pyproject.toml").is_file()
    modules = (ROOT / "armpy").rglob("*.py")
    assert {path for path in modules if imported_packages(path) & folders.keys()} == set()


def project_of(folder: Path) -> dict[str, Any]:  # Any: TOML
    document: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    return document["project"]  # type: ignore[no-any-return]  # as above


def wheels_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("try_wheels", ROOT / "lab" / "try_wheels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["CpuRef", "NumbaAcc"])
def test_a_backends_own_project_states_what_the_root_states(name: str) -> None:
    folder = {"CpuRef": "reference", "NumbaAcc": "numba_acc"}[name]
    own, root = project_of(ROOT / "backends" / folder), project_of(ROOT)
    for key in ("version", "requires-python", "license"):
        assert own[key] == root[key]
    of_root = {
        group: {name: target}
        for group, targets in root["entry-points"].items()
        if (target := targets.get(name)) is not None
    }
    assert own["entry-points"] == of_root
    others = [
        dependency for dependency in own["dependencies"] if not dependency.startswith("armpy")
    ]
    assert set(others) <= set(root["dependencies"])


def test_the_core_by_itself_depends_on_the_backends_and_has_none() -> None:
    script = wheels_script()
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    core, whole = tomllib.loads(script.core_project(text)), tomllib.loads(text)
    version = whole["project"]["version"]
    assert [
        dependency
        for dependency in core["project"]["dependencies"]
        if dependency.startswith("armpy")
    ] == [
        f"armpy-reference=={version}",
        f"armpy-numba-acc=={version}",
    ]
    assert not any(dependency.startswith("numba") for dependency in core["project"]["dependencies"])
    assert core["project"].get("entry-points", {}) == {}
    assert core["project"]["optional-dependencies"] == whole["project"]["optional-dependencies"]


def tools() -> dict[str, Any]:  # Any: TOML
    document: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return document["tool"]  # type: ignore[no-any-return]  # as above


def test_one_run_has_the_tests_of_the_core_and_of_all_backends_and_extensions() -> None:
    paths = tools()["pytest"]["ini_options"]["testpaths"]
    backends = {path.parent for path in (ROOT / "backends").glob("*/pyproject.toml")}
    extensions = {path.parent for path in (ROOT / "extensions").glob("*/pyproject.toml")}
    projects = {ROOT, ROOT / "testing", *backends, *extensions}
    folders = {project / "tests" for project in projects}
    assert {folder for path in paths for folder in ROOT.glob(path)} == folders


IN_NO_ENVIRONMENT_OF_ALL = {"torch": "PyTorch takes gigabytes"}
"""Extensions whose tests `.ci/servers` runs in an environment of their own, and why."""


def test_extensions_are_projects_of_their_own_which_all_tools_know() -> None:
    required = (ROOT / "extensions" / "requirements.txt").read_text("utf-8")
    servers = (ROOT / ".ci" / "servers").read_text("utf-8")
    contracts = {contract["name"]: contract for contract in tools()["importlinter"]["contracts"]}
    never = contracts["the core never imports an extension"]["forbidden_modules"]
    projects = sorted((ROOT / "extensions").glob("*/pyproject.toml"))
    assert projects
    folders = {f"extensions/{path.parent.name}" for path in projects}
    assert folders <= set(extension_tables.FOLDERS.values())
    for path in projects:
        home, package = path.parent, f"armpy_{path.parent.name}"
        assert (home / package / "py.typed").is_file()
        assert list((home / "tests").rglob("test_*.py"))
        assert (home / "README.md").is_file()
        if home.name in IN_NO_ENVIRONMENT_OF_ALL:
            assert f"--editable ./extensions/{home.name}" not in required
            assert f"--editable extensions/{home.name}" in servers
        else:
            assert f"--editable ./extensions/{home.name}" in required
            assert package in tools()["coverage"]["run"]["source"]
            assert package in tools()["importlinter"]["root_packages"]
        project = project_of(home)
        assert project["name"] == f"armpy-{home.name}"
        assert project["version"] == project_of(ROOT)["version"]
        assert f"armpy=={project['version']}" in project["dependencies"]
        assert package in tools()["mypy"]["packages"]
        assert package in never


def test_extensions_require_the_packages_of_armpy_that_they_import() -> None:
    """Among them the one that the import contracts do not see, as it is not installed here."""
    for path in sorted((ROOT / "extensions").glob("*/pyproject.toml")):
        home, project = path.parent, project_of(path.parent)
        named = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
        required = {re.split(r"[=\[ ]", name)[0].replace("-", "_") for name in named}
        for source in (home / f"armpy_{home.name}").rglob("*.py"):
            imported = set(
                re.findall(r"^\s*(?:from|import) (armpy_\w+)", source.read_text("utf-8"), re.M)
            )
            missing = imported - required - {f"armpy_{home.name}"}
            assert not missing, f"{source} imports {missing}, which {path} does not require"


def test_every_project_packs_its_tests_and_runs_them_as_one_run_of_all_does() -> None:
    here = tools()["pytest"]["ini_options"]
    folders = [ROOT / "testing", *(ROOT / "extensions").glob("*/"), *(ROOT / "backends").glob("*/")]
    projects = [folder for folder in folders if (folder / "pyproject.toml").is_file()]
    assert len(projects) > 10
    for project in projects:
        document = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
        options = document["tool"]["pytest"]["ini_options"]
        plugin = ["-p", "armpy_testing.pytest_plugin"]
        assert sorted(options["addopts"]) == sorted([*here["addopts"], *plugin])
        own = {"addopts", "pythonpath", "testpaths"}
        assert options == {**here, **{name: options[name] for name in own}}
        assert options["pythonpath"] == ["."]
        assert options["testpaths"] == ["tests"]
        assert "graft tests\n" in (project / "MANIFEST.in").read_text("utf-8")


def test_every_project_states_the_licence() -> None:
    files = [ROOT / "pyproject.toml", ROOT / "testing" / "pyproject.toml"]
    files += [
        path for place in ("extensions", "backends") for path in ROOT.glob(f"{place}/*/*.toml")
    ]
    files.append(ROOT / "extensions" / "compat" / "pyarmnn_distribution" / "pyproject.toml")
    projects = [path.parent for path in files if "dynamic_examples" not in path.parts]
    assert len(projects) > 14
    for folder in projects:
        assert project_of(folder)["license"] == "Apache-2.0"


def test_tables_of_extensions_are_what_their_projects_announce() -> None:
    for library in ("click", "onnx"):
        pytest.importorskip(library)
    script = ROOT / "lab" / "document_extensions.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True, timeout=120)


def test_the_page_on_support_states_what_the_project_declares() -> None:
    page = (ROOT / "docs" / "reference" / "support.md").read_text("utf-8")
    rows = re.findall(r"^\| (3\.\d+) \|", page, re.M)
    declared = [
        text.rpartition(" ")[2]
        for text in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
            "classifiers"
        ]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", text)
    ]
    assert rows == declared
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"the contract of backends is version {BACKEND_API_VERSION}," in readme
