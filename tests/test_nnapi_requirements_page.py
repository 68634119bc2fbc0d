"""The page about the requirements of NNAPI's documents names tests that exist."""

from __future__ import annotations

import pytest

from tests.support import requirement_pages
from tests.support.requirement_pages import ROOT, problems, rows

PAGE = ROOT / "docs" / "reference" / "nnapi_requirements.md"
NUM_REQUIREMENTS = 104


@pytest.mark.slow
def test_every_requirement_is_held_by_tests_that_exist_or_has_a_reason() -> None:
    page = PAGE.read_text()
    assert len(rows(page)) == NUM_REQUIREMENTS
    assert problems(page) == []
    assert requirement_pages.summary(page) in page


def test_the_page_about_nnapi_leads_to_it() -> None:
    assert "(nnapi_requirements.md)" in (ROOT / "docs" / "reference" / "nnapi.md").read_text()


def test_every_requirement_is_met_by_some_means() -> None:
    answers = requirement_pages.answers(PAGE.read_text())
    assert answers["no"] == 0
    assert answers["partly"] <= 6


ROW = "| 1. a rule | here | `tests/test_nnapi_requirements_page.py::test_a_wrong_page_is_noticed` |"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (ROW, ""),
        (
            ROW.replace("wrong", "right"),
            "there is no tests/test_nnapi_requirements_page.py::test_a",
        ),
        (ROW.replace("requirements", "no"), "there is no tests/test_nnapi_no_page.py::test_a"),
        (ROW.replace("| 1", "| 2"), "row 2 is the 1th"),
        (ROW.replace("a rule", ""), "row 1 has no requirement"),
        (ROW.replace("here", "Partly:"), "row 1 has no reason"),
        (ROW.replace("`", ""), "row 1 names no test"),
        ("| 1. a rule | No: why | |", ""),
        ("| 1. a rule | No: | |", "row 1 has no reason"),
        ("| 1. a rule | Partly: why | |", "row 1 names no test"),
        (ROW + " more |", "row 1 has 4 cells"),
    ],
)
def test_a_wrong_page_is_noticed(row: str, problem: str) -> None:
    text = "; ".join(problems(row))
    assert text.startswith(problem)
    assert bool(text) is bool(problem)
