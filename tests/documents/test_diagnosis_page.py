"""docs/how_to/diagnosis.md names every tag and every phase."""

from __future__ import annotations

import re
from pathlib import Path

from armpy.core.vlog import TAGS
from armpy.profiling import TracePhase

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "diagnosis.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_names_every_tag_and_every_phase() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)
    assert set(rows) >= set(TAGS)
    assert set(rows) >= {phase.value for phase in TracePhase}
