"""Caches and cores as Linux, Windows and macOS report them; absent systems are faked."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from armpy_numba_acc.machine.cost_model.figures import typical
from armpy_numba_acc.machine.processors import cores, topology
from armpy_numba_acc.runtime import machine

from .support import ISAS

KIB, MIB = 1 << 10, 1 << 20

APPLE_M1 = {
    "hw.physicalcpu": 8,
    "hw.l1dcachesize": 64 * KIB,  # of the slow cores
    "hw.l2cachesize": 4 * MIB,
    "hw.perflevel0.l1dcachesize": 128 * KIB,
    "hw.perflevel0.l2cachesize": 12 * MIB,
    "hw.perflevel0.cpusperl2": 4,
}
INTEL_MAC = {
    "hw.physicalcpu": 4,
    "hw.l1dcachesize": 32 * KIB,
    "hw.l2cachesize": 256 * KIB,
    "hw.l3cachesize": 8 * MIB,
}


def fake_macos(monkeypatch: pytest.MonkeyPatch, numbers: dict[str, int]) -> None:
    class Process:
        def __init__(self, name: object) -> None:
            assert name is None

        def __getattr__(self, name: str) -> Any:
            if name != "sysctlbyname":
                raise AttributeError(name)

            def sysctlbyname(name: bytes, value: Any, size: Any, *rest: Any) -> int:
                assert size._obj.value == 8
                # What it writes has 32 or 64 bits.
                number = numbers.get(name.decode(), 0)
                words = struct.pack("<i" if number < 1 << 16 else "<q", number)
                ctypes.memmove(value, words, len(words))
                return 0 if name.decode() in numbers else -1

            sysctlbyname.restype = None  # type: ignore[attr-defined]
            return sysctlbyname

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", Process)


def windows_record(processors: int, kind: int, cache: bytes = bytes(16)) -> bytes:
    """As winnt.h lays it out: a mask, an enumeration, and a union of 16 bytes."""
    return struct.pack("<QIxxxx", processors, kind) + cache


def windows_cache(level: int, size: int, kind: int) -> bytes:
    return struct.pack("<BBHIIxxxx", level, 8, 64, size, kind)


UNIFIED, INSTRUCTIONS, DATA = range(3)
RYZEN = [
    windows_record(0b0011, 0),
    windows_record(0b0011, 2, windows_cache(1, 32 * KIB, DATA)),
    windows_record(0b0011, 2, windows_cache(1, 64 * KIB, INSTRUCTIONS)),
    windows_record(0b0011, 2, windows_cache(2, MIB, UNIFIED)),
    windows_record(0b1111, 2, windows_cache(3, 16 * MIB, UNIFIED)),
    windows_record(0b1100, 0),
    windows_record(0b1100, 2, windows_cache(1, 48 * KIB, DATA)),  # of another core
    windows_record(0b1111, 3),
    windows_record(0b1111, 1),
]
"""Two cores of two threads each."""


def fake_windows(monkeypatch: pytest.MonkeyPatch, records: list[bytes]) -> None:
    words = b"".join(records)

    class Kernel32:
        def __init__(self, name: str) -> None:
            assert name == "kernel32"

        def GetLogicalProcessorInformation(self, buffer: Any, size: Any) -> int:
            is_enough = buffer is not None and len(buffer) >= len(words)
            if is_enough:
                ctypes.memmove(buffer, words, len(words))
            size._obj.value = len(words)
            return int(is_enough and bool(words))

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "WinDLL", Kernel32, raising=False)


def test_windows_says_caches_of_the_first_core(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_windows(monkeypatch, RYZEN)
    assert topology.cache_sizes() == {1: 32 * KIB, 2: MIB, 3: 16 * MIB}


def test_threads_of_one_core_count_once_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_windows(monkeypatch, RYZEN)
    assert cores.usable_cores() == 2


@pytest.mark.parametrize(
    ("numbers", "expected", "num_cores"),
    [
        (APPLE_M1, {1: 128 * KIB, 2: 3 * MIB}, 8),
        (INTEL_MAC, {1: 32 * KIB, 2: 256 * KIB, 3: 8 * MIB}, 4),
    ],
    ids=["Apple M1", "Intel"],
)
def test_macos_says_caches_of_its_fast_cores(
    numbers: dict[str, int],
    expected: dict[int, int],
    num_cores: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_macos(monkeypatch, numbers)
    assert topology.cache_sizes() == expected
    assert cores.usable_cores() == num_cores


def test_linux_says_caches_in_files(tmp_path: Path) -> None:
    kinds = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K")]
    for number, words in enumerate(kinds):
        folder = tmp_path / f"sys/devices/system/cpu/cpu0/cache/index{number}"
        folder.mkdir(parents=True)
        for name, word in zip(("level", "type", "size"), words, strict=True):
            (folder / name).write_text(f"{word}\n")
    assert topology.cache_sizes(tmp_path) == {1: 48 * KIB, 2: 2 * MIB}


@pytest.mark.parametrize("system", ["windows", "macos"])
def test_a_system_that_says_nothing_gets_typical_caches(
    system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if system == "windows":
        fake_windows(monkeypatch, [])
    else:
        fake_macos(monkeypatch, {})
    assert topology.cache_sizes() == {}
    assert cores.usable_cores() == (os.cpu_count() or 1)
    levels = typical(ISAS[0]).levels
    assert machine._levels(levels) == [*levels]


def test_sizes_of_caches_become_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_windows(monkeypatch, RYZEN)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    sizes = [level.size_bytes for level in machine._levels(typical(ISAS[0]).levels)]
    # The last level counts with a share of it, and memory has no size.
    assert sizes == [32 * KIB, MIB, 4 * MIB, 0]
