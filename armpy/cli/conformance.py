"""``armpy conformance``: tries a backend out case by case."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from armpy.cli.options import dynamic_backends_option, json_option, verbosity_options

if TYPE_CHECKING:
    from armpy.testing import ConformanceResult

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415

_FILE = click.Path(exists=True, dir_okay=False, readable=True)
_WRITABLE_FILE = click.Path(dir_okay=False, writable=True)


@click.command(short_help="Try out whether a backend keeps its contract and computes right.")
@click.argument("backend")
@click.option("--filter", "filter_", default="", metavar="TEXT", help="Only cases with this text.")
@click.option(
    "--known-failures",
    type=_FILE,
    help="Cases that may fail, one 'case id  # reason' per line; they must go on failing.",
)
@click.option("--html", type=_WRITABLE_FILE, help="Write the result as one page to this file.")
@click.option(
    "--backend-option",
    "backend_options",
    multiple=True,
    metavar="ID.NAME=VALUE",
    help="An option of the backend; may be repeated.",
)
@dynamic_backends_option
@json_option
@verbosity_options
@click.pass_context
def conformance(
    context: click.Context,
    backend: str,
    filter_: str,
    known_failures: str | None,
    html: str | None,
    backend_options: tuple[str, ...],
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Try out whether BACKEND keeps its contract and gives CpuRef's answers.

    What it says it does not support is skipped, with its reason. Exit code 1 if a case
    fails, or if a known failure does not.
    """
    from armpy.cli.load_request import parse_backend_options, split_option
    from armpy.cli.printer import print_json
    from armpy.plugins import BackendRegistry, PluginOptions
    from armpy.runtime import RuntimeOptions
    from armpy.testing import run_conformance

    given = [split_option(text) for text in backend_options]
    registry = BackendRegistry.discover(PluginOptions(dynamic_backends_path=dynamic_backends_path))
    options = RuntimeOptions(
        dynamic_backends_path=dynamic_backends_path,
        backend_options=parse_backend_options(registry, given),
    )
    result = run_conformance(
        backend, runtime_options=options, filter=filter_, known_failures=known_failures
    )
    if html is not None:
        Path(html).write_text(result.to_html(), "utf-8")
    if as_json:
        print_json(result.to_document())
    else:
        print_conformance(result)
    if not result.is_passed:
        context.exit(1)


def print_conformance(result: ConformanceResult) -> None:
    """Print counts by operation, the reasons for what is unsupported, and every problem."""
    from armpy.cli.printer import Printer
    from armpy.testing import Outcome

    printer = Printer()
    columns = ["operation", *(f"{outcome.value}>" for outcome in Outcome)]
    rows = [(name, *by.values()) for name, by in result.by_operation.items()]
    printer.table(columns, rows)
    reasons = Counter(
        (r.operation, r.text) for r in result.results if r.outcome is Outcome.UNSUPPORTED
    )
    if reasons:
        printer.heading("Unsupported")
        rows = [(count, operation, text) for (operation, text), count in reasons.most_common()]
        printer.table(["cases>", "operation", "reason"], rows)
    if result.problems:
        printer.heading("Problems")
        for problem in result.problems:
            printer.line(f"{problem.outcome.value}: {problem.case}: {problem.text}")
    if result.unused_known_failures:
        printer.heading("Listed as known failures, but did not fail")
        for case in result.unused_known_failures:
            printer.line(case)
    printer.heading(f"{result} in {result.duration_s:.1f} s")
