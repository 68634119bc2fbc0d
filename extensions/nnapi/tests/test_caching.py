"""NNAPI's compilation caching, with a device that follows a script."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from armpy.backend import CacheUse, Capability
from armpy.types import Priority
from armpy_nnapi import (
    Compilation,
    Model,
    NnapiError,
    PreferenceCode,
    ResultCode,
)
from armpy_testing.backends.scripted_backend import (
    Script,
    ScriptedBackend,
    declaration,
)

from .nnapi_models import devices_of, floats, sum_model

TOKEN = bytes(range(32))
X, Y, SUM = floats(1, 2), floats(10, 20), [11, 22]


def driver(
    script: Script | None = None,
    *,
    name: str = "Npu",
    keeps_programs: bool = True,
    version: str = "1.0",
    feature_level: int = 30,
    operations: Collection[type] | None = None,
) -> ScriptedBackend:
    said = declaration(version=version, keeps_programs=keeps_programs, feature_level=feature_level)
    return ScriptedBackend(name, script, operations=operations, compiles=True, declared=said)


def compiled(
    backend: ScriptedBackend,
    folder: Path | str | None,
    token: bytes = TOKEN,
    *,
    preference: int | None = None,
    priority: int | None = None,
    is_chosen: bool = True,
    model: Model | None = None,
) -> Compilation:
    """An addition that was compiled, and gives the right result."""
    manager = devices_of(backend) if model is None else model.manager
    known = model or sum_model(manager=manager)
    compilation = Compilation(known)
    if is_chosen:
        device = manager.get_device_of_backend(backend.get_id())
        compilation = Compilation.create_for_devices(known, [device])
    if folder is not None:
        compilation.set_caching(folder, token)
    if preference is not None:
        compilation.set_preference(preference)
    if priority is not None:
        compilation.set_priority(priority)
    compilation.finish()
    if model is None:
        assert compilation(X, Y)[0].tolist() == SUM
    return compilation


def asked(backend: ScriptedBackend) -> list[str]:
    """Requests to the device: to prepare, to save, to prepare from files."""
    parts = ("optimize", "save", "check", "load")
    return [method for method in backend.methods if method in parts]


def uses(compilation: Compilation) -> tuple[CacheUse, ...]:
    placement = compilation.network(()).placement
    assert placement is not None
    return placement.cache_uses


@pytest.mark.parametrize("is_chosen", [True, False], ids=["chosen", "any device"])
def test_with_a_token_and_no_files_the_model_is_prepared_and_kept(
    is_chosen: bool, tmp_path: Path
) -> None:
    backend = driver()
    compilation = compiled(backend, tmp_path, is_chosen=is_chosen)
    assert asked(backend) == ["optimize", "save"]
    assert [use.is_hit for use in uses(compilation)] == [False]


@pytest.mark.parametrize("is_chosen", [True, False], ids=["chosen", "any device"])
def test_with_a_token_and_files_the_model_is_prepared_from_them(
    is_chosen: bool, tmp_path: Path
) -> None:
    compiled(driver(), tmp_path)
    backend = driver()
    compilation = compiled(backend, tmp_path, is_chosen=is_chosen)
    assert asked(backend) == ["check", "load"]
    assert [use.is_hit for use in uses(compilation)] == [True]


def test_without_a_token_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    for _ in range(2):
        backend = driver()
        compilation = compiled(backend, None)
        assert (asked(backend), uses(compilation)) == (["optimize"], ())
    assert not (tmp_path / "compiled").exists()


def test_a_device_has_one_file_of_code_and_one_of_data_with_nnapis_names(tmp_path: Path) -> None:
    compiled(driver(), tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    matches = [re.fullmatch(r"([A-P]{64})([12])(\d+)", name) for name in names]
    assert all(matches)
    assert len({match[1] for match in matches if match}) == 1
    numbers = [(int(match[2]), int(match[3])) for match in matches if match]
    assert sorted(numbers) == [(1, 0), (2, 0)]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


OWN_CACHE = {Capability.OWN_CACHE: True, Capability.NON_CONST_WEIGHTS: True}


@pytest.mark.parametrize(
    ("declared", "num_files"),
    [
        ({"keeps_programs": True}, (1, 1)),
        ({"keeps_programs": False}, (0, 0)),
        ({"keeps_programs": True, "capabilities": OWN_CACHE}, (1, 1)),
    ],
    ids=["keeps programs", "keeps none", "has its own cache"],
)
def test_a_device_says_how_many_files_it_has(
    declared: Mapping[str, Any], num_files: tuple[int, int], tmp_path: Path
) -> None:
    backend = ScriptedBackend("Npu", compiles=True, declared=declaration(**declared))
    device = devices_of(backend).get_device_of_backend("Npu")
    assert device.number_of_cache_files_needed == num_files
    compiled(backend, tmp_path)
    assert len([*tmp_path.iterdir()]) == sum(num_files)


@pytest.mark.parametrize(
    "backend",
    [driver(keeps_programs=False), driver(feature_level=28)],
    ids=["no programs", "before 1.2"],
)
def test_a_device_that_does_not_cache_is_not_asked_to(
    backend: ScriptedBackend, tmp_path: Path
) -> None:
    for _ in range(2):
        backend.forget()
        compiled(backend, tmp_path)
        assert asked(backend) == ["optimize"]
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("missing", [0, 1])
def test_files_are_used_only_if_all_are_there(missing: int, tmp_path: Path) -> None:
    compiled(driver(), tmp_path)
    sorted(tmp_path.iterdir())[missing].unlink()
    backend = driver()
    compilation = compiled(backend, tmp_path)
    assert asked(backend) == ["optimize", "save"]
    assert "a file is missing" in uses(compilation)[0].reason
    assert len([*tmp_path.iterdir()]) == 2


def stems(folder: Path) -> set[str]:
    return {path.name[:64] for path in folder.iterdir()}


def test_preference_priority_device_version_and_token_have_files_of_their_own(
    tmp_path: Path,
) -> None:
    compiled(driver(), tmp_path)
    assert len(stems(tmp_path)) == 1
    for count, others in enumerate(
        (
            {"preference": PreferenceCode.LOW_POWER},
            {"preference": PreferenceCode.SUSTAINED_SPEED},
            {"priority": Priority.LOW},
            {"priority": Priority.HIGH},
            {"token": bytes(32)},
        ),
        start=2,
    ):
        compiled(driver(), tmp_path, **others)  # type: ignore[arg-type]  # of several types
        assert len(stems(tmp_path)) == count, others
    compiled(driver(version="1.1"), tmp_path)
    compiled(driver(name="Gpu"), tmp_path)
    assert len(stems(tmp_path)) == 8


def test_the_preference_and_priority_that_count_anyway_are_the_same_files(tmp_path: Path) -> None:
    compiled(driver(), tmp_path)
    compiled(driver(), tmp_path, priority=Priority.MEDIUM)
    compiled(driver(), tmp_path, preference=PreferenceCode.FAST_SINGLE_ANSWER)
    assert len(stems(tmp_path)) == 1


def test_nothing_of_the_applications_is_deleted(tmp_path: Path) -> None:
    others = {tmp_path / name for name in ("mine.tmp", "mine.entry", "A" * 64 + "10")}
    for path in others:
        path.write_text("mine")
    compiled(driver(), tmp_path)
    assert {path.read_text() for path in others} == {"mine"}


@pytest.mark.parametrize(
    ("folder", "token", "code"),
    [
        (None, TOKEN, ResultCode.UNEXPECTED_NULL),
        ("here", None, ResultCode.UNEXPECTED_NULL),
        ("here", TOKEN[1:], ResultCode.BAD_DATA),
        ("here", "0" * 32, ResultCode.BAD_DATA),
        (3, TOKEN, ResultCode.BAD_DATA),
        ("null\0byte", TOKEN, ResultCode.BAD_DATA),
        ("surrogate\ud800", TOKEN, ResultCode.BAD_DATA),
    ],
)
def test_what_is_no_folder_or_token_is_refused(
    folder: object, token: object, code: ResultCode
) -> None:
    compilation = Compilation(sum_model(manager=devices_of(driver())))
    with pytest.raises(NnapiError) as raised:
        compilation.set_caching(folder, token)  # type: ignore[arg-type]  # the test's point
    assert raised.value.code is code
