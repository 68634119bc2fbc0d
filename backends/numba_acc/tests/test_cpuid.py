"""What the processor says of itself, beside what Linux says of it."""

from __future__ import annotations

import platform
import sys

import pytest
from armpy_numba_acc.machine.processors import cpuid, features

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="other processors have no CPUID"
)


@pytest.mark.skipif(sys.platform != "linux", reason="compares with Linux's description")
def test_the_processor_says_what_linux_says() -> None:
    assert cpuid.features_in(*cpuid.read_leaves()) == features._described()


def test_each_feature_has_its_own_bit() -> None:
    places = [bit[:4] for bit in cpuid.FEATURES.values()]
    assert len({*places}) == len(places)
    assert {*cpuid.FEATURES} == {*features._LINUX_X86.values()}


def test_registers_that_the_system_does_not_save_hide_features() -> None:
    # All bits of all leaves: a processor that has everything.
    everything = {(bit.leaf, bit.subleaf): (0xFFFFFFFF,) * 4 for bit in cpuid.FEATURES.values()}
    all_saved = cpuid.features_in(everything, 0x600E7)
    assert all_saved == {*cpuid.FEATURES}
    without_tiles = cpuid.features_in(everything, 0xE7)
    assert all_saved - without_tiles == {"amx-tile", "amx-int8", "amx-bf16"}
    without_wide = cpuid.features_in(everything, 0x7)
    assert "avx2" in without_wide
    assert not any(name.startswith("avx512") for name in without_wide)
    assert not {"avx", "avx2", "fma", "f16c", "avxvnni"} & cpuid.features_in(everything, 0x3)


def test_a_processor_without_leaves_has_no_features(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cpuid.features_in({}, 0) == frozenset()
    monkeypatch.setattr(cpuid, "read_leaves", lambda: ({}, 0))
    assert cpuid.identity() == ()


def test_the_processor_is_known_where_no_file_describes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = cpuid.features_in(*cpuid.read_leaves())
    monkeypatch.setattr(sys, "platform", "win32")
    assert features._described() == here
    first = features.identity_of_processor()
    assert first
    assert first == features.identity_of_processor()
