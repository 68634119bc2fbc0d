"""The pages about requirements of Arm NN's guide and NNAPI's documents name tests that exist."""

from __future__ import annotations

import pytest

from tests.support import requirement_pages
from tests.support.requirement_pages import ROOT, items, problems

REFERENCE = ROOT / "docs" / "reference"


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("guide_requirements.md", 113),
        pytest.param("nnapi_requirements.md", 139, marks=pytest.mark.slow),
    ],
)
def test_every_requirement_is_held_by_tests_that_exist_or_has_a_reason(
    page: str, count: int
) -> None:
    text = (REFERENCE / page).read_text()
    assert len(items(text)) == count
    assert problems(text) == []
    assert requirement_pages.summary(text) in text


@pytest.mark.parametrize(
    ("page", "most_partly"), [("guide_requirements.md", 2), ("nnapi_requirements.md", 3)]
)
def test_every_requirement_is_met_by_some_means(page: str, most_partly: int) -> None:
    answers = requirement_pages.answers((REFERENCE / page).read_text())
    assert answers["no"] == 0
    assert answers["partly"] <= most_partly
