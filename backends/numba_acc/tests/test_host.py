from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from armpy_numba_acc.llvm.host import host_isas, read_host
from armpy_numba_acc.machine.isa import Host
from armpy_numba_acc.machine.processors import features
from armpy_numba_acc.store import host
from armpy_numba_acc.store.host import known_isas

DESCRIPTION = """processor\t: 0
vendor_id\t: UnknownVendor
model\t\t: 7
cpu MHz\t\t: {mhz}
flags\t\t: {flags}

processor\t: 1
"""


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ARMPY_NUMBA_CACHE", raising=False)
    known_isas.cache_clear()
    yield
    known_isas.cache_clear()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often LLVM was asked."""
    times: list[int] = []

    def ask() -> Host:
        times.append(1)
        return read_host()

    monkeypatch.setattr(host, "_read_host", ask)
    return times


def describe(path: Path, monkeypatch: pytest.MonkeyPatch, **words: str) -> None:
    """Let the kernel describe the processor in some words."""
    path.write_text(DESCRIPTION.format(**{"mhz": "1000", "flags": "fpu avx", **words}))
    monkeypatch.setattr(features, "_DESCRIPTION", str(path))
    known_isas.cache_clear()


def test_llvm_is_asked_once(
    asked: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mhz in ("1000", "2000"):
        describe(tmp_path / "cpuinfo", monkeypatch, mhz=mhz)
        assert known_isas() == host_isas()
    assert len(asked) == 1


def test_llvm_is_asked_again_about_another_processor(
    asked: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for flags in ("fpu avx", "fpu avx avx2"):
        describe(tmp_path / "cpuinfo", monkeypatch, flags=flags)
        assert known_isas() == host_isas()
    assert len(asked) == 2


@pytest.mark.parametrize("text", [None, "", "processor : 0\nmodel : 7\n"])
def test_llvm_is_always_asked_where_the_kernel_reports_nothing(
    text: str | None, asked: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(features, "_DESCRIPTION", str(tmp_path / "cpuinfo"))
    for _ in range(2):
        known_isas.cache_clear()
        assert known_isas() == host_isas()
    assert len(asked) == 2


def test_llvm_is_asked_always_if_nothing_is_kept(
    asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_NUMBA_CACHE", "off")
    for _ in range(2):
        known_isas.cache_clear()
        assert known_isas() == host_isas()
    assert len(asked) == 2
