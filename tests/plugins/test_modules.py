from __future__ import annotations

import os
import py_compile
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from armpy.backend import BACKEND_API_VERSION, IBackendInternal
from armpy.plugins import BackendRegistry, Candidate, CandidateKind, CandidateStatus, PluginOptions
from armpy_testing.backends.dynamic_modules import (
    NEXT_MINOR,
    OTHER_MAJOR,
    forget_private_modules,
    module_source,
    private_modules,
    write_module,
)


@pytest.fixture(autouse=True)
def removed_modules(tmp_path: Path) -> Iterator[None]:
    before = list(sys.path)
    yield
    forget_private_modules()
    assert sys.path == before
    assert not [entry for entry in sys.path_importer_cache if entry.startswith(str(tmp_path))]


def discover(*folders: Path) -> BackendRegistry:
    """A registry over some directories."""
    return BackendRegistry.discover(PluginOptions([str(folder) for folder in folders]))


def left_out(folder: Path) -> Candidate:
    """The only module of a directory, which is not used."""
    registry = discover(folder)
    registry.available()
    (candidate,) = (c for c in registry.candidates if c.kind is CandidateKind.DIRECTORY)
    assert candidate.status in (CandidateStatus.REJECTED, CandidateStatus.FAILED)
    return candidate


def test_a_sound_module_says_its_id_and_version_and_makes_its_backend(tmp_path: Path) -> None:
    write_module(tmp_path, "Arm_Valid_backend")
    registry = discover(tmp_path)
    backend = registry.get("TestDynamic")
    assert isinstance(backend, IBackendInternal)
    assert backend.get_id() == "TestDynamic"
    assert {type(backend).__module__} == private_modules()
    (candidate,) = (c for c in registry.candidates if c.kind is CandidateKind.DIRECTORY)
    assert (candidate.backend_id, candidate.api_version) == ("TestDynamic", BACKEND_API_VERSION)


INVALID = {
    "no entry points": ("x = 1", r"it has no get_backend_id\(\)"),
    "1, other names": (
        "def _Z12GetBackendId(): return 'TestDynamic'",
        r"it has no get_backend_id\(\)",
    ),
    "2, no id": (module_source(without="get_backend_id"), r"it has no get_backend_id\(\)"),
    "3, no version": (module_source(without="get_version"), r"it has no get_version\(\)"),
    "4, no factory": (module_source(without="backend_factory"), r"it has no backend_factory\(\)"),
    "5, id is None": (module_source(None), "its get_backend_id returned None, not a str"),
    "id is no text": (module_source(5), "its get_backend_id returned 5, not a str"),
    "id is bytes": (module_source(b"Npu"), "its get_backend_id returned b'Npu', not a str"),
    "7, other major": (
        module_source(version=OTHER_MAJOR),
        f"made for API version {OTHER_MAJOR}, which does not fit {BACKEND_API_VERSION}",
    ),
    "8, id is None and other major": (module_source(None, "0.7"), "get_backend_id returned None"),
    "9, newer minor": (module_source(version=NEXT_MINOR), f"API version {NEXT_MINOR}, which does"),
    "id is no function": (
        module_source(extra="get_backend_id = 'Npu'"),
        "its get_backend_id is 'Npu', which cannot be called",
    ),
    "factory is None": (
        module_source(extra="backend_factory = None"),
        "its backend_factory is None, which cannot be called",
    ),
    "id before version": (
        module_source(version=None, extra="get_backend_id = None"),
        "its get_backend_id is None, which cannot be called",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_a_module_that_breaks_a_rule_is_rejected_and_forgotten(tmp_path: Path, case: str) -> None:
    source, reason = INVALID[case]
    write_module(tmp_path, "Arm_Bad_backend", source)
    candidate = left_out(tmp_path)
    assert candidate.status is CandidateStatus.REJECTED
    assert re.search(reason, candidate.reason)
    assert private_modules() == set()


def test_6_no_instance_is_noticed_only_when_one_is_made(tmp_path: Path) -> None:
    source = module_source("InvalidTestDynamicBackend", extra="def backend_factory(): return None")
    write_module(tmp_path, "Arm_Null_backend", source)
    candidate = left_out(tmp_path)
    assert candidate.backend_id == "InvalidTestDynamicBackend"
    assert candidate.api_version == BACKEND_API_VERSION
    assert candidate.status is CandidateStatus.REJECTED
    assert "its backend_factory returned None" in candidate.reason


def test_a_version_may_be_a_pair_of_integers(tmp_path: Path) -> None:
    pair = tuple(int(part) for part in BACKEND_API_VERSION.split("."))
    write_module(tmp_path, "Arm_Pair_backend", module_source(version=pair))
    assert discover(tmp_path).get("TestDynamic").get_api_version() == BACKEND_API_VERSION


@pytest.mark.parametrize("error", ["OSError", "SystemExit", "GeneratorExit"])
@pytest.mark.parametrize("where", ["import", "get_backend_id", "get_version"])
def test_a_module_that_raises_leaves_nothing(tmp_path: Path, error: str, where: str) -> None:
    raising = f"raise {error}('on purpose')"
    extra = raising if where == "import" else f"def {where}(): {raising}"
    source = module_source(extra="from . import part\n" + extra)
    write_module(tmp_path, "Arm_Bad_backend", source, part="import sys\nsys.path.append('')")
    candidate = left_out(tmp_path)
    assert candidate.status is CandidateStatus.FAILED
    assert candidate.reason == f"{error}: on purpose"
    assert private_modules() == set()


def test_modules_of_the_same_name_and_the_same_module_twice_coexist(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    write_module(first, "Arm_Npu_backend", module_source("First"), part="")
    write_module(second, "Arm_Npu_backend", module_source("Second"), part="")
    both, again = discover(first, second), discover(first)
    backends = [both.get("First"), both.get("Second"), again.get("First")]
    assert [backend.get_id() for backend in backends] == ["First", "Second", "First"]
    names = {type(backend).__module__ for backend in backends}
    assert len(names) == 3
    assert private_modules() == names


def test_bytecode_beside_a_module_is_neither_read_nor_written(tmp_path: Path) -> None:
    path = write_module(tmp_path, "Arm_Npu_backend")
    discover(tmp_path).get("TestDynamic")
    assert list(tmp_path.iterdir()) == [path]


def test_bytecode_of_a_packages_parts_is_neither_read_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    source = module_source(extra="from .inner.part import NAME\nget_backend_id = lambda: NAME")
    source += "\nBackend.get_id = lambda self: NAME"
    package = write_module(tmp_path, "Arm_Npu_backend", source, other="")
    (package / "inner").mkdir()
    part = package / "inner" / "part.py"
    part.write_text("NAME = 'Evil'")
    planted = Path(py_compile.compile(str(part), doraise=True))  # type: ignore[arg-type]
    times = part.stat().st_atime_ns, part.stat().st_mtime_ns
    part.write_text("NAME = 'Good'")  # as long and as old as what the bytecode is made of
    os.utime(part, ns=times)
    assert discover(tmp_path).get("Good").get_id() == "Good"
    assert list(tmp_path.rglob("*.pyc")) == [planted]


def test_a_part_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    source = module_source(extra="from . import missing")
    write_module(tmp_path, "Arm_Npu_backend", source, part="")
    assert left_out(tmp_path).reason.startswith("ImportError: cannot import name 'missing'")


def test_a_module_is_not_found_by_its_own_name_and_its_neighbours_are_not_either(
    tmp_path: Path,
) -> None:
    write_module(tmp_path, "neighbour", "")
    write_module(tmp_path, "Arm_Npu_backend", module_source(extra="import neighbour"))
    assert left_out(tmp_path).reason == "ModuleNotFoundError: No module named 'neighbour'"
