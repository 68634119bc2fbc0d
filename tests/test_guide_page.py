"""The page about the backend developer guide's requirements names tests that exist."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guide_requirements.md"
_REFERENCE = re.compile(r"`([\w/]+\.py)::(\w+)`")
_ANSWERS = ("yes", "otherwise")


def rows(page: str) -> list[list[str]]:
    """The cells of each row that begins with a number."""
    lines = [line for line in page.splitlines() if re.match(r"\| \d", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@functools.cache
def names_in(file: str) -> frozenset[str]:
    """The names of the tests in a file; none if there is no such file."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def problems(page: str) -> list[str]:
    """What is wrong with the page."""
    found = []
    for expected, cells in enumerate(rows(page), 1):
        if len(cells) != 5:
            found.append(f"row {expected} has {len(cells)} cells")
            continue
        number, text, answer, here, held = cells
        if number != str(expected):
            found.append(f"row {number} is the {expected}th")
        if answer not in _ANSWERS or not text:
            found.append(f"row {number} has no answer")
        if answer == "otherwise" and not here:
            found.append(f"row {number} has no reason")
        named = _REFERENCE.findall(held)
        if not named:
            found.append(f"row {number} names no test")
        found += [f"there is no {f}::{name}" for f, name in named if name not in names_in(f)]
    return found


def test_every_requirement_is_held_by_tests_that_exist() -> None:
    page = PAGE.read_text()
    assert len(rows(page)) >= 65
    assert problems(page) == []


ROW = "| 1 | a rule | yes | here | `tests/test_guide_page.py::test_a_wrong_page_is_noticed` |"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (ROW, ""),
        (ROW.replace("wrong", "right"), "there is no tests/test_guide_page.py::test_a_right_page"),
        (ROW.replace("guide_page", "no_page"), "there is no tests/test_no_page.py::test_a_wrong"),
        (ROW.replace("| 1", "| 2"), "row 2 is the 1th"),
        (ROW.replace("yes", "partly"), "row 1 has no answer"),
        (ROW.replace("yes | here", "otherwise | "), "row 1 has no reason"),
        (ROW.replace("`", ""), "row 1 names no test"),
        (ROW + " more |", "row 1 has 6 cells"),
    ],
)
def test_a_wrong_page_is_noticed(row: str, problem: str) -> None:
    found = "; ".join(problems(row))
    assert found.startswith(problem)
    assert bool(found) is bool(problem)
