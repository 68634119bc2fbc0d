"""What a run has found, as counts, JSON and a page."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from armpy.testing import CaseResult, ConformanceResult, Outcome

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


def test_counts_are_by_operation_and_by_type() -> None:
    assert RESULT.counts == {
        "passed": 1,
        "unsupported": 1,
        "known failure": 0,
        "failed": 1,
        "crashed": 0,
    }
    assert RESULT.by_operation["Add"]["failed"] == 1
    assert RESULT.by_data_type["FLOAT32"] == RESULT.counts | {"failed": 0}
    assert str(RESULT) == "Vendor: 1 passed, 1 unsupported, 1 failed"


def test_a_failure_or_an_unused_line_fails_the_run() -> None:
    passed = RESULT.results[:1]
    assert not RESULT.is_passed
    assert ConformanceResult("V", "", "1.0", passed).is_passed
    assert not ConformanceResult("V", "", "1.0", passed, ("x",)).is_passed


def test_json_holds_everything() -> None:
    document = json.loads(RESULT.to_json())
    assert document["backend"] == "Vendor"
    assert document["is_passed"] is False
    assert document["results"][1]["outcome"] == "failed"
    assert document["unused_known_failures"] == ["Mul/b/float32"]


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


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = RESULT.to_html()
    found = _Resources()
    found.feed(page)
    assert found.links == []
    assert not found.tags & {"script", "link", "img", "iframe"}
    assert "url(" not in page
    assert "@import" not in page


def test_the_page_shows_problems_as_they_are_written() -> None:
    found = _Resources()
    found.feed(RESULT.to_html())
    for text in ("Conformance of Vendor 2.1", "1 < 2 & <script>", "Mul/b/float32", "no multiplier"):
        assert text in found.text
