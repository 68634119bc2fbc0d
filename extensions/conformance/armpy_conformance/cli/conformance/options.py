"""Options and helpers of all commands that try out a backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from armpy.cli.options import dynamic_backends_option

if TYPE_CHECKING:
    pass

# What a command needs is imported when it runs: --help and usage errors are quick.

Command = TypeVar("Command", bound=Callable[..., object])

backend_option = click.option(
    "--backend", required=True, metavar="ID", help="The backend to try out."
)

filter_option = click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="TEXT",
    help="Only cases with this text, or that begin with it as ^TEXT; may be repeated, for cases "
    "with any of them.",
)

every_option = click.option(
    "--all", "every", is_flag=True, help="Every backend that there is, one by one."
)


def trial_options(command: Command) -> Command:
    """Add the options about the folders and the options of backends."""
    command = click.option(
        "--backend-option",
        "backend_options",
        multiple=True,
        metavar="ID.NAME=VALUE",
        help="An option of the backend; may be repeated.",
    )(command)
    return dynamic_backends_option(command)
