"""``armpy conformance``: tries a backend out case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from armpy.cli.conformance.accuracy import accuracy
from armpy.cli.conformance.crash import crash
from armpy.cli.conformance.fuzz import fuzz
from armpy.cli.conformance.options import (
    backend_option,
    backends_to_try,
    every_option,
    filter_option,
    report_all,
    runtime_options,
    trial_options,
)
from armpy.cli.options import (
    OUTPUT,
    WRITABLE_FILE,
    dynamic_backends_option,
    json_option,
    seed_option,
    verbosity_options,
)
from armpy.cli.strict_options import OnceGroup

if TYPE_CHECKING:
    from armpy.testing import ConformanceResult

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415

_FILE = click.Path(exists=True, dir_okay=False, readable=True)


class _BackendFirst(OnceGroup):
    """A group that is given a backend's id where the command would stand, for the first one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the first command's name in front of a backend's id or of its options."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [cases.name or "", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_BackendFirst,
    short_help="Try out whether a backend keeps its contract and computes right.",
    subcommand_metavar="[BACKEND | COMMAND] [OPTIONS]",
)
def conformance() -> None:
    """Try out whether a backend keeps its contract and computes right.

    'armpy conformance BACKEND' runs the cases that armpy ships.
    """


@conformance.command(short_help="Cases made from the operations' definitions; the default.")
@click.argument("backend", required=False, default="")
@every_option
@filter_option
@click.option("--list", "only_list", is_flag=True, help="Print the cases' ids, and run none.")
@click.option("--fail-fast", is_flag=True, help="End with the first case that fails.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Run the cases in so many processes, of which one that ends takes no other with it.",
)
@click.option(
    "--known-failures",
    type=_FILE,
    help="Cases that may fail, one 'case id  # reason' per line; they must go on failing.",
)
@click.option("--html", type=WRITABLE_FILE, help="Write the result as one page to this file.")
@trial_options
@json_option
@verbosity_options
@click.pass_context
def cases(
    context: click.Context,
    backend: str,
    every: bool,
    filters: tuple[str, ...],
    only_list: bool,
    fail_fast: bool,
    jobs: int | None,
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
    from armpy.testing import cases_of, run_conformance

    if every and (known_failures or html):
        raise click.UsageError("--known-failures and --html go with one backend.")
    options = runtime_options(dynamic_backends_path, backend_options)
    ids, unusable = backends_to_try(backend, every, options)
    if only_list:
        _list({name: cases_of(name, runtime_options=options, filter=filters) for name in ids})
        return
    results = []
    for name in ids:
        result = run_conformance(
            name,
            runtime_options=options,
            filter=filters,
            known_failures=known_failures,
            fail_fast=fail_fast,
            jobs=jobs,
        )
        results.append(result)
        if not as_json or not every:
            _report(result, as_json=as_json, html=html)
        if fail_fast and not result.is_passed:
            break
    if every:
        report_all(results, unusable, as_json=as_json)
    if unusable or not all(result.is_passed for result in results):
        context.exit(1)


def _list(ids: Mapping[str, Sequence[str]]) -> None:
    """Print the ids of cases, behind the backend's if there are several backends."""
    for name, found in ids.items():
        for case in found:
            click.echo(case if len(ids) == 1 else f"{name}  {case}")


@conformance.command("nnapi-vectors", short_help="NNAPI's published operation tests, as data.")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, readable=True))
@backend_option
@filter_option
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Processes at a time; one per core if left out."
)
@click.option("--html", type=WRITABLE_FILE, help="Write the result as one page to this file.")
@dynamic_backends_option
@json_option
@verbosity_options
@click.pass_context
def nnapi_vectors(
    context: click.Context,
    directory: str,
    backend: str,
    filters: tuple[str, ...],
    jobs: int | None,
    html: str | None,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run every example in DIRECTORY: as declared, and with unknown output dimensions.

    An example of unsigned quantised tensors is also run as its signed twin, of int8, whose outputs
    must be equal up to 128.

    Exit code 1 if an example fails or crashes. One whose operations the backend does not
    take is unsupported.
    """
    from armpy.execution import RuntimeOptions
    from armpy.testing.nnapi_vectors import run_vectors

    result = run_vectors(
        directory,
        backend,
        runtime_options=RuntimeOptions(dynamic_backends_path=dynamic_backends_path),
        filter=filters,
        jobs=jobs,
    )
    _report(result, as_json=as_json, html=html)
    if not result.is_passed:
        context.exit(1)


@conformance.command("random-graphs", short_help="Random NNAPI models, compared with CpuRef.")
@backend_option
@click.option(
    "--count", type=click.IntRange(min=1), default=1000, show_default=True, help="How many models."
)
@seed_option("Of the first model.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Processes at a time; one per core if left out."
)
@click.option(
    *OUTPUT,
    type=click.Path(file_okay=False, writable=True),
    help="Keep the smallest failing part of each failure in this folder, as test vectors.",
)
@dynamic_backends_option
@json_option
@verbosity_options
@click.pass_context
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
    """Make up valid NNAPI models and compare a backend's answers with CpuRef's.

    Exit code 1 if one fails or crashes. 'armpy conformance nnapi-vectors' runs what
    --output has kept again.
    """
    from armpy.execution import RuntimeOptions
    from armpy.testing.random_graphs import run_random_graphs

    result = run_random_graphs(
        backend,
        count,
        seed=seed,
        runtime_options=RuntimeOptions(dynamic_backends_path=dynamic_backends_path),
        jobs=jobs,
        folder=output,
    )
    _report(result, as_json=as_json)
    if not result.is_passed:
        context.exit(1)


conformance.add_command(crash)
conformance.add_command(accuracy)
conformance.add_command(fuzz)


def _report(result: ConformanceResult, *, as_json: bool, html: str | None = None) -> None:
    """Show a result as it is asked for."""
    from armpy.cli.printer import print_json

    if html is not None:
        Path(html).write_text(result.to_html(), "utf-8")
    if as_json:
        print_json(result.to_document())
    else:
        print_conformance(result)


def print_conformance(result: ConformanceResult) -> None:
    """Print counts by operation, the reasons for what is unsupported, and every problem."""
    from armpy.cli.printer import Printer
    from armpy.testing import Outcome

    printer = Printer()
    occurring = [name for name, count in result.counts.items() if count]
    columns = ["operation", *(f"{name}>" for name in occurring)]
    for heading, groups in (("", result.by_operation), ("By data type", result.by_data_type)):
        if heading:
            printer.heading(heading)
            columns[0] = "data type"
        rows = [(key, *(by[name] for name in occurring)) for key, by in groups.items()]
        printer.table(columns, rows)
    for outcome in (Outcome.UNSUPPORTED, Outcome.ELSEWHERE):
        reasons = Counter((r.operation, r.text) for r in result.results if r.outcome is outcome)
        if reasons:
            printer.heading(outcome.value.capitalize())
            lines = [(count, operation, text) for (operation, text), count in reasons.most_common()]
            printer.table(["cases>", "operation", "reason"], lines)
    if result.problems:
        printer.heading("Problems")
        for problem in result.problems:
            printer.line(f"{problem.outcome.value}: {problem.case}: {problem.text}")
    if result.unused_known_failures:
        printer.heading("Listed as known failures, but did not fail")
        for case in result.unused_known_failures:
            printer.line(case)
    if result.shortcomings:
        printer.heading("Not shown")
        for shortcoming in result.shortcomings:
            printer.line(shortcoming)
    printer.heading(f"{result} in {result.duration_s:.1f} s")
    printer.line(result.coverage)
