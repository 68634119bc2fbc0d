"""docs/how_to/diagnosis.md is followed from top to bottom: what the page shows is what runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from armpy.profiling import TracePhase
from armpy.vlog import TAGS

PAGE = Path(__file__).parents[1] / "docs" / "how_to" / "diagnosis.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_pages_blocks_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 4
    # In a process of its own, as a process has one provider of spans.
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_page_names_every_tag_and_every_phase() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)
    assert set(rows) >= set(TAGS)
    assert set(rows) >= {phase.value for phase in TracePhase}
