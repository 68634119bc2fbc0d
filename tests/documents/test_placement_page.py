"""docs/how_to/placement.md lists preferences and numbers as they are."""

from __future__ import annotations

import re
from pathlib import Path

from armpy.types import Preference

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "placement.md"
TEXT = " ".join(PAGE.read_text(encoding="utf-8").split())


def test_the_page_lists_every_preference() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [preference.value for preference in Preference]
