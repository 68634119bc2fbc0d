"""The registry over directories: Arm NN's nine test directories and what else can be in one."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from armpy.backend import BACKEND_API_VERSION
from armpy.errors import BackendUnavailableError
from armpy.execution import Runtime, RuntimeOptions
from armpy.plugins import (
    BackendRegistry,
    Candidate,
    CandidateKind,
    CandidateStatus,
    PluginOptions,
    SkippedPath,
)
from armpy_testing.backends.dynamic_modules import (
    NEXT_MINOR,
    forget_private_modules,
    module_source,
    private_modules,
    write_module,
)
from armpy_testing.backends.fake_backends import FakeBackend


@pytest.fixture(autouse=True)
def removed_modules() -> Iterator[None]:
    before = list(sys.path)
    yield
    forget_private_modules()
    assert sys.path == before


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """Arm NN's directories 5 to 9 at places 0 to 4."""
    five, six, seven, eight, nine = (tmp_path / f"path{number}" for number in range(5, 10))
    valid2 = write_module(five, "Arm_TestValid2_backend", module_source("TestValid2"))
    write_module(five, "Arm_TestValid3_backend", module_source("TestValid3"))
    write_module(five, "Arm_TestInvalid8_backend", module_source(None, "0.7"))
    write_module(six, "Arm_TestValid4_backend", module_source("TestValid2"))
    write_module(six, "Arm_TestValid5_backend", module_source("TestValid5"))
    write_module(six, "Arm_TestInvalid9_backend", module_source("TestValid2", NEXT_MINOR))
    shutil.copy(valid2, six)
    seven.mkdir()
    write_module(nine, "Arm_TestInvalid10_backend", module_source(""))
    write_module(nine, "Arm_TestInvalid11_backend", module_source("Unknown"))
    return [str(path) for path in (five, six, seven, eight, nine)]


def discover(*paths: str | Path, **options: object) -> BackendRegistry:
    """A registry over some directories."""
    return BackendRegistry.discover(PluginOptions(list(paths), **options))  # type: ignore[arg-type]


def from_directories(registry: BackendRegistry) -> dict[str, Candidate]:
    """The candidates from directories by file or folder."""
    in_directories = [c for c in registry.candidates if c.kind is CandidateKind.DIRECTORY]
    return {"/".join(Path(c.path).parts[-2:]): c for c in in_directories}


def dynamic_ids(registry: BackendRegistry) -> set[str]:
    """Ids of the available backends that come from directories."""
    registry.available()
    return {
        c.backend_id
        for c in from_directories(registry).values()
        if c.status is CandidateStatus.REGISTERED
    }


def num_opened(registry: BackendRegistry) -> int:
    """How many modules of directories could be opened, though another has the id, or none may."""
    return sum(
        c.status in (CandidateStatus.REGISTERED, CandidateStatus.DUPLICATE)
        or c.reason.endswith("is not a valid backend id")
        for c in from_directories(registry).values()
    )


def test_over_paths_5_to_8_five_backends_are_created(paths: list[str]) -> None:
    registry = discover(*paths[:4])
    assert dynamic_ids(registry) == {"TestValid2", "TestValid3", "TestValid5"}
    assert num_opened(registry) == 5
    assert registry.skipped_paths == (SkippedPath(paths[3], "the path does not exist"),)
    assert {name: c.status.value for name, c in from_directories(registry).items()} == {
        "path5/Arm_TestInvalid8_backend.py": "rejected",
        "path5/Arm_TestValid2_backend.py": "registered",
        "path5/Arm_TestValid3_backend.py": "registered",
        "path6/Arm_TestInvalid9_backend.py": "rejected",
        "path6/Arm_TestValid2_backend.py": "duplicate",
        "path6/Arm_TestValid4_backend.py": "duplicate",
        "path6/Arm_TestValid5_backend.py": "registered",
    }


def test_over_paths_5_6_and_9_seven_are_created_and_three_registered(paths: list[str]) -> None:
    chosen = [*paths[:2], paths[4]]
    registry = discover(*chosen, os.path.join(paths[0], "InvalidFileName"))
    assert dynamic_ids(registry) == {"TestValid2", "TestValid3", "TestValid5"}
    assert num_opened(registry) == 7


@pytest.mark.parametrize(
    ("place", "ids"),
    [
        (0, {"TestValid2", "TestValid3"}),
        (1, {"TestValid2", "TestValid5"}),
        (2, set()),
        (3, set()),
        (4, set()),
    ],
)
def test_a_runtime_has_what_is_valid_in_a_directory(
    paths: list[str], place: int, ids: set[str]
) -> None:
    registry = discover(paths[place])
    supported = Runtime(RuntimeOptions(registry=registry)).get_device_spec().supported_backends
    assert {backend_id for backend_id in supported if backend_id.startswith("Test")} == ids


def test_without_any_path_no_directory_is_looked_into(
    paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert from_directories(BackendRegistry.discover()) == {}
    monkeypatch.setenv("ARMPY_DYNAMIC_BACKENDS_PATH", os.pathsep.join([paths[1], paths[0]]))
    places = [Path(c.directory).name for c in from_directories(BackendRegistry.discover()).values()]
    assert places == ["path6"] * 4 + ["path5"] * 3
    assert len(from_directories(discover(paths[4]))) == 2


def test_listing_imports_no_module(paths: list[str]) -> None:
    registry = discover(*paths)
    module = from_directories(registry)["path5/Arm_TestValid2_backend.py"]
    assert (module.backend_id, module.name) == ("", "Arm_TestValid2_backend")
    assert module.label == "Arm_TestValid2_backend"
    assert (module.source, module.directory) == (module.path, paths[0])
    assert module.status is CandidateStatus.FOUND
    assert private_modules() == set()


def test_modules_are_imported_in_order_until_the_wanted_one_is_found(paths: list[str]) -> None:
    registry = discover(*paths)
    backend = registry.get("TestValid2")
    assert registry.get("TestValid2") is backend
    states = [c.status.value for c in from_directories(registry).values()]
    assert states == ["rejected", "registered", *["found"] * 7]
    registry.get("CpuRef")
    assert [c.status.value for c in from_directories(registry).values()] == states


def test_a_modules_version_must_be_its_backends(tmp_path: Path) -> None:
    write_module(tmp_path, "Arm_Npu_backend", module_source("Npu", "2.0"))
    registry = discover(tmp_path)
    present = BACKEND_API_VERSION
    text = rf"get_version returned 2\.0, and its backend's get_api_version {present}"
    with pytest.raises(BackendUnavailableError, match=text):
        registry.get("Npu")


def test_an_installed_backend_comes_before_a_directorys(tmp_path: Path) -> None:
    write_module(tmp_path, "Arm_Mine_backend", module_source("CpuRef"))
    registry = discover(tmp_path)
    assert type(registry.get("CpuRef")).__module__ == "armpy_reference.backend"
    assert dynamic_ids(registry) == set()
    (module,) = from_directories(registry).values()
    assert module.status is CandidateStatus.DUPLICATE
    assert module.reason.startswith("another backend has the id 'CpuRef': armpy ")
    assert private_modules() == set()


def test_a_null_instance_is_an_error_only_when_it_is_asked_for(tmp_path: Path) -> None:
    source = module_source("Null", extra="def backend_factory(): return None")
    write_module(tmp_path, "Arm_Null_backend", source)
    registry = discover(tmp_path)
    with pytest.raises(BackendUnavailableError, match=r"'Null' from .*_factory returned None"):
        registry.get("Null")
    with pytest.raises(BackendUnavailableError, match="backend_factory returned None"):
        registry.get("Null")
    assert private_modules() == set()


BROKEN = {
    "import error": ("import no_such_module", "No module named 'no_such_module'", "no_such_module"),
    "syntax error": ("def (", r"SyntaxError: invalid syntax \(Arm_Bad_backend.py, line 1\)", ""),
    "odd exception": ("raise type('Odd', (BaseException,), {})", "Odd", ""),
    "no text": (
        "class E(Exception):\n    def __str__(self): raise SystemError\nraise E",
        "E, whose text cannot be read: SystemError",
        "",
    ),
    "factory raises": (module_source("Bad", extra="def backend_factory(): exit(3)"), "Exit: 3", ""),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_module_stops_no_other_and_no_runtime(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    source, reason, missing = BROKEN[name]
    write_module(tmp_path, "Arm_Bad_backend", source)
    write_module(tmp_path, "Arm_Good_backend", module_source("Good"))
    registry = discover(tmp_path)
    runtime = Runtime(RuntimeOptions(registry=registry))
    assert "Good" in runtime.get_device_spec().supported_backends
    bad = from_directories(registry)[f"{tmp_path.name}/Arm_Bad_backend.py"]
    assert bad.status is CandidateStatus.FAILED
    assert bad.missing_module == missing
    assert "Traceback" in bad.traceback
    with pytest.raises(BackendUnavailableError, match=reason):
        registry.get("Bad")
    assert {module.count(".") for module in private_modules()} == {1}
    assert len(private_modules()) == 1
    warnings = [r.message for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert f"from {bad.path} is left out: {bad.reason}" in warnings[0]


def test_the_users_interrupt_is_passed_on_and_the_module_can_be_tried_again(tmp_path: Path) -> None:
    source = module_source(
        "Slow",
        extra="""
        import pathlib, signal, time
        mark = pathlib.Path(__file__).with_suffix(".mark")
        if not mark.exists():
            mark.touch()
            signal.raise_signal(signal.SIGINT)
        """,
    )
    write_module(tmp_path, "Arm_Slow_backend", source)
    registry = discover(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        registry.get("Slow")
    assert private_modules() == set()
    assert registry.get("Slow").get_id() == "Slow"


def test_closing_forgets_the_modules(tmp_path: Path) -> None:
    write_module(
        tmp_path, "Arm_Npu_backend", module_source("Npu", extra="from . import part"), part=""
    )
    registry = discover(tmp_path)
    backend = registry.get("Npu")
    registry.get("CpuRef")
    assert len(private_modules()) == 2
    registry.close()
    registry.close()
    assert private_modules() == set()
    assert registry.backend_ids == ()
    assert backend.get_id() == "Npu"
    for use in (registry.available, registry.probe, lambda: registry.get("Npu")):
        with pytest.raises(BackendUnavailableError, match="the registry of backends is closed"):
            use()
    with pytest.raises(BackendUnavailableError, match="the registry of backends is closed"):
        registry.register("Mine", lambda: FakeBackend("Mine"))


def test_the_error_of_an_unknown_id_lists_rejected_modules(tmp_path: Path) -> None:
    path = write_module(tmp_path, "Arm_Npu_backend", "import no_such_module")
    with pytest.raises(
        BackendUnavailableError, match=f"left out is {re.escape(str(path))}: Module"
    ):
        discover(tmp_path).get("Npu")
