"""Options of ``armpy ray-resources``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import dynamic_backends_option, verbosity_options


@click.command("ray-resources", short_help="Print this machine's devices for 'ray start'.")
@dynamic_backends_option
@verbosity_options
@imported_when_run("armpy_serving.commands.device_arguments:print_arguments")
def command() -> None:
    """Print the devices of all backends as arguments: ray start $(armpy ray-resources).

    Each backend is loaded.
    """
