"""Runs NNAPI's published tests on a backend, and prints the result."""

from __future__ import annotations

import click

from armpy.execution import RuntimeOptions
from armpy_conformance.cli.conformance.work import show_result
from armpy_nnapi.conformance.vectors import run_vectors


def nnapi_vectors(
    context: click.Context,
    directory: str,
    backend: str,
    filters: tuple[str, ...],
    jobs: int | None,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run every example in DIRECTORY: as declared, and with unknown output dimensions."""
    result = run_vectors(
        directory,
        backend,
        runtime_options=RuntimeOptions(dynamic_backends_path=dynamic_backends_path),
        filter=filters,
        jobs=jobs,
    )
    show_result(result, as_json=as_json)
    if not result.is_passed:
        context.exit(1)
