"""Searches for models on which a backend fails, and prints them."""

from __future__ import annotations

from pathlib import Path

import click

from armpy.cli.printer import Printer, print_json
from armpy_conformance.cli.conformance.trials import runtime_options
from armpy_nnapi.conformance.fuzz import FuzzRun, run_fuzz


def fuzz(
    context: click.Context,
    backend: str,
    engine: str | None,
    seed: int,
    count: int | None,
    seconds: float | None,
    jobs: int | None,
    output: str | None,
    reproduce: str | None,
    backend_options: tuple[str, ...],
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make up valid NNAPI models until a backend crashes or disagrees with CpuRef."""
    arguments = [f"--dynamic-backends-path={path}" for path in dynamic_backends_path]
    arguments += [f"--backend-option={option}" for option in backend_options]
    result = run_fuzz(
        backend,
        runtime_options=runtime_options(dynamic_backends_path, backend_options),
        engine=engine,
        seed=seed,
        count=count,
        seconds=seconds,
        folder=output or ("armpy-fuzz" if reproduce is None else Path(reproduce).parent),
        reproduce=reproduce,
        jobs=jobs,
        arguments=arguments,
    )
    if as_json:
        print_json(result.to_document())
    else:
        print_fuzz(result)
    if not result.is_passed:
        context.exit(1)


def print_fuzz(run: FuzzRun) -> None:
    """Print every finding with its reproducer, and a summary of the search."""
    printer = Printer()
    for finding in run.findings:
        printer.line(f"{finding.outcome}: {finding.operation}: {finding.text}")
        printer.line(f"  again: {finding.reproducer}")
    for shortcoming in run.shortcomings:
        printer.line(shortcoming)
    printer.heading(f"{run} in {run.duration_s:.1f} s")
