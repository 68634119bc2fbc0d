"""Options of ``armpy doctor``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import dynamic_backends_option, report_options
from armpy.cli.values import FiniteRange


@click.command("doctor")
@dynamic_backends_option
@click.option(
    "--probe-timeout",
    metavar="SECONDS",
    type=FiniteRange(min=0, min_open=True, max=3600),
    # More than for a Runtime: a backend may compile its first networks, beside other programs.
    default=30.0,
    show_default=True,
    help="How long each backend may take.",
)
@report_options
@click.pass_context
@imported_when_run("armpy.cli.doctor.work:doctor")
def command() -> None:
    """Show the installation: versions, caches, variables, and the state of every backend.

    Each backend and plugin is loaded in a process of its own, and each backend runs a small network
    whose answer is known. 'armpy inspect FILE' and 'armpy check FILE' are for model files.

    Exit code 0 if all is well, 1 if there is a problem. Devices that this machine lacks are listed,
    but are not problems.
    """
