"""The page about the backend developer guide's requirements names tests that exist."""

from __future__ import annotations

import pytest

from tests.support import requirement_pages
from tests.support.requirement_pages import ROOT, problems, rows

PAGE = ROOT / "docs" / "reference" / "guide_requirements.md"


def test_every_requirement_is_held_by_tests_that_exist() -> None:
    page = PAGE.read_text()
    assert len(rows(page)) >= 65
    assert problems(page) == []
    assert requirement_pages.summary(page) in page


def test_every_requirement_is_met_by_some_means() -> None:
    answers = requirement_pages.answers(PAGE.read_text())
    assert answers["no"] == 0
    assert answers["partly"] <= 2


ROW = "| 1. a rule | here | `tests/test_guide_page.py::test_a_wrong_page_is_noticed` |"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (ROW, ""),
        (ROW.replace("wrong", "right"), "there is no tests/test_guide_page.py::test_a_right_page"),
        (ROW.replace("guide_page", "no_page"), "there is no tests/test_no_page.py::test_a_wrong"),
        (ROW.replace("::", "::TestNone::"), "there is no tests/test_guide_page.py::TestNone::"),
        (ROW.replace("| 1", "| 2"), "row 2 is the 1th"),
        (ROW.replace("a rule", ""), "row 1 has no requirement"),
        (ROW.replace("here", "Partly:"), "row 1 has no reason"),
        ("| 1. a rule | No: why | |", ""),
        (ROW.replace("here", "Otherwise:"), "row 1 has no reason"),
        (ROW.replace("`", ""), "row 1 names no test"),
        (ROW + " more |", "row 1 has 4 cells"),
    ],
)
def test_a_wrong_page_is_noticed(row: str, problem: str) -> None:
    text = "; ".join(problems(row))
    assert text.startswith(problem)
    assert bool(text) is bool(problem)
