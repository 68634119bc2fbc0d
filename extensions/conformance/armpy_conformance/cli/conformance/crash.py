"""Tries whether applications survive a backend, and prints the results."""

from __future__ import annotations

from collections import Counter
from functools import partial

import click

from armpy.cli.printer import Printer, print_json
from armpy_conformance.cli.conformance.trials import (
    backends_to_try,
    report_all,
    runtime_options,
    tried,
)
from armpy_conformance.crash import CrashResult, CrashRun, run_crash

_SHOWN_LINES = 12


_SHOWN_OF_HANG = 40


_HANG = "Timeout ("


_REPORTS = ("Fatal Python error", _HANG)


_CURRENT = "Current thread"


def crash(
    context: click.Context,
    backend: str,
    every: bool,
    filters: tuple[str, ...],
    seed: int,
    timeout_s: float,
    jobs: int | None,
    backend_options: tuple[str, ...],
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Try to make a backend end its process, hang, fail or lie."""
    options = runtime_options(dynamic_backends_path, backend_options)
    ids, unusable = backends_to_try(backend, every, options)
    trial = partial(
        run_crash,
        runtime_options=options,
        filter=filters,
        seed=seed,
        timeout_s=timeout_s,
        jobs=jobs,
    )
    results: list[CrashRun] = []
    not_tried: list[str] = []
    for result in tried(ids, every, trial, not_tried):
        results.append(result)
        if not as_json:
            print_crash(result)
        elif not every:
            print_json(result.to_document())
    if every:
        report_all(results, unusable, not_tried, as_json=as_json)
    if unusable or not all(result.is_passed for result in results):
        context.exit(1)


def print_crash(run: CrashRun) -> None:
    """Print the outcome of every case, and the last output of its processes."""
    printer = Printer()
    rows = [(r.outcome.value, r.case, f"{r.duration_s:.1f}", r.text) for r in run.results]
    printer.table(["outcome", "case", "s>", "what"], rows)
    if run.left_out:
        printer.heading(f"{run.backend} takes no layer of")
        printer.line(", ".join(run.left_out))
    if any(result.output for result in run.results):
        # Of successes too: a process of the driver's own may fail without any call's failing.
        printer.heading("Last output of the processes")
        for output, cases in _outputs(run.results).items():
            printer.line(f"{cases}:")
            for line in _report_of(output):
                printer.line(f"  {line}")
    printer.heading(f"{run} in {run.duration_s:.1f} s; seed {run.seed}")


def _report_of(output: str) -> list[str]:
    """The report of a fault with the thread that had it, or of a hang; else the last lines."""
    lines = [line for line in output.splitlines() if not line.startswith("Extension modules")]
    starts = [i for i, line in enumerate(lines) if line.startswith(_REPORTS)]
    if not starts:
        return lines[-_SHOWN_LINES:]
    report = lines[starts[-1] :]
    if report[0].startswith(_HANG):
        return report[:_SHOWN_OF_HANG]
    own = next((i for i, line in enumerate(report) if line.startswith(_CURRENT)), 1)
    return [report[0], *report[own : own + _SHOWN_LINES]]


def _outputs(results: tuple[CrashResult, ...]) -> dict[str, str]:
    """Return the written texts once each, and their cases."""
    counts = Counter(result.output for result in results if result.output)
    first = {result.output: result.case for result in reversed(results)}
    return {
        output: first[output] if count == 1 else f"{first[output]} and {count - 1} others"
        for output, count in counts.items()
    }
