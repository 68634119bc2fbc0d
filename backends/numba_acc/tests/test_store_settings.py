from __future__ import annotations

from pathlib import Path

import pytest
from armpy_numba_acc.store.settings import disk_entries

from armpy.errors import InvalidArgumentError


def test_the_environment_says_where_and_how_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ARMPY_NUMBA_CACHE", raising=False)
    monkeypatch.setenv("ARMPY_NUMBA_CACHE_MB", "3")
    entries = disk_entries()
    assert entries is not None
    assert (entries.location, entries.limit_bytes) == (str(tmp_path / "numba_acc"), 3 << 20)
    monkeypatch.setenv("ARMPY_NUMBA_CACHE", "off")
    assert disk_entries() is None


def test_a_limit_of_thousands_of_digits_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMPY_NUMBA_CACHE_MB", "9" * 5000)
    with pytest.raises(InvalidArgumentError, match=r"at most 12 digits; got '9{40}\.\.\.'"):
        disk_entries()


@pytest.mark.parametrize(
    ("name", "value"), [("ARMPY_NUMBA_CACHE", "/tmp"), ("ARMPY_NUMBA_CACHE_MB", "-1")]
)
def test_other_settings_are_errors(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidArgumentError, match=f"{name}: .*{value}"):
        disk_entries()
