"""Options of ``armpy demo``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import OUTPUT, WRITABLE_FILE, json_option, verbosity_options


@click.command("demo")
@click.option(
    "--digit", type=click.IntRange(0, 9), default=7, show_default=True, help="What is drawn."
)
@click.option(
    "--browser/--no-browser",
    default=True,
    help="Open a report of the model in a browser, where there is one. It is, by default.",
)
@click.option(
    "--report",
    *OUTPUT,
    "report",
    type=WRITABLE_FILE,
    help="Write the report to this file, and keep it.",
)
@json_option
@verbosity_options
@imported_when_run("armpy.cli.demo.work:demo")
def command() -> None:
    """See a small network read a digit that is drawn for it.

    Nothing but the installed package is needed. The answer comes at once from CpuRef, which
    computes with NumPy; then the network is compiled for this processor, which takes a while the
    first time, and is timed. Nothing leaves this machine.
    """
