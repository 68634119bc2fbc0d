"""docs/how_to/placement.md lists preferences and numbers as they are."""

from __future__ import annotations

import re
from pathlib import Path

from armpy.types import Preference
from armpy_tools.placement import trials
from armpy_tools.placement.partition import WIDTH

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "placement.md"
TEXT = " ".join(PAGE.read_text(encoding="utf-8").split())


def test_the_page_lists_every_preference() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [preference.value for preference in Preference]


def test_the_pages_numbers_are_those_of_the_code() -> None:
    for text in (
        f"more than {WIDTH} partial placements",
        f"for at most {trials.RACE_S} s, each turn at least {1e3 * trials.SAMPLE_S:.1f} ms",
        f"take {trials.FAR_SLOWER:.0f} times as long as the fastest",
        f"those that take {trials.SLOWER} times as long",
        f"at most {100 * (trials.SIMPLER - 1):.0f} % longer",
        f"more than {trials.DEADLINE_S:.0f} s, is never chosen",
        "five times these (cut parts lose fusion)",
    ):
        assert text in TEXT
