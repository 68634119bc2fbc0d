"""The page of a conformance result."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from armpy.errors import ParserError
from armpy_conformance import CaseResult, ConformanceResult, Outcome
from armpy_testing.command_line import armpy_output
from armpy_tools.cli.conformance.result_page import matrix_of, read_result, render_result

RESULT = ConformanceResult(
    "Vendor",
    "2.1",
    "1.0",
    (
        CaseResult("Add/a/float32", "Add", "FLOAT32", Outcome.PASSED),
        CaseResult("Add/b/qasymm_s8", "Add", "QASYMM_S8", Outcome.FAILED, "1 < 2 & <script>"),
        CaseResult("Mul/a/float32", "Mul", "FLOAT32", Outcome.UNSUPPORTED, "no multiplier"),
    ),
    ("Mul/b/float32",),
    1.5,
)


def test_a_page_is_made_of_the_json_of_a_result(tmp_path: Path) -> None:
    file, page = tmp_path / "result.json", tmp_path / "page.html"
    file.write_text(RESULT.to_json())
    assert read_result(str(file)).to_document() == RESULT.to_document()
    assert armpy_output(["conformance", "page", str(file), "-o", str(page)])[0] == 0
    assert page.read_text("utf-8") == render_result(RESULT)


@pytest.mark.parametrize("document", ["[]", "{}", '{"backends": []}', "no JSON"])
def test_a_file_without_a_result_is_refused(document: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(document)
    with pytest.raises(ParserError, match="not a result of one backend"):
        read_result(str(file))


class _Resources(HTMLParser):
    """Collects what a page would load, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_shows_problems_as_they_are_written() -> None:
    resources = _Resources()
    resources.feed(render_result(RESULT))
    for text in ("Conformance of Vendor 2.1", "1 < 2 & <script>", "Mul/b/float32", "no multiplier"):
        assert text in resources.text


def test_a_cell_has_its_outcome_and_the_reasons_of_its_cases() -> None:
    resources = _Resources()
    resources.feed(render_result(RESULT))
    for text in (
        "Vendor did not pass: of 3 cases, 1 failed, 1 passed, 1 unsupported.",
        "0 of 1",
        "passed",
        '["1 case unsupported","no multiplier"]',
        '["Add/b/qasymm_s8: failed","1 \\u003c 2 \\u0026 \\u003cscript\\u003e"]',
    ):
        assert text in resources.text
    assert "QASYMM_S8" not in resources.text.replace("qasymm_s8", "")


def test_a_cell_is_of_its_worst_outcome() -> None:
    outcomes = (Outcome.PASSED, Outcome.UNSUPPORTED, Outcome.KNOWN, Outcome.CRASHED)
    for number, kind in enumerate(
        ("passed", "passed in part, the rest unsupported", "known failure", "crashed"), 1
    ):
        cases = tuple(
            CaseResult(f"Add/{n}/float32", "Add", "FLOAT32", outcome)
            for n, outcome in enumerate(outcomes[:number])
        )
        matrix = matrix_of(cases)
        assert matrix.legend[0][0] == kind
        ((name, (cell,)),) = matrix.rows
        assert name == "Add"
        assert cell is not None
        assert cell.text == ("1" if number == 1 else f"1 of {number}")


def test_a_case_that_crashed_stands_below_the_type_of_its_id() -> None:
    cases = (
        CaseResult("Add/a/qasymm_s8", "Add", "", Outcome.CRASHED),
        CaseResult("Add/b/qasymm_s8", "Add", "QASYMM_S8", Outcome.PASSED),
        CaseResult("Add/c/float16", "Add", "", Outcome.CRASHED),
        CaseResult("Add/d", "Add", "", Outcome.CRASHED),
    )
    assert matrix_of(cases).columns == ["int8", "float16", "other"]
