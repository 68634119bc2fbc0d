"""Options of ``armpy new-backend``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import verbosity_options


@click.command("new-backend", short_help="Write the project of a new backend.")
@click.argument("vendor")
@click.argument("name")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@click.option(
    "--style",
    type=click.Choice(["workloads", "compiler", "engine", "c", "cpp"]),
    default="workloads",
    show_default=True,
    help="Run layers one by one, compile subgraphs, host an engine that does, or use C or C++.",
)
@verbosity_options
@imported_when_run("armpy_conformance.cli.new_backend.work:new_backend")
def command() -> None:
    """Write the project of a backend named <VENDOR>_<NAME>_backend to DIR.

    It passes its own tests at once. DIR is vendor-name-backend if left out.
    """
