"""Options of ``armpy calibrate``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import (
    MODEL_OR_FOLDER,
    SECONDS,
    backends_option,
    dynamic_backends_option,
    json_option,
    verbosity_options,
)
from armpy.cli.values import FiniteRange


@click.command("calibrate")
@click.argument("models", nargs=-1, type=MODEL_OR_FOLDER)
@backends_option("Measure these backends. Every installed one if left out.")
@click.option(
    *SECONDS,
    type=FiniteRange(min=0, min_open=True, max=3600),
    default=20.0,
    show_default=True,
    help="How long to measure each backend at most; compilations come on top.",
)
@dynamic_backends_option
@json_option
@verbosity_options
@click.pass_context
@imported_when_run("armpy_tools.cli.calibrate.work:calibrate")
def command() -> None:
    """Measure how fast backends are on this machine, and keep it.

    Small networks run on each backend, and MODELS before them: files, or folders with models. What
    comes out decides where networks run that are to be as fast as possible, or to take little
    power, and 'armpy devices' shows it.
    Nothing else should run meanwhile. CpuRef is measured besides if it was not before.
    Exit code 1 if a backend could not be measured, or the measurements not be stored.
    """
