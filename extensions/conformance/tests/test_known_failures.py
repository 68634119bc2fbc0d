"""The file of known failures is strict."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy.errors import InvalidArgumentError
from armpy_conformance import ConformanceResult, Outcome, run_conformance
from armpy_conformance.known_failures import read_known_failures
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.backends.lying_backends import OPERATIONS, Tampering, adds_one

from .kit_runs import options_for

FAILING = "ElementwiseBinary/by-hand-arm-nn-sample/float32"


def run_with(backend: FakeBackend, path: Path, *lines: str) -> ConformanceResult:
    path.write_text("\n".join(lines), "utf-8")
    return run_conformance(
        backend.get_id(),
        runtime_options=options_for(backend),
        filter=FAILING,
        known_failures=path,
    )


def test_a_listed_case_that_fails_is_known_and_does_not_fail_the_run(tmp_path: Path) -> None:
    result = run_with(Tampering(adds_one), tmp_path / "known", f"{FAILING}  # rounds up")
    assert result.is_passed
    (case,) = (judged_case for judged_case in result.results if judged_case.case == FAILING)
    assert case.outcome is Outcome.KNOWN
    assert case.text.startswith("rounds up: ")


def test_a_listed_case_that_passes_fails_the_run(tmp_path: Path) -> None:
    line = f"{FAILING}  # long ago"
    result = run_with(FakeBackend("Liar", OPERATIONS), tmp_path / "known", line)
    assert not result.is_passed
    assert result.unused_known_failures == (FAILING,)


def test_a_listed_case_that_is_unsupported_fails_the_run(tmp_path: Path) -> None:
    result = run_with(FakeBackend("Liar", ()), tmp_path / "known", f"{FAILING}  # long ago")
    assert result.unused_known_failures == (FAILING,)


def test_a_listed_case_that_is_not_run_says_nothing(tmp_path: Path) -> None:
    other = "Rank/scalar/float32-to-signed32  # not selected"
    result = run_with(FakeBackend("Liar", OPERATIONS), tmp_path / "known", other)
    assert result.is_passed


def test_comments_and_empty_lines_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "known"
    path.write_text(f"# a list\n\n   \n{FAILING}  # why # and more\n", "utf-8")
    assert read_known_failures(path, {FAILING}) == {FAILING: "why # and more"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (FAILING, f"line 1: the known failure '{FAILING}' has no reason"),
        (f"{FAILING} #", "has no reason"),
        (f"{FAILING} # a\n{FAILING} # b", "line 2: the case .* is listed twice"),
        ("ElementwiseBinary/ad/float32 # a", f"Did you mean '{FAILING}'"),
        ("zzz # a", "there is no case 'zzz'. Remove the line"),
    ],
)
def test_a_line_that_cannot_be_used_is_an_error(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "known"
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidArgumentError, match=complaint):
        read_known_failures(path, {FAILING})
