"""Options of ``armpy backends``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import dynamic_backends_option, report_options


@click.command("backends")
@click.option(
    "--all", "shows_all", is_flag=True, help="List also what cannot be used; with --load, why."
)
@click.option(
    "--load", is_flag=True, help="Load each backend, after a test import in a separate process."
)
@dynamic_backends_option
@report_options
@click.pass_obj
@imported_when_run("armpy.cli.backends.work:backends")
def command() -> None:
    """List the backends that are installed.

    None is imported unless --load is given; 'armpy devices' shows what they run on.
    """
