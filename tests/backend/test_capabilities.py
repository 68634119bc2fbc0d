"""Capabilities are what the core asks about."""

from __future__ import annotations

from pathlib import Path

import armpy
from armpy.backend import Capability

SOURCES = Path(armpy.__file__).parent
OWN = SOURCES / "backend" / "capabilities.py"
HANDED_ON = SOURCES / "plugins" / "isolation" / "backend.py"
"""Names those that it does not hand on."""


def test_the_core_asks_about_every_capability() -> None:
    files = [path for path in sorted(SOURCES.rglob("*.py")) if path not in (OWN, HANDED_ON)]
    text = "".join(path.read_text() for path in files)
    assert [
        capability.name for capability in Capability if f"Capability.{capability.name}" not in text
    ] == []
