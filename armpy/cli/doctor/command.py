"""Options of ``armpy doctor``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import (
    MODEL_FILE,
    dynamic_backends_option,
    front_end_option,
    report_options,
    trust_options,
)
from armpy.cli.values import FiniteRange


@click.command("doctor")
@click.argument("file", type=MODEL_FILE, required=False)
@front_end_option
@trust_options
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
    """Load each backend in a process of its own, run small networks on it, and say what to do.

    With a model FILE, say whether it can be loaded, which operators are missing, which shapes are
    open, where layers run and why not elsewhere, and what a start found in the caches or had to
    compile. Of a compiled one, say which of its programs would be used here, and why others would
    not.

    Long lines about what is well are cut to the width of the terminal; -v shows all.

    Exit code 0 if all is well, 1 if there is a problem. Optional libraries and extensions that are
    not installed, and devices that this machine lacks, are listed, but are no problems.
    """
