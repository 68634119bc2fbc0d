"""Shows, checks and deletes what backends keep on disk."""

from __future__ import annotations

import click

from armpy.cli.cache.caches import (
    caches_document,
    clear_caches,
    forget_models,
    list_caches,
    of_models,
    print_caches,
    print_verified,
)
from armpy.cli.options import EXIT_PROBLEMS
from armpy.cli.printer import print_json
from armpy.plugins import BackendRegistry, PluginOptions


def list_command(
    backends: tuple[str, ...] | None,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
    models: tuple[str, ...],
    shows_all: bool,
) -> None:
    """List what is kept, the last used first: a row per model with what it is kept for."""
    reports = of_models(list_caches(_registry(dynamic_backends_path), backends), models)
    if as_json:
        print_json(caches_document(reports))
    else:
        print_caches(reports, shows_all=shows_all)


def verify(
    context: click.Context,
    backends: tuple[str, ...] | None,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check everything that is kept."""
    reports = list_caches(_registry(dynamic_backends_path), backends, verify=True)
    if as_json:
        print_json(caches_document(reports))
    else:
        print_verified(reports)
    if any(report.damaged for report in reports):
        context.exit(EXIT_PROBLEMS)


def clear(
    backends: tuple[str, ...] | None,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
    models: tuple[str, ...],
) -> None:
    """Delete everything that is kept, or what is kept of some models."""
    if models:
        cleared = forget_models(_registry(dynamic_backends_path), backends, models)
    else:
        cleared = [(*each, 0) for each in clear_caches(_registry(dynamic_backends_path), backends)]
    if as_json:
        fields = ("backend", "name", "deleted", "left")
        print_json({"caches": [dict(zip(fields, each, strict=True)) for each in cleared]})
        return
    for backend_id, name, count, num_left in cleared:
        left = f"; {num_left} left, as it can only be cleared as a whole" if num_left else ""
        click.echo(f"{backend_id} {name}: {count} deleted{left}")


def _registry(dynamic_backends_path: tuple[str, ...]) -> BackendRegistry:
    """The backends whose caches these are."""
    return BackendRegistry.discover(PluginOptions(dynamic_backends_path=dynamic_backends_path))
