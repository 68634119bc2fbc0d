"""docs/reference/nnapi.md names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import armpy_nnapi as nnapi

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "nnapi.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_names_what_there_is() -> None:
    classes = ("Model", "Memory", "Compilation", "Execution", "Device", "DeviceManager")
    names = re.findall(r"`(\w+)\.(\w+)", TEXT)
    assert len(names) > 10
    for owner, member in names:
        if owner in classes:
            assert hasattr(getattr(nnapi, owner), member), f"{owner}.{member}"
    for name in re.findall(r"`([A-Z]+_[A-Z_]+_NS|validate_\w+|minimum_\w+|graph_dump)`", TEXT):
        assert name in nnapi.__all__
