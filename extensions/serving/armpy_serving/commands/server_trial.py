"""Tries a server, and shows the results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import click

from armpy.cli.printer import Printer, print_json
from armpy.errors import (
    InvalidArgumentError,
    ModelNotFoundError,
    did_you_mean,
    listed,
)
from armpy_serving import protocol_kit
from armpy_serving.protocol_kit.answers import BrokenRuleError
from armpy_serving.protocol_kit.kit import ProtocolResult, RuleOutcome, chosen_rules, try_server
from armpy_serving.protocol_kit.target import JSON_HEADERS, TriedServer, http_sender, shown


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
    target = TriedServer(model, http_sender(url), call)
    check_served(target, url)
    result = try_server(target, filters)
    if as_json:
        print_json(result.document())
    else:
        _print(result)
    if not result.is_passed:
        context.exit(1)


def check_served(target: TriedServer, url: str) -> None:
    """Check that a server answers and serves the model, before each rule fails for lack of it.

    Raises
    ------
    InvalidArgumentError
        If no server answers at the URL, or it does not serve the model.
    """
    try:
        target.get("/v2/health/live")
        answer = target.get(target.path)
        is_served = answer.status == 200 or target.get(f"{target.path}/ready").status == 200
        names = () if is_served else _listed_models(target)
    except BrokenRuleError as error:
        raise InvalidArgumentError(
            f"no server: {error}",
            where=url,
            fix="Start the server, or correct the URL",
        ) from error
    if is_served:
        return
    raise ModelNotFoundError(
        f"the server does not serve this model: {shown(answer)}",
        where=f"{url}, model '{target.model}'",
        expected=f"a model that it has: {listed(names, most=8)}" if names else "",
        fix="" if target.model in names else did_you_mean(target.model, names),
    )


def _listed_models(target: TriedServer) -> Sequence[str]:
    """Names of all models of a server; none if it does not list them."""
    answer = target.send("POST", "/v2/repository/index", b"{}", JSON_HEADERS)
    if answer.status != 200:
        return ()
    try:
        entries = json.loads(answer.body)
    except ValueError:  # an answer in another form, as of a server without the extension
        return ()
    named = entries if isinstance(entries, list) else ()
    return [str(entry["name"]) for entry in named if isinstance(entry, dict) and "name" in entry]


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
