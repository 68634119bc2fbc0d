"""Pages of requirements: tables whose rows name the tests that hold them."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
_REFERENCE = re.compile(r"`([\w/]+\.py)::((?:\w+::)?\w+)`")


def rows(page: str) -> list[list[str]]:
    """The cells of each row that begins with a number."""
    lines = [line for line in page.splitlines() if re.match(r"\| \d", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def summary(page: str) -> str:
    """How often each answer is given, as a page says it."""
    counts_by_answer = Counter(cells[2] for cells in rows(page))
    counts = ", ".join(f"{count} {answer}" for answer, count in counts_by_answer.most_common())
    return f"Answers: {counts}."


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


def problems(page: str, answers: Sequence[str]) -> list[str]:
    """Faults of a page whose rows have one of some answers, of which "no" needs no test.

    Notes
    -----
    A row has a number, the requirement, the answer, what there is here (a reason, unless the answer
    is "yes"), and tests.
    """
    texts = []
    for expected, cells in enumerate(rows(page), 1):
        if len(cells) != 5:
            texts.append(f"row {expected} has {len(cells)} cells")
            continue
        number, text, answer, here, held = cells
        if number != str(expected):
            texts.append(f"row {number} is the {expected}th")
        if answer not in answers or not text:
            texts.append(f"row {number} has no answer")
        if answer != "yes" and not here:
            texts.append(f"row {number} has no reason")
        named = _REFERENCE.findall(held)
        if not named and answer != "no":
            texts.append(f"row {number} names no test")
        texts += [f"there is no {f}::{name}" for f, name in named if name not in names_in(f)]
    return texts
