"""The pages about requirements of Arm NN's guide and NNAPI's documents name tests that exist."""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_ITEM = re.compile(r"^(\d+)\. (.*?)(?=\n\n|\n\d+\. |\Z)", re.M | re.S)
_PARTS = re.compile(r"\*((?:`[^`]*`|[^*`])*)\* ?(.*?) ?(?:\(((?:`[^`]+`(?:, )?)+)\))?")
_TEST = re.compile(r"^ *def (test_\w+)", re.M)
_ANSWERS = ("Otherwise", "Partly", "No")


def items(page: str) -> list[tuple[str, str, str, str]]:
    """Number, requirement, answer and tests of each item of the lists."""
    parts = []
    for number, text in _ITEM.findall(page):
        match = _PARTS.fullmatch(" ".join(text.split()))
        parts.append((number, *match.groups(default="")) if match else (number, "", "", ""))
    return parts


def answers(page: str) -> Counter[str]:
    """How often each answer is given: "yes", or the first word before a colon."""
    return Counter(_answer(answer)[0] for _, _, answer, _ in items(page))


def summary(page: str) -> str:
    """How often each answer is given, as a page says it."""
    return f"Answers: {', '.join(f'{n} {answer}' for answer, n in answers(page).most_common())}."


def _answer(text: str) -> tuple[str, str]:
    """An answer and its reason."""
    word, colon, reason = text.partition(":")
    return (word.lower(), reason) if colon and word in _ANSWERS else ("yes", text)


@functools.cache
def _files() -> dict[str, list[str]]:
    """The files that have a test, by its name."""
    files = defaultdict(list)
    for folder in ("tests", "extensions", "backends", "testing"):
        for path in (ROOT / folder).rglob("test_*.py"):
            for name in set(_TEST.findall(path.read_text("utf-8"))):
                files[name].append(path.relative_to(ROOT).as_posix())
    return files


def _is_one_test(reference: str) -> bool:
    """Whether a name, or the end of a path and a name after two colons, is in one file."""
    file, _, name = reference.rpartition("::")
    files = _files().get(name, [])
    return sum(path.endswith(file) for path in files) == 1


def problems(page: str) -> list[str]:
    """Faults of a page, whose answers "no" need no test.

    Notes
    -----
    An item has a number, the requirement in italics, what there is here (with a reason, unless the
    answer is "yes"), and tests in brackets.
    """
    texts = []
    for expected, (number, requirement, answer, tests) in enumerate(items(page), 1):
        word, reason = _answer(answer)
        if number != str(expected):
            texts.append(f"item {number} is the {expected}th")
        if not requirement:
            texts.append(f"item {number} has no requirement")
        if word != "yes" and not reason:
            texts.append(f"item {number} has no reason")
        references = re.findall(r"`(.*?)`", tests)
        if not references and word != "no":
            texts.append(f"item {number} names no test")
        texts += [f"{name} is not one test" for name in references if not _is_one_test(name)]
    return texts


REFERENCE = ROOT / "docs" / "reference"


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("guide_requirements.md", 162),
        pytest.param("nnapi_requirements.md", 221, marks=pytest.mark.slow),
    ],
)
def test_every_requirement_is_held_by_tests_that_exist_or_has_a_reason(
    page: str, count: int
) -> None:
    text = (REFERENCE / page).read_text()
    assert len(items(text)) == count
    assert problems(text) == []
    assert summary(text) in text


@pytest.mark.parametrize(
    ("page", "most_partly"), [("guide_requirements.md", 2), ("nnapi_requirements.md", 3)]
)
def test_every_requirement_is_met_by_some_means(page: str, most_partly: int) -> None:
    given = answers((REFERENCE / page).read_text())
    assert given["no"] == 0
    assert given["partly"] <= most_partly
