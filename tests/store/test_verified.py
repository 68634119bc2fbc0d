"""Files that were verified before are trusted only while they cannot have changed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armpy.core.file_ownership import HAS_OWNERS
from armpy.errors import ParserError
from armpy.store.archive import checksum_cache as verified
from armpy.store.archive.checksum_cache import check_once
from armpy.store.archive.container import Container, open_container, write_container
from armpy_testing.systems import NEEDS_OWNERS
from tests.support.prepared_layouts import read_plainly

SECTIONS = {"code": b"c" * 64, "weights": b"w" * 5000}
OLD_NS = 10_000_000_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of the test's own."""
    monkeypatch.setattr(verified, "cache_folder", lambda: str(tmp_path / "cache"))
    monkeypatch.delenv("ARMPY_COMPILED_CACHE", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.armpy"
    write_container(path, {}, SECTIONS)
    return path


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What was left out in each whole check."""
    left_out: list[list[str]] = []
    check = Container.check

    def noted(self: Container, leave_out: Any = ()) -> None:
        left_out.append(list(leave_out))
        check(self, leave_out)

    monkeypatch.setattr(Container, "check", noted)
    return left_out


def clock(monkeypatch: pytest.MonkeyPatch, *later_ns: int) -> None:
    """Have the clock say so much later than it is, one time after the other."""
    times = list(later_ns)
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + (times.pop(0) if times[1:] else times[0]))


def records(folder: Path) -> list[Path]:
    return sorted(folder.rglob("verified/*.json"))


def test_an_old_file_is_checked_once(
    path: Path, folder: Path, checks: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch, OLD_NS)
    for _ in range(3):
        check_once(open_container(path), ["code"])
    assert checks == [["code"]]
    (record,) = records(folder)
    with path.open("rb") as file:
        info = os.fstat(file.fileno())
    digest = open_container(path).digest.hex()
    said = [info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, digest]
    assert json.loads(record.read_text()) == said
    assert not HAS_OWNERS or record.stat().st_mode & 0o077 == 0


def test_a_new_file_is_checked_every_time(
    path: Path, folder: Path, checks: list[list[str]]
) -> None:
    for _ in range(3):
        check_once(open_container(path))
    assert len(checks) == 3
    assert records(folder) == []


def test_a_check_that_takes_long_makes_a_file_no_older(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write during the read may leave the time unchanged."""
    clock(monkeypatch, 0, OLD_NS)
    check_once(open_container(path))
    assert records(folder) == []


def test_a_file_of_the_future_is_not_remembered(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch, OLD_NS)
    os.utime(path, ns=(0, time.time_ns() + 10 * OLD_NS))
    check_once(open_container(path))
    assert records(folder) == []


def damage(path: Path) -> None:
    """Change a weight in place, and set the time of change back."""
    info = path.stat()
    with path.open("r+b") as file:
        file.seek(read_plainly(path.read_bytes()).offsets["weights"])
        file.write(b"?")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def test_a_file_whose_time_was_set_back_is_checked_again(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch, OLD_NS)
    check_once(open_container(path))
    time.sleep(0.02)  # the resolution of file systems' times
    damage(path)
    with pytest.raises(ParserError, match="checksum of section 'weights'"):
        check_once(open_container(path))


def test_another_file_in_its_place_is_checked(
    path: Path, folder: Path, checks: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch, OLD_NS)
    check_once(open_container(path))
    write_container(path, {}, SECTIONS)
    check_once(open_container(path))
    assert len(checks) == 2


def linked(record: Path) -> None:
    record.rename(record.with_suffix(".kept"))
    record.symlink_to(record.with_suffix(".kept"))


def writable(record: Path) -> None:
    record.chmod(0o666)


def emptied(record: Path) -> None:
    record.write_text("")


def nested(record: Path) -> None:
    record.write_text("[" * 4000)


def other(record: Path) -> None:
    said = json.loads(record.read_text())
    record.write_text(json.dumps([*said[:5], "0" * 64]))


def shorter(record: Path) -> None:
    record.write_text(json.dumps(json.loads(record.read_text())[:5]))


@pytest.mark.parametrize(
    "forge",
    [linked, pytest.param(writable, marks=NEEDS_OWNERS), emptied, nested, other, shorter],
)
def test_a_record_that_others_can_have_made_is_not_believed(
    forge: Callable[[Path], None],
    path: Path,
    folder: Path,
    checks: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock(monkeypatch, OLD_NS)
    check_once(open_container(path))
    (record,) = records(folder)
    forge(record)
    check_once(open_container(path))
    assert len(checks) == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives away")
def test_a_record_of_another_user_is_not_trusted(
    path: Path, folder: Path, checks: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch, OLD_NS)
    check_once(open_container(path))
    os.chown(records(folder)[0], 12345, -1)
    check_once(open_container(path))
    assert len(checks) == 2


def test_a_damaged_file_is_not_remembered(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch, OLD_NS)
    damage(path)
    for _ in range(2):
        with pytest.raises(ParserError, match="checksum of section 'weights'"):
            check_once(open_container(path))
    assert records(folder) == []


def test_nothing_is_kept_if_nothing_is_to_be(
    path: Path, folder: Path, checks: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch, OLD_NS)
    monkeypatch.setenv("ARMPY_COMPILED_CACHE", "off")
    for _ in range(2):
        check_once(open_container(path))
    assert len(checks) == 2
    assert records(folder) == []


def test_files_in_memory_are_always_checked(
    path: Path, folder: Path, checks: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock(monkeypatch, OLD_NS)
    for _ in range(2):
        check_once(open_container(path.read_bytes()))
    assert len(checks) == 2
    assert records(folder) == []
