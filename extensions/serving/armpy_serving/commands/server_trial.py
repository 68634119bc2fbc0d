# SPDX-License-Identifier: Apache-2.0
"""Tries a server, and shows the results."""

from __future__ import annotations

from collections import Counter

import click

from armpy.cli.printer import Printer, print_json
from armpy_serving import protocol_kit
from armpy_serving.protocol_kit.kit import ProtocolResult, RuleOutcome, chosen_rules, try_server
from armpy_serving.protocol_kit.target import TriedServer, http_sender


def check_server(
    context: click.Context,
    url: str,
    model: str,
    grpc_address: str | None,
    filters: tuple[str, ...],
    only_list: bool,
    as_json: bool,
) -> None:
    """Send right and wrong requests to a server, and report the rules that it breaks."""
    if grpc_address is not None:
        _check_grpc()
    if only_list:
        for rule in chosen_rules(filters, has_grpc=grpc_address is not None):
            click.echo(rule.id)
        return
    call = None if grpc_address is None else protocol_kit.grpc_caller(grpc_address)
    result = try_server(TriedServer(model, http_sender(url), call), filters)
    if as_json:
        print_json(result.document())
    else:
        _print(result)
    if not result.is_passed:
        context.exit(1)


def _check_grpc() -> None:
    """Check that what calls of gRPC need is installed.

    Raises
    ------
    click.UsageError
        If it is not.
    """
    try:
        protocol_kit.grpc_caller  # noqa: B018 - imported when it is asked for
    except ModuleNotFoundError as error:
        raise click.UsageError(
            f"--grpc needs the packages of gRPC ({error}). Run: pip install grpcio protobuf"
        ) from error


def _print(result: ProtocolResult) -> None:
    """Print counts by group of rules, and each broken rule."""
    printer = Printer()
    counts = Counter(
        (entry.rule.rpartition("/")[0] or entry.rule, entry.outcome) for entry in result.results
    )
    groups = dict.fromkeys(group for group, _ in counts)
    columns = ["rules", *(f"{outcome.value}>" for outcome in RuleOutcome)]
    rows = [(group, *(counts[group, outcome] for outcome in RuleOutcome)) for group in groups]
    printer.table(columns, rows)
    broken = [entry for entry in result.results if entry.outcome is RuleOutcome.BROKEN]
    if broken:
        printer.heading("Broken")
        for entry in broken:
            printer.line(f"{entry.rule}: {entry.text}")
    total = ", ".join(f"{result.counts[outcome]} {outcome.value}" for outcome in RuleOutcome)
    printer.heading(f"{total} in {result.duration_s:.1f} s")
