"""Options of ``armpy cache``."""

from __future__ import annotations

import click

from armpy.cli.command_group import OnceGroup, imported_when_run
from armpy.cli.options import (
    Command,
    backends_option,
    dynamic_backends_option,
    json_option,
    verbosity_options,
)


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
@imported_when_run("armpy.cli.cache.work:list_command")
def list_command() -> None:
    """List the entries, the last used first: a row per model with its purposes."""


@command.command(short_help="Check everything that is kept.")
@_of_backends
@click.pass_context
@imported_when_run("armpy.cli.cache.work:verify")
def verify() -> None:
    """Check everything that is kept.

    Exit code 0 if all is sound, 1 if something is damaged or not the user's own.
    """


@command.command(short_help="Delete all entries.")
@_of_backends
@imported_when_run("armpy.cli.cache.work:clear")
def clear() -> None:
    """Delete all entries."""
