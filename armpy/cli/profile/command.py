"""Options of ``armpy profile``."""

from __future__ import annotations

import click

from armpy.cli.command_group import OnceGroup, imported_when_run
from armpy.cli.options import MODEL_FILE, json_option, verbosity_options

_TOP = click.option(
    "--top",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    help="How many layers to list.",
)


@click.group("profile", cls=OnceGroup)
def command() -> None:
    """Show profiles, which 'armpy run MODEL --profile FILE.json' writes, and compare two of them.

    The files are traces as well: chrome://tracing and ui.perfetto.dev draw them.
    """


@command.command(short_help="Where all of the time of a profile went.")
@click.argument("file", type=MODEL_FILE)
@_TOP
@json_option
@verbosity_options
@imported_when_run("armpy.cli.profile.work:show")
def show() -> None:
    """Show where all of the time of FILE went: by kind, by layer, and of loading."""


@command.command(short_help="What has changed from one profile to another, by kind and by layer.")
@click.argument("before", type=MODEL_FILE)
@click.argument("after", type=MODEL_FILE)
@_TOP
@json_option
@verbosity_options
@imported_when_run("armpy.cli.profile.work:compare")
def compare() -> None:
    """Say what has changed from BEFORE to AFTER, the largest change first.

    Times are of one execution. Layers are matched by name; those that a backend computes as one
    are compared together. Profiles are best made with --repeat: single executions differ by
    chance.
    """
