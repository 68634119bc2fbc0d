"""The page of a conformance run: the verdict, operations by type, problems and every case."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import armpy
from armpy.cli.files import write_text
from armpy.core.units import counted, type_name
from armpy.errors import ParserError
from armpy.types import DataType
from armpy_conformance.result import CONTRACT, CaseResult, ConformanceResult, Outcome
from armpy_tools.pages import (
    Details,
    Mark,
    Matrix,
    MatrixCell,
    Part,
    Section,
    Table,
    Text,
    TwoLines,
    render_page,
)

_IN_PART = "passed in part, the rest unsupported"
_KINDS = (
    (Outcome.PASSED.value, "good"),
    (_IN_PART, "part"),
    (Outcome.UNSUPPORTED.value, "grey"),
    (Outcome.ELSEWHERE.value, "other"),
    (Outcome.KNOWN.value, "known"),
    (Outcome.FAILED.value, "bad"),
    (Outcome.CRASHED.value, "worse"),
)
"""Kinds of cells with their colours."""

_WORST_FIRST = (Outcome.CRASHED, Outcome.FAILED, Outcome.KNOWN, Outcome.ELSEWHERE)
_MOST_LINES = 30
"""Of a cell; the table of cases has all."""


def page(result: str, output: str) -> None:
    """Write RESULT as a page: operations by type in colours, problems, and every case."""
    write_text(output, render_result(read_result(result)))


def read_result(path: str) -> ConformanceResult:
    """Read a result from its JSON.

    Raises
    ------
    ParserError
        If the file holds no result of one backend.
    """
    try:
        document = json.loads(Path(path).read_text("utf-8"))
        results = tuple(
            CaseResult(
                **case
                | {
                    "outcome": Outcome(case["outcome"]),
                    "claimed": tuple(case["claimed"]),
                    "ran": tuple(case["ran"]),
                }
            )
            for case in document["results"]
        )
        return ConformanceResult(
            document["backend"],
            document["backend_version"],
            document["api_version"],
            results,
            tuple(document["unused_known_failures"]),
            document["duration_s"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ParserError(
            "not a result of one backend",
            where=path,
            fix="Write one: armpy conformance ID --json > FILE",
        ) from error


def render_result(result: ConformanceResult) -> str:
    """Everything of a run as one HTML page that needs nothing else."""
    version = f" {result.backend_version}" if result.backend_version else ""
    about = (
        f"armpy {armpy.__version__}, contract {result.api_version}, took {result.duration_s:.1f} s"
    )
    return render_page(f"Conformance of {result.backend}{version}", _sections(result), about)


def _sections(result: ConformanceResult) -> list[Section]:
    """Verdict, problems, operations by type, every case."""
    unused = [(case,) for case in result.unused_known_failures]
    caption = "Listed as known failures, but did not fail"
    problems = [_case_table("Cases that crashed or failed", result.problems)]
    tried = [case for case in result.results if case.operation != CONTRACT]
    return [
        Section("Overview", _verdict(result)),
        Section("Problems", problems if result.problems else []),
        Section("Known failures", [Table(caption, ["case"], unused)] if unused else []),
        Section("Operations by type", [matrix_of(tried)] if tried else []),
        Section("Cases", [Details("Every case", [_case_table("Cases", result.results)])]),
    ]


def _verdict(result: ConformanceResult) -> list[Part]:
    """The verdict on the run in a sentence, problems first, and what it rests on."""
    counts = result.counts
    order = [Outcome.CRASHED, Outcome.FAILED, *Outcome]
    names = dict.fromkeys(outcome.value for outcome in order if counts[outcome.value])
    texts = ", ".join(f"{counts[name]:,} {name}" for name in names)
    word = "passed" if result.is_passed else "did not pass"
    text = f"{result.backend} {word}: of {counted(len(result.results), 'case')}, {texts}."
    if not names:
        text = f"{result.backend} {word}: no cases."
    about = [result.coverage]
    rules = Counter(case.outcome for case in result.results if case.operation == CONTRACT)
    if rules:
        of_rules = (f"{rules[outcome]:,} {outcome.value}" for outcome in Outcome if rules[outcome])
        about.append(f"rules of the contract: {', '.join(of_rules)}")
    return [
        Text(text, "lead good" if result.is_passed else "lead bad"),
        *(Text(f"{shortcoming}.", "bad") for shortcoming in result.shortcomings),
        *(Text(f"{line[0].upper()}{line[1:]}.") for line in about),
    ]


def matrix_of(results: Sequence[CaseResult]) -> Matrix:
    """Operations by type of their first input; types with most cases first."""
    by_cell: dict[tuple[str, str], list[CaseResult]] = {}
    for result in results:
        by_cell.setdefault((result.operation, _column(result)), []).append(result)
    columns = [
        column
        for column, _ in Counter(
            column for (_, column), cases in by_cell.items() for _ in cases
        ).most_common()
    ]
    rows = [
        (name, [_cell(name, column, by_cell.get((name, column), ())) for column in columns])
        for name in sorted({name for name, _ in by_cell})
    ]
    caption = "Cases that passed, of all; click for the reasons of the others"
    return Matrix(caption, "operation", columns, rows, _KINDS)


def _column(result: CaseResult) -> str:
    """The name of a case's type, which of one that crashed only its id has."""
    name = result.data_type or result.case.rpartition("/")[2].upper()
    return type_name(name) if name in DataType.__members__ else "other"


def _cell(operation: str, column: str, cases: Sequence[CaseResult]) -> MatrixCell | None:
    """The cases of an operation on one type."""
    if not cases:
        return None
    counts = Counter(case.outcome for case in cases)
    passed, whole = counts[Outcome.PASSED], len(cases)
    kind = next((outcome.value for outcome in _WORST_FIRST if counts[outcome]), "")
    if not kind and counts[Outcome.UNSUPPORTED]:
        kind = _IN_PART if passed else Outcome.UNSUPPORTED.value
    texts = (f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome])
    return MatrixCell(
        kind or Outcome.PASSED.value,
        f"{passed}" if passed == whole else f"{passed} of {whole}",
        f"{operation} {column}: {', '.join(texts)}",
        _reasons(cases),
    )


def _reasons(cases: Sequence[CaseResult]) -> list[tuple[str, str]]:
    """Why cases did not pass, the worst first; refusals of one reason together."""
    lines = []
    for outcome in _WORST_FIRST:
        lines += [
            (f"{case.case}: {outcome.value}", _why(case))
            for case in cases
            if case.outcome is outcome
        ]
    refusals = Counter(case.text for case in cases if case.outcome is Outcome.UNSUPPORTED)
    lines += [
        (f"{counted(count, 'case')} unsupported", reason)
        for reason, count in refusals.most_common()
    ]
    if len(lines) > _MOST_LINES:
        rest = len(lines) - _MOST_LINES
        lines[_MOST_LINES:] = [(f"{rest} more", "The table of cases has all.")]
    return lines


def _why(case: CaseResult) -> str:
    """The reason of an outcome, and what the case's process wrote."""
    return f"{case.text}; its process wrote: {case.output}" if case.output else case.text


def _case_table(caption: str, results: Iterable[CaseResult]) -> Table:
    """A row for each case, with the reason of its outcome below its id."""
    rows = [
        (
            Mark(result.outcome.value, "bad" if result.outcome.is_bad else ""),
            TwoLines(result.case, _why(result)),
        )
        for result in results
    ]
    return Table(caption, ["outcome", "case"], rows)
