"""The digest of discovery: another one after any change of its results, the same otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from armpy.core.file_ownership import HAS_OWNERS
from armpy.plugins.discovery.environment import environment_digest


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ARMPY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    "name", ["ARMPY_BACKENDS", "ARMPY_DYNAMIC_BACKENDS_PATH", "ARMPY_TRUST_FILE", "ARMPY_ACME_X"]
)
def test_variables_change_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = environment_digest()
    monkeypatch.setenv(name, "/x")
    assert environment_digest() != before


def test_what_the_trust_file_says_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "trust.toml"
    monkeypatch.setenv("ARMPY_TRUST_FILE", str(file))
    seen = [environment_digest()]
    for text in ("allow = ['CpuRef']", "allow = ['Other!']"):
        file.write_text(text)
        seen.append(environment_digest())
    assert len(set(seen)) == 3
    if HAS_OWNERS:
        file.chmod(0o666)
        assert environment_digest() not in seen
