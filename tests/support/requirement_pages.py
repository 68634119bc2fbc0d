"""Pages of requirements: tables whose rows name the tests that hold them."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
_REFERENCE = re.compile(r"`([\w/]+\.py)::((?:\w+::)?\w+)`")
_ANSWERS = ("Otherwise", "Partly", "No")


def rows(page: str) -> list[list[str]]:
    """The cells of each row that begins with a number."""
    lines = [line for line in page.splitlines() if re.match(r"\| \d", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def answers(page: str) -> Counter[str]:
    """How often each answer is given: "yes", or the first word of the second cell."""
    return Counter(_answer(cells[1])[0] for cells in rows(page))


def summary(page: str) -> str:
    """How often each answer is given, as a page says it."""
    return f"Answers: {', '.join(f'{n} {answer}' for answer, n in answers(page).most_common())}."


def _answer(cell: str) -> tuple[str, str]:
    """An answer and its reason."""
    word, colon, reason = cell.partition(":")
    return (word.lower(), reason) if colon and word in _ANSWERS else ("yes", cell)


@functools.cache
def names_in(file: str) -> frozenset[str]:
    """The names of the tests in a file, "Class::test" in a class; none if there is no such file."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for group in tree.body:
        if isinstance(group, ast.ClassDef):
            tests = (node for node in group.body if isinstance(node, ast.FunctionDef))
            names |= {f"{group.name}::{test.name}" for test in tests}
    return frozenset(names)


def problems(page: str) -> list[str]:
    """Faults of a page, whose answers "no" need no test.

    Notes
    -----
    A row has a number with the requirement, what there is here (with a reason, unless the answer is
    "yes"), and tests.
    """
    texts = []
    for expected, cells in enumerate(rows(page), 1):
        if len(cells) != 3:
            texts.append(f"row {expected} has {len(cells)} cells")
            continue
        number, _, requirement = cells[0].partition(".")
        answer, reason = _answer(cells[1])
        if number != str(expected):
            texts.append(f"row {number} is the {expected}th")
        if not requirement.strip():
            texts.append(f"row {number} has no requirement")
        if answer != "yes" and not reason:
            texts.append(f"row {number} has no reason")
        named = _REFERENCE.findall(cells[2])
        if not named and answer != "no":
            texts.append(f"row {number} names no test")
        texts += [f"there is no {f}::{name}" for f, name in named if name not in names_in(f)]
    return texts
