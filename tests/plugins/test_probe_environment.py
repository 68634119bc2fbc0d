from __future__ import annotations

from pathlib import Path

import pytest

from armpy.plugins import Candidate, CandidateKind
from armpy.plugins.probe import fingerprint


def test_what_a_variable_causes_is_not_remembered_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "Some_backend.py"
    path.write_text("")
    candidate = Candidate(
        "Some", str(path), CandidateKind.DIRECTORY, "Some_backend", path=str(path)
    )
    before = fingerprint(candidate, {})
    monkeypatch.setenv("ARMPY_NUMBA_ISA", "sse9")
    changed = fingerprint(candidate, {})
    monkeypatch.delenv("ARMPY_NUMBA_ISA")
    assert before
    assert changed != before
    assert fingerprint(candidate, {}) == before
