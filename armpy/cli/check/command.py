"""Options of ``armpy check``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import MODEL_FILE, dynamic_backends_option, report_options, trust_options


@click.command("check")
@click.argument("file", type=MODEL_FILE)
@click.option(
    "--device",
    metavar="ID",
    help="Ask about this backend, as 'armpy devices' lists them, with CpuRef for layers that it "
    "does not take; about all installed ones if left out.",
)
@trust_options
@dynamic_backends_option
@report_options
@click.pass_context
@imported_when_run("armpy.cli.check.work:check")
def command() -> None:
    """Say whether the compiled model FILE fits this machine: fits, fits slower, does not fit.

    Nothing is compiled, and no program is loaded. A file that fits slower is loaded: layers whose
    programs cannot be used here are compiled anew, or run on another backend. 'armpy inspect FILE'
    lists every program.

    Exit code 0 if the file can be loaded, 1 if it does not fit.
    """
