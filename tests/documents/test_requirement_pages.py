"""The pages about requirements of Arm NN's guide and NNAPI's documents name tests that exist."""

from __future__ import annotations

import re

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


def test_the_page_about_nnapi_leads_to_its_requirements() -> None:
    assert "(nnapi_requirements.md)" in (REFERENCE / "nnapi.md").read_text()


HERE = "tests/documents/test_requirement_pages.py"
ITEM = f"1. *A rule.* Here. (`{HERE}::test_a_wrong_page_is_noticed`)"


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (ITEM, ""),
        (ITEM.replace("wrong", "right"), f"{HERE}::test_a_right_page"),
        (ITEM.replace("requirement_pages", "no"), "tests/documents/test_no.py::test_a_wrong"),
        (re.sub("tests/.*notic.d", "test_shapes", ITEM), "test_shapes is not one test"),  # but 3
        (ITEM.replace("1.", "2."), "item 2 is the 1th"),
        (ITEM.replace("*", ""), "item 1 has no requirement"),
        (ITEM.replace("Here.", "Partly:"), "item 1 has no reason"),
        (ITEM.replace("Here.", "Otherwise:"), "item 1 has no reason"),
        ("1. *A rule.* No: why.", ""),
        ("1. *A rule.* No:", "item 1 has no reason"),
        ("1. *A rule.* Partly: why.", "item 1 names no test"),
    ],
)
def test_a_wrong_page_is_noticed(item: str, problem: str) -> None:
    text = "; ".join(problems(item))
    assert text.startswith(problem)
    assert bool(text) is bool(problem)
