from __future__ import annotations

import os
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from armpy.backend import BACKEND_API_VERSION, IBackendInternal
from armpy.plugins import Candidate, CandidateKind
from armpy.plugins.checks import OpenedCandidate
from armpy.plugins.discovery.candidate import RejectionError
from armpy.plugins.modules import forget_module, open_module, private_name
from armpy_testing.backends.dynamic_modules import (
    NEXT_MINOR,
    OTHER_MAJOR,
    module_source,
    private_modules,
    write_module,
)


@pytest.fixture(autouse=True)
def removed_modules(tmp_path: Path) -> Iterator[None]:
    before = list(sys.path)
    yield
    for name in private_modules():
        forget_module(name)
    assert sys.path == before
    assert not [entry for entry in sys.path_importer_cache if entry.startswith(str(tmp_path))]


def candidate_at(path: Path) -> Candidate:
    return Candidate("", str(path), CandidateKind.DIRECTORY, path=str(path))


def open_at(path: Path) -> tuple[str, OpenedCandidate]:
    """A new private name, and the module that was opened under it."""
    candidate = candidate_at(path)
    name = private_name(candidate)
    return name, open_module(candidate, name)


def test_a_sound_module_says_its_id_and_version_and_makes_its_backend(tmp_path: Path) -> None:
    name, opened = open_at(write_module(tmp_path, "Arm_Valid_backend"))
    assert (opened.backend_id, opened.api_version) == ("TestDynamic", BACKEND_API_VERSION)
    backend = opened.create().backend
    assert isinstance(backend, IBackendInternal)
    assert backend.get_id() == "TestDynamic"
    assert type(backend).__module__ == name
    assert private_modules() == {name}


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
    "major 0": (module_source(version="0.7"), "made for API version 0.7, which does not fit"),
    "8, id is None and other major": (module_source(None, "0.7"), "get_backend_id returned None"),
    "9, newer minor": (module_source(version=NEXT_MINOR), f"API version {NEXT_MINOR}, which does"),
    "version is None": (module_source(version=None), "its API version None is not of the form"),
    "version is a float": (module_source(version=1.0), "its API version 1.0 is not of the form"),
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
    with pytest.raises(RejectionError, match=reason):
        open_at(write_module(tmp_path, "Arm_Bad_backend", source))
    assert private_modules() == set()


def test_6_no_instance_is_noticed_only_when_one_is_made(tmp_path: Path) -> None:
    source = module_source("InvalidTestDynamicBackend", extra="def backend_factory(): return None")
    _, opened = open_at(write_module(tmp_path, "Arm_Null_backend", source))
    assert opened.backend_id == "InvalidTestDynamicBackend"
    assert opened.api_version == BACKEND_API_VERSION
    with pytest.raises(RejectionError, match="its backend_factory returned None"):
        opened.create()


@pytest.mark.parametrize("backend_id", ["", "Unknown"])
def test_10_and_11_ids_that_cannot_be_registered_are_no_reason_not_to_open(
    tmp_path: Path, backend_id: str
) -> None:
    _, opened = open_at(write_module(tmp_path, "Arm_Odd_backend", module_source(backend_id)))
    assert opened.backend_id == backend_id


def test_a_version_may_be_a_pair_of_integers(tmp_path: Path) -> None:
    pair = tuple(int(part) for part in BACKEND_API_VERSION.split("."))
    path = write_module(tmp_path, "Arm_Pair_backend", module_source(version=pair))
    assert open_at(path)[1].api_version == BACKEND_API_VERSION


@pytest.mark.parametrize(
    ("version", "fits"),
    [("2.4", True), ("2.3", True), ("2.5", False), ("1.4", False), ("3.4", False)],
)
def test_versions_against_an_api_2_4(tmp_path: Path, version: str, fits: bool) -> None:
    source = module_source(version=version)
    candidate = candidate_at(write_module(tmp_path, "Arm_Old_backend", source))
    if fits:
        assert open_module(candidate, private_name(candidate), core="2.4").api_version == version
    else:
        with pytest.raises(RejectionError, match=f"API version {version}, which does not fit 2.4"):
            open_module(candidate, private_name(candidate), core="2.4")


@pytest.mark.parametrize("error", ["OSError", "SystemExit", "KeyboardInterrupt", "GeneratorExit"])
@pytest.mark.parametrize("where", ["import", "get_backend_id", "get_version"])
def test_a_module_that_raises_leaves_nothing(tmp_path: Path, error: str, where: str) -> None:
    raising = f"raise {error}('on purpose')"
    extra = raising if where == "import" else f"def {where}(): {raising}"
    source = module_source(extra="from . import part\n" + extra)
    path = write_module(tmp_path, "Arm_Bad_backend", source, part="import sys\nsys.path.append('')")
    with pytest.raises(BaseException, match="on purpose") as caught:
        open_at(path)
    assert type(caught.value).__name__ == error
    assert private_modules() == set()


def test_a_package_may_import_its_own_parts(tmp_path: Path) -> None:
    source = module_source(extra="from .part import NAME\ndef get_backend_id(): return NAME")
    package = write_module(
        tmp_path,
        "Arm_Package_backend",
        source,
        part="from .deeper import NAME",
        deeper="NAME = 'FromPart'",
    )
    name, opened = open_at(package)
    assert opened.backend_id == "FromPart"
    assert private_modules() == {name, f"{name}.part", f"{name}.deeper"}
    forget_module(name)
    assert private_modules() == set()
    assert "Arm_Package_backend" not in sys.modules


def test_modules_of_the_same_name_and_the_same_module_twice_coexist(tmp_path: Path) -> None:
    first = write_module(tmp_path / "a", "Arm_Npu_backend", module_source("First"), part="")
    second = write_module(tmp_path / "b", "Arm_Npu_backend", module_source("Second"), part="")
    opened = [open_at(path) for path in (first, second, first)]
    assert [module.backend_id for _, module in opened] == ["First", "Second", "First"]
    assert len({name for name, _ in opened}) == 3
    assert private_modules() == {name for name, _ in opened}


def test_bytecode_beside_a_module_is_neither_read_nor_written(tmp_path: Path) -> None:
    path = write_module(tmp_path, "Arm_Npu_backend")
    open_at(path)
    assert list(tmp_path.iterdir()) == [path]


def test_bytecode_of_a_packages_parts_is_neither_read_nor_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    source = module_source(extra="from .inner.part import NAME\ndef get_backend_id(): return NAME")
    package = write_module(tmp_path, "Arm_Npu_backend", source, other="")
    (package / "inner").mkdir()
    part = package / "inner" / "part.py"
    part.write_text("NAME = 'Evil'")
    planted = Path(py_compile.compile(str(part), doraise=True))  # type: ignore[arg-type]
    times = part.stat().st_atime_ns, part.stat().st_mtime_ns
    part.write_text("NAME = 'Good'")  # as long and as old as what the bytecode is made of
    os.utime(part, ns=times)
    assert open_at(package)[1].backend_id == "Good"
    assert list(tmp_path.rglob("*.pyc")) == [planted]


def test_a_part_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    source = module_source(extra="from . import missing")
    with pytest.raises(ImportError, match="cannot import name 'missing'"):
        open_at(write_module(tmp_path, "Arm_Npu_backend", source, part=""))


def test_a_module_is_not_found_by_its_own_name_and_its_neighbours_are_not_either(
    tmp_path: Path,
) -> None:
    write_module(tmp_path, "neighbour", "")
    path = write_module(tmp_path, "Arm_Npu_backend", module_source(extra="import neighbour"))
    with pytest.raises(ModuleNotFoundError, match="neighbour"):
        open_at(path)
