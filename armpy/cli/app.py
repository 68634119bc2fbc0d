"""The command ``armpy`` and the list of its commands; each is a folder of its name."""

from __future__ import annotations

import click

import armpy
from armpy.cli.command_group import CommandGroup
from armpy.cli.options import verbosity_options
from armpy.cli.settings import wrong_values
from armpy.plugins.extension_tables import BACKEND_COMMANDS

_SHORT_HELPS = {
    "backends": "List the backends that are installed.",
    "cache": "Look at what backends keep on disk, check it, or delete it.",
    "check": "Say whether a compiled model fits this machine.",
    "compile": "Prepare a model ahead of time: one file that starts at once.",
    "devices": "List the devices that backends run on.",
    "doctor": "Show the installation, and the state of every backend.",
    "inspect": "Show what a model is made of and where it would run.",
    "keys": "Make keys to sign compiled models with, or show them.",
    "profile": "Profile a model, show saved profiles, and compare two.",
    "run": "Run a model on a picture, on arrays, or on random numbers.",
}


@click.group(
    cls=CommandGroup,
    short_helps=_SHORT_HELPS,
    of_backends=BACKEND_COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(armpy.__version__, prog_name="armpy", message="%(prog)s %(version)s")
@verbosity_options
@click.pass_context
def app(context: click.Context) -> None:
    """Run neural networks on whatever accelerators are installed.

    Exit codes: 0 done, 1 failed, 2 the command line cannot be followed.
    """
    if context.invoked_subcommand != "doctor":  # which says it among other faults
        for text in wrong_values():
            click.echo(f"armpy: warning: {text}", err=True)
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)
