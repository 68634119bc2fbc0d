"""Runs a trial and prints its result."""

from __future__ import annotations

from dataclasses import asdict

import click

from armpy.cli.printer import Printer, print_json
from armpy_compat.trial.trial import try_program
from armpy_compat.trial.trial_result import MODEL_COLUMNS, TrialResult


def run_trial(
    context: click.Context,
    program: str,
    arguments: tuple[str, ...],
    rounds: int,
    within: float,
    stdin: str | None,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Run PROGRAM on its own engine and on armpy, and print how they compare."""
    result = try_program(
        program,
        arguments,
        rounds=rounds,
        within=within,
        stdin=stdin,
        timeout_s=timeout_s,
        progress=lambda text: click.echo(text, err=True),
    )
    if as_json:
        facts = {"headline": result.headline, "is_same": result.is_same}
        print_json({"version": 1, **facts, **asdict(result), "remarks": [*result.remarks()]})
    else:
        _print(result)
    if not result.is_same:
        context.exit(1)


def _print(result: TrialResult) -> None:
    printer = Printer()
    printer.line(result.headline)
    printer.line("")
    printer.table(MODEL_COLUMNS, result.model_rows)
    printer.line("")
    printer.table(("program", f"{result.engine}>", "armpy>"), result.program_rows)
    printer.line("")
    for model in result.models:
        printer.line(f"{model.name} on armpy: {model.placement or 'placement not known'}")
    for remark in result.remarks():
        printer.marked(remark, is_good=False)
    for line in result.armpy_error_text.splitlines():
        printer.line(f"    {line}")
