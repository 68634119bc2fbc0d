"""``armpy cache``: entries on disk, checked and cleared."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from armpy.cli.cache.caches import clear_caches, list_caches
from armpy.cli.cache.models import CacheReport, summarize_models
from armpy.cli.command_group import OnceGroup
from armpy.cli.options import (
    EXIT_PROBLEMS,
    Command,
    backends_option,
    dynamic_backends_option,
    json_option,
    verbosity_options,
)
from armpy.cli.printer import Printer, print_json
from armpy.core.units import bytes_text
from armpy.model.archive.kept_models import ModelCache, exposed_cache
from armpy.plugins import BackendRegistry, PluginOptions


@click.group("cache", cls=OnceGroup)
def command() -> None:
    """Look at what backends keep on disk, check it, or delete it.

    It can all be made again; deleting it costs time only.
    """


def _of_backends(command: Command) -> Command:
    """Add the options that say whose caches."""
    ids = backends_option("Ids; all installed ones if left out.")
    return ids(dynamic_backends_option(json_option(verbosity_options(command))))


@command.command("list", short_help="List the entries, a row per model.")
@_of_backends
def list_command(
    backends: tuple[str, ...] | None,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the entries, the last used first: a row per model with its purposes."""
    reports = list_caches(_registry(dynamic_backends_path), backends)
    if as_json:
        print_json(_document(reports))
    else:
        print_caches(reports)


@command.command(short_help="Check everything that is kept.")
@_of_backends
@click.pass_context
def verify(
    context: click.Context,
    backends: tuple[str, ...] | None,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check everything that is kept.

    Exit code 0 if all is sound, 1 if something is damaged or not the user's own.
    """
    reports = list_caches(_registry(dynamic_backends_path), backends, verify=True)
    if as_json:
        print_json(_document(reports))
    else:
        print_verified(reports)
    if any(report.damaged for report in reports):
        context.exit(EXIT_PROBLEMS)


@command.command(short_help="Delete all entries.")
@_of_backends
def clear(
    backends: tuple[str, ...] | None,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Delete all entries."""
    cleared = clear_caches(_registry(dynamic_backends_path), backends)
    if as_json:
        fields = ("backend", "name", "deleted")
        print_json({"caches": [dict(zip(fields, row, strict=True)) for row in cleared]})
        return
    for backend_id, name, count in cleared:
        click.echo(f"{backend_id} {name}: {count} deleted")
    if backends and ModelCache().list_entries():
        click.echo(
            "whole models: left, with what they have of all backends; "
            "'armpy cache clear' without --backends deletes them"
        )


def _registry(dynamic_backends_path: tuple[str, ...]) -> BackendRegistry:
    return BackendRegistry.discover(PluginOptions(dynamic_backends_path=dynamic_backends_path))


def _document(reports: Sequence[CacheReport]) -> dict[str, object]:
    models = summarize_models(reports)
    return {
        "caches": reports,
        "models": models,
        "size_bytes": sum(model.size_bytes for model in models),
        "num_files": sum(model.num_files for model in models),
    }


def print_caches(reports: Sequence[CacheReport]) -> None:
    """Print the entries of caches, the last used first: a row per model."""
    printer = Printer()
    if not reports:
        printer.line("no backend keeps anything")
        return
    models = summarize_models(reports)
    if not models:
        printer.line("nothing is kept")
    else:
        rows: list[tuple[object, ...]] = [
            (_when(m.last_used_s), bytes_text(m.size_bytes), m.num_files, m.model, m.kept_for)
            for m in models
        ]
        if len(models) > 1:
            size = bytes_text(sum(m.size_bytes for m in models))
            rows.append(("", size, sum(m.num_files for m in models), "all together", ""))
        printer.table(["last used", "size>", "files>", "model", "kept for"], rows)
    printer.line("")
    for report in reports:
        printer.line(_summary(report))


def print_verified(reports: Sequence[CacheReport]) -> None:
    """Print faults of cache entries."""
    printer = Printer()
    for report in reports:
        num_damaged = len(report.damaged)
        verdict = f"{num_damaged} cannot be used" if num_damaged else "all are sound"
        printer.line(f"{_summary(report)}: {verdict}")
        if num_damaged:
            rows = [(entry.name, entry.problem) for entry in report.damaged]
            printer.table(["name", "problem"], rows)
            printer.line("They do no harm: what cannot be used is made again when it is needed.")
    if exposed := exposed_cache():
        printer.line(exposed)


def _summary(report: CacheReport) -> str:
    if not report.location:
        return f"{report.backend} {report.name}: switched off"
    limit = f" of at most {bytes_text(report.limit_bytes)}" if report.limit_bytes else ""
    if limit and report.model_limit_bytes:
        limit += f", {bytes_text(report.model_limit_bytes)} for the shapes of one model"
    entries = "1 entry" if len(report.entries) == 1 else f"{len(report.entries)} entries"
    size = bytes_text(report.size_bytes)
    return f"{report.backend} {report.name} in {report.location}: {entries}, {size}{limit}"


def _when(time_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(time_s))
