"""Options of ``armpy profile``."""

from __future__ import annotations

import click

from armpy.cli.command_group import OnceGroup, imported_when_run
from armpy.cli.inputs.options import INPUT_OPTIONS, input_options
from armpy.cli.options import (
    MODEL_FILE,
    OUTPUT,
    RUNS,
    WRITABLE_FILE,
    model_options,
    report_options,
)

_TOP = click.option(
    "--top",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    help="How many layers to list.",
)


class _ModelOrCommand(OnceGroup):
    """A group that runs its command ``model`` where the first argument names no command."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Put ``model`` in front of anything but a command or a request for help."""
        first = arguments[0] if arguments else "--help"
        if first not in self.commands and first not in self.get_help_option_names(context):
            arguments = [model.name or "", *arguments]
        return super().parse_args(context, arguments)


@click.group("profile", cls=_ModelOrCommand, subcommand_metavar="MODEL | COMMAND [ARGS]...")
def command() -> None:
    """Profile MODEL: show where the time of its executions goes.

    'armpy profile MODEL' runs a model and prints its profile, 'armpy profile model --help' lists
    the options. The other commands show saved profiles (which -o writes, and 'armpy run MODEL
    --profile FILE.json') and compare two of them. The files are traces as well: chrome://tracing
    and ui.perfetto.dev draw them.
    """


@command.command(short_help="Run a model and show where the time of its executions goes.")
@model_options
@click.option(
    *RUNS,
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of executions to profile, after one that is not profiled.",
)
@input_options(*INPUT_OPTIONS)
@_TOP
@click.option(*OUTPUT, type=WRITABLE_FILE, help="Write the profile to FILE.json.")
@report_options
@imported_when_run("armpy.cli.profile.work:profile")
def model() -> None:
    """Run MODEL and show where the time of its executions goes: by kind and by layer."""


@command.command(short_help="Where all of the time of a profile went.")
@click.argument("file", type=MODEL_FILE)
@_TOP
@report_options
@imported_when_run("armpy.cli.profile.work:show")
def show() -> None:
    """Show where all of the time of FILE went: by kind, by layer, and of loading."""


@command.command(short_help="Changes from one profile to another, by kind and by layer.")
@click.argument("before", type=MODEL_FILE)
@click.argument("after", type=MODEL_FILE)
@_TOP
@report_options
@imported_when_run("armpy.cli.profile.work:compare")
def compare() -> None:
    """Print the changes from BEFORE to AFTER, the largest first.

    Times are of one execution. Layers are matched by name; those that a backend computes as one
    are compared together. Profiles are best made with --repeat: single executions differ by
    chance.
    """
