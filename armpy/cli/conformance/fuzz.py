"""``armpy conformance fuzz``: looks for models on which a backend fails."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from armpy.cli.conformance.options import backend_option, runtime_options, trial_options
from armpy.cli.options import OUTPUT, SECONDS, json_option, seed_option, verbosity_options
from armpy.cli.values import FiniteRange

if TYPE_CHECKING:
    from armpy.testing.fuzz import FuzzRun

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415


@click.command(short_help="A search for failing models, guided by coverage or by chance.")
@backend_option
@click.option(
    "--engine",
    type=click.Choice(["atheris", "seeded"]),
    help="atheris where it is installed, if left out; else by chance.",
)
@seed_option("Of the search.")
@click.option(
    "--count", type=click.IntRange(min=1), help="How many models; 1000 if no time is given."
)
@click.option(*SECONDS, type=FiniteRange(min=0, min_open=True), help="How long to search.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Processes of a seeded search; one per core."
)
@click.option(
    *OUTPUT,
    type=click.Path(file_okay=False, writable=True),
    help="Keep findings, and the corpus of atheris, in this folder: armpy-fuzz if left out, or "
    "where the file of --reproduce is.",
)
@click.option(
    "--reproduce",
    type=click.Path(exists=True, dir_okay=False, readable=True),
    help="Judge the model of this file alone.",
)
@trial_options
@json_option
@verbosity_options
@click.pass_context
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
    """Make up valid NNAPI models until a backend crashes or disagrees with CpuRef.

    Exit code 1 if it does. Each finding is kept as the bytes that its model is made of, with the
    command that runs them again, and its smallest failing part as test vectors.
    """
    from armpy.cli.printer import print_json
    from armpy.testing.fuzz import run_fuzz

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
    """Print every finding with its reproducer, and what the search comes to."""
    from armpy.cli.printer import Printer

    printer = Printer()
    for finding in run.findings:
        printer.line(f"{finding.outcome}: {finding.operation}: {finding.text}")
        printer.line(f"  again: {finding.reproducer}")
    for shortcoming in run.shortcomings:
        printer.line(shortcoming)
    printer.heading(f"{run} in {run.duration_s:.1f} s")
