"""Compares a backend with CpuRef on random models, and prints the result."""

from __future__ import annotations

from pathlib import Path

import click

from armpy.cli.printer import Printer
from armpy.execution import RuntimeOptions
from armpy_conformance.cli.conformance.work import show_result
from armpy_nnapi.conformance.random_graphs import run_random_graphs

_FAILURES_FOLDER = "armpy-random-graphs"
"""Default folder of failing random models, in the working directory."""


def random_graphs(
    context: click.Context,
    backend: str,
    count: int,
    seed: int,
    jobs: int | None,
    output: str | None,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make up valid NNAPI models and compare a backend's answers with CpuRef's."""
    folder = Path(output or _FAILURES_FOLDER).absolute()
    result = run_random_graphs(
        backend,
        count,
        seed=seed,
        runtime_options=RuntimeOptions(dynamic_backends_path=dynamic_backends_path),
        jobs=jobs,
        folder=folder,
    )
    show_result(result, as_json=as_json)
    if result.problems and not as_json:  # the document has the file of each failure
        Printer().line(f"failing models are kept in {folder}")
    if not result.is_passed:
        context.exit(1)
