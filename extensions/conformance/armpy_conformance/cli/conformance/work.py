"""Tries a backend out on cases, and shows results."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import click

from armpy.backend import cache_directory
from armpy.cli.printer import Printer, print_json
from armpy.cli.progress import ProgressLine
from armpy.types import BackendId
from armpy_conformance import CaseResult, ConformanceResult, Outcome, cases_of, run_conformance
from armpy_conformance.cli.conformance.trials import (
    backends_to_try,
    report_all,
    runtime_options,
    tried,
)
from armpy_conformance.conformance import Progress
from armpy_conformance.result import CONTRACT

_log = logging.getLogger("armpy.conformance")

_PERIOD_S = 10.0
"""Time between two lines of progress."""

_MOST_REASONS = 10
"""Rows of a table of reasons."""


def cases(
    context: click.Context,
    backend: str,
    every: bool,
    filters: tuple[str, ...],
    only_list: bool,
    fail_fast: bool,
    jobs: int | None,
    memory_limit_mb: int | None,
    in_process: bool,
    soak: int | None,
    time_limit_s: float | None,
    known_failures: str | None,
    backend_options: tuple[str, ...],
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Try out whether BACKEND keeps its contract and gives CpuRef's answers."""
    if every and known_failures:
        raise click.UsageError("--known-failures goes with one backend.")
    if in_process and jobs is not None:
        raise click.UsageError("--in-process and --jobs exclude each other.")
    if in_process and memory_limit_mb is not None:
        raise click.UsageError("--in-process and --memory-limit-mb exclude each other.")
    options = runtime_options(dynamic_backends_path, backend_options)
    ids, unusable = backends_to_try(backend, every, options)
    if only_list:
        _list({name: cases_of(name, runtime_options=options, filter=filters) for name in ids})
        return

    def trial(name: str) -> ConformanceResult:
        with _reported() as progress:
            result = run_conformance(
                name,
                runtime_options=options,
                filter=filters,
                known_failures=known_failures,
                progress=progress,
                fail_fast=fail_fast,
                jobs=None if in_process else jobs or 1,
                memory_bytes=None if memory_limit_mb is None else memory_limit_mb << 20,
                soak=soak or 0,
                first=_failed_before(name),
                time_limit_s=time_limit_s,
            )
        _keep_failed(result)
        return result

    results: list[ConformanceResult] = []
    not_tried: list[str] = []
    for result in tried(ids, every, trial, not_tried):
        results.append(result)
        if not as_json or not every:
            show_result(result, as_json=as_json)
        if fail_fast and not result.is_passed:
            break
    if every:
        report_all(results, unusable, not_tried, as_json=as_json)
    if unusable or not all(result.is_passed for result in results):
        context.exit(1)


@contextmanager
def _reported() -> Iterator[Progress]:
    """Report progress on standard error: on a terminal in one line, else every ten seconds."""
    line = ProgressLine()
    num_bad, shown_s = 0, time.monotonic()

    def report(result: CaseResult, number: int, count: int) -> None:
        nonlocal num_bad, shown_s
        num_bad += result.outcome.is_bad
        text = f"{number} of {count} cases, {num_bad} failed: {result.case}"
        if line.is_shown:
            line.show(text)
        elif time.monotonic() >= shown_s + _PERIOD_S:
            shown_s = time.monotonic()
            click.echo(text, err=True)

    try:
        yield report
    finally:
        line.show("")


def _failures_file(backend_id: BackendId) -> Path:
    """The file of the cases that failed in the last run."""
    return cache_directory() / "conformance" / f"{quote(backend_id, safe='')}.txt"


def _failed_before(backend_id: BackendId) -> list[str]:
    """Ids of the cases that failed in the last run, which are tried first."""
    try:
        return _failures_file(backend_id).read_text("utf-8").splitlines()
    except (OSError, RuntimeError, ValueError) as error:  # also: the user has no home
        _log.debug("no failures of an earlier run: %s", error)
        return []


def _keep_failed(result: ConformanceResult) -> None:
    """Write the failures down, with earlier ones that were not tried this time."""
    tried = {case.case for case in result.results}
    earlier = [case for case in _failed_before(result.backend) if case not in tried]
    failed = [*(problem.case for problem in result.problems), *earlier]
    try:
        path = _failures_file(result.backend)
        if failed or path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(failed), "utf-8")
    except (OSError, RuntimeError) as error:
        _log.debug("the failures are not kept: %s", error)


def _list(ids: Mapping[str, Sequence[str]]) -> None:
    """Print the ids of cases, after the backend's if there are several backends."""
    for name, case_ids in ids.items():
        for case in case_ids:
            click.echo(case if len(ids) == 1 else f"{name}  {case}")


def show_result(result: ConformanceResult, *, as_json: bool) -> None:
    """Show a result as it is asked for."""
    if as_json:
        print_json(result.to_document())
    else:
        print_conformance(result)


def print_conformance(result: ConformanceResult) -> None:
    """Print counts by operation, the reasons of unsupported cases, and every problem."""
    printer = Printer()
    occurring = [name for name, count in result.counts.items() if count]
    columns = ["operation", *(f"{name}>" for name in occurring)]
    for heading, groups in (("", result.by_operation), ("By data type", result.by_data_type)):
        if heading:
            printer.heading(heading)
            columns[0] = "data type"
        claimed = {key: by for key, by in groups.items() if not _is_unclaimed(by)}
        rows = [(key, *(by[name] for name in occurring)) for key, by in claimed.items()]
        if rows:
            printer.table(columns, rows)
        if len(claimed) < len(groups):
            printer.line(f"{len(groups) - len(claimed)} others have unsupported cases only")
    rules = [r for r in result.results if r.operation == CONTRACT]
    _print_reasons(printer, "Unsupported rules of the contract", rules, Outcome.UNSUPPORTED)
    others = [r for r in result.results if r.operation != CONTRACT]
    for outcome in (Outcome.UNSUPPORTED, Outcome.ELSEWHERE):
        _print_reasons(printer, outcome.value.capitalize(), others, outcome)
    if result.problems:
        _print_problems(printer, result.problems)
    if result.unused_known_failures:
        printer.heading("Listed as known failures, but did not fail")
        for case in result.unused_known_failures:
            printer.line(case)
    if result.shortcomings:
        printer.heading("Not shown")
        for shortcoming in result.shortcomings:
            printer.line(shortcoming)
    printer.heading(f"{result} in {result.duration_s:.1f} s")
    for line in (result.coverage, *result.main_refusals):
        printer.line(line)


def _is_unclaimed(counts: Mapping[str, int]) -> bool:
    """Return whether all of some cases are unsupported."""
    return sum(counts.values()) == counts[Outcome.UNSUPPORTED.value]


def _print_reasons(
    printer: Printer, heading: str, results: Sequence[CaseResult], outcome: Outcome
) -> None:
    """Print how often each reason was given for an outcome, the most frequent ones first."""
    reasons = Counter(
        ("" if r.operation == CONTRACT else r.operation, r.text)
        for r in results
        if r.outcome is outcome
    )
    if not reasons:
        return
    printer.heading(heading)
    lines = [(count, name, text) for (name, text), count in reasons.most_common(_MOST_REASONS)]
    printer.table(["cases>", "operation", "reason"], lines)
    shown = sum(count for count, _, _ in lines)
    if shown < reasons.total():
        printer.line(
            f"and {reasons.total() - shown} cases for {len(reasons) - len(lines)} other reasons, "
            "which --json lists"
        )


def _print_problems(printer: Printer, problems: Sequence[CaseResult]) -> None:
    """Print each kind of failure once, with its first case and the number of the others."""
    printer.heading("Problems")
    groups: dict[tuple[Outcome, str, str], list[CaseResult]] = {}
    for problem in problems:
        groups.setdefault(_kind_of(problem), []).append(problem)
    for group in groups.values():
        first = group[0]
        printer.line(f"{first.outcome.value}: {first.case}: {first.text}")
        if first.output:
            printer.line("  its process wrote:")
            for line in first.output.splitlines():
                printer.line(f"    {line}")
        if len(group) > 1:
            counts = Counter(problem.operation for problem in group)
            names = ", ".join(counts)
            printer.line(f"  and {len(group) - 1} other cases of {names} like this one")


_RAISED_AT = re.compile(r"\b\S+:\d+ in \w+")
"""The line of a backend's code in the text of a failure."""


def _kind_of(problem: CaseResult) -> tuple[Outcome, str, str]:
    """What failures of one cause have in common.

    Exceptions from one line of the backend's code are one kind, whatever operation they are of.
    """
    # The numbers of a wrong answer and the shapes differ from case to case.
    failure = re.sub(r"[-+]?\d[\d.e+-]*", "#", problem.text.rpartition(": ")[2])
    lines = _RAISED_AT.findall(problem.text)
    return (
        (problem.outcome, "", lines[-1]) if lines else (problem.outcome, problem.operation, failure)
    )
