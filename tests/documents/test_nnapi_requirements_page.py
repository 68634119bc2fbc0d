"""The page about the requirements of NNAPI's documents names tests that exist."""

from __future__ import annotations

import re

import pytest

from tests.support import requirement_pages
from tests.support.requirement_pages import ROOT, items, problems

PAGE = ROOT / "docs" / "reference" / "nnapi_requirements.md"
NUM_REQUIREMENTS = 139


@pytest.mark.slow
def test_every_requirement_is_held_by_tests_that_exist_or_has_a_reason() -> None:
    page = PAGE.read_text()
    assert len(items(page)) == NUM_REQUIREMENTS
    assert problems(page) == []
    assert requirement_pages.summary(page) in page


def test_the_page_about_nnapi_leads_to_it() -> None:
    assert "(nnapi_requirements.md)" in (ROOT / "docs" / "reference" / "nnapi.md").read_text()


def test_every_requirement_is_met_by_some_means() -> None:
    answers = requirement_pages.answers(PAGE.read_text())
    assert answers["no"] == 0
    assert answers["partly"] <= 3


HERE = "tests/documents/test_nnapi_requirements_page.py"
ITEM = f"1. *A rule.* Here. (`{HERE}::test_a_wrong_page_is_noticed`)"


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (ITEM, ""),
        (ITEM.replace("wrong", "right"), f"{HERE}::test_a_right_page"),
        (
            ITEM.replace("nnapi_requirements_page", "no_page"),
            "tests/documents/test_no_page.py::test_a_wrong",
        ),
        (re.sub("tests/.*::", "", ITEM), "test_a_wrong_page_is_noticed is not one test"),
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
