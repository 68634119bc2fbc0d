"""Stored figures of a device come back unchanged, or count as missing."""

from __future__ import annotations

import logging
import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from armpy.backend import DeviceFigures, PerformanceFigures
from armpy.compiler.devices import FigureSource
from armpy.types import DataType
from armpy_tools.devices.cache import DevicesCache
from armpy_tools.devices.costs import BackendCosts, CopyRate, Rate
from armpy_tools.devices.records import DeviceRecord
from armpy_tools.devices.store import FiguresStore

FIGURES = DeviceFigures(
    {DataType.FLOAT32: PerformanceFigures(0.25, 0.5)},
    {DataType.SIGNED32: PerformanceFigures(0.75, 2.0)},
    {"com.acme.math.QUANT64": PerformanceFigures(3.0, 4.0)},
    relaxed_tensor=PerformanceFigures(0.125, 0.5),
    while_=PerformanceFigures(1.5, 1.0),
)
COSTS = BackendCosts(
    "Fast",
    FigureSource.MEASURED,
    {"Convolution2d/float32": Rate(1e-6, 2e-11, 3e-10, 2.0), "*": Rate(1e-5)},
    4e-6,
    CopyRate(1e-6, 1e-10),
    CopyRate(2e-6, 2e-10),
    shares_host_memory=False,
)
RECORD = DeviceRecord("Fast", "1.0", FIGURES, COSTS, 1234.5)


def file_of(store: FiguresStore) -> Path:
    (path,) = (store.directory / "figures").iterdir()
    return path


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    assert FiguresStore(tmp_path).write(RECORD)
    assert FiguresStore(tmp_path).read("Fast", "1.0") == RECORD


def test_figures_of_another_version_do_not_count(tmp_path: Path) -> None:
    FiguresStore(tmp_path).write(RECORD)
    assert FiguresStore(tmp_path).read("Fast", "1.1") is None
    assert FiguresStore(tmp_path).read("Fast") == RECORD


def test_a_file_from_another_machine_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, other = FiguresStore(tmp_path, "a" * 32), FiguresStore(tmp_path, "b" * 32)
    first.write(RECORD)
    (tmp_path / ("b" * 32)).symlink_to(tmp_path / ("a" * 32))
    assert other.read("Fast", "1.0") is None
    assert "of another machine" in caplog.text


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied", "no JSON", "nested"])
def test_a_damaged_file_counts_as_none_with_a_warning_and_is_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    store = FiguresStore(tmp_path)
    store.write(RECORD)
    content = file_of(store).read_bytes()
    changed = {
        "truncated": content[: len(content) // 2],
        "flipped": content.replace(b"0.25", b"0.35"),
        "emptied": b"",
        "no JSON": b"\xff\x00",
        "nested": b"[" * 100_000,
    }[damage]
    assert changed != content
    file_of(store).write_bytes(changed)
    assert store.read("Fast", "1.0") is None
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "will be made again" in caplog.text
    assert store.write(RECORD)
    assert store.read("Fast", "1.0") == RECORD


def test_every_flipped_byte_is_seen(tmp_path: Path) -> None:
    store = FiguresStore(tmp_path)
    store.write(RECORD)
    content = bytearray(file_of(store).read_bytes())
    for position in range(0, len(content), 7):
        changed = bytearray(content)
        changed[position] ^= 0x04
        file_of(store).write_bytes(changed)
        answer = store.read("Fast", "1.0")
        # White space between numbers may change; the contents may not.
        assert answer in (None, RECORD), position


@pytest.mark.parametrize("number", [math.nan, math.inf, -1.0, "1", None])
def test_a_well_formed_file_with_impossible_costs_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, number: object
) -> None:
    store = FiguresStore(tmp_path)
    costs = BackendCosts("Fast", FigureSource.MEASURED, {}, number)  # type: ignore[arg-type]
    store.write(DeviceRecord("Fast", "1.0", FIGURES, costs))
    assert store.read("Fast", "1.0") is None
    assert "neither a time nor a power" in caplog.text


def test_a_folder_that_cannot_be_written_is_a_warning_and_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    store = FiguresStore(tmp_path / "file")
    assert not store.write(RECORD)
    assert "the figures of Fast cannot be kept" in caplog.text
    assert store.read("Fast", "1.0") is None


def test_a_write_that_breaks_off_leaves_the_old_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FiguresStore(tmp_path)
    store.write(RECORD)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    assert not store.write(DeviceRecord("Fast", "2.0", FIGURES, COSTS))
    assert store.read("Fast", "1.0") == RECORD
    assert len([*(store.directory / "figures").iterdir()]) == 1


def test_threads_that_write_and_read_at_once_see_whole_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    others = [DeviceRecord("Fast", "1.0", FIGURES, COSTS, float(n)) for n in range(4)]
    FiguresStore(tmp_path).write(others[0])

    def work(number: int) -> bool:
        store = FiguresStore(tmp_path)
        seen = True
        for _ in range(50):
            store.write(others[number])
            seen &= store.read("Fast", "1.0") in others
        return seen

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))
    assert not caplog.records
    assert len(FiguresStore(tmp_path).files()) == 1


def test_the_store_is_a_cache_to_look_at_check_and_clear(tmp_path: Path) -> None:
    store = FiguresStore(tmp_path)
    cache = DevicesCache(store)
    assert cache.list_entries() == []
    store.write(RECORD)
    assert [entry.description for entry in cache.list_entries()] == ["figures of a backend"]
    assert cache.location == str(store.directory)
    assert [entry.problem for entry in cache.verify()] == [""]
    file_of(store).write_bytes(b"{}")
    assert [entry.problem for entry in cache.verify()] == ["it is not a file of figures"]
    assert cache.clear() == 1
    assert cache.list_entries() == []
