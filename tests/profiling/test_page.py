"""docs/how_to/profiling.md names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import armpy.profiling
from armpy.backend import IBackendProfiling
from armpy.profiling import Profiler, Summary

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "profiling.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_names_what_there_is() -> None:
    names = re.findall(r"`profiler\.(\w+)", TEXT)
    assert names
    for name in names:
        assert hasattr(Profiler(), name), name
    for name in re.findall(r"`armpy\.profiling\.(\w+)", TEXT):
        assert hasattr(armpy.profiling, name), name
    for name in re.findall(r"profiling\.(\w+)\(", TEXT):
        assert hasattr(IBackendProfiling, name) or hasattr(armpy.profiling, name), name
    parts = re.findall(r"^\| `(\w+)`", TEXT, re.MULTILINE)
    assert parts
    assert set(parts) <= set(Summary.__dataclass_fields__)


def test_the_page_names_every_phase_of_a_load() -> None:
    sources = Path(armpy.__file__).parent.rglob("*.py")
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    phases = set(re.findall(r"phase\(\"([a-z ]+)\"", code)) - {"load", "prepare", "optimise"}
    assert len(phases) >= 10
    for name in phases:
        assert f"`{name}`" in " ".join(TEXT.split()), name
