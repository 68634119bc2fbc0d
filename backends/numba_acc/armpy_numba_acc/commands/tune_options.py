"""Options of ``armpy tune``."""

from __future__ import annotations

from functools import partial

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.inputs.options import input_options
from armpy.cli.options import SECONDS, model_options, report_options
from armpy.cli.values import FiniteRange


@click.command("tune")
@partial(model_options, is_optional=True)
@input_options(
    "shape",
    "size",
    "batch",
)
@click.option(
    "--machine",
    "measures_machine",
    is_flag=True,
    help="Measure the machine again, too: what backends keep of its speed, for all models. MODEL "
    "may be left out then.",
)
@click.option(
    *SECONDS,
    "seconds",
    type=FiniteRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="How long to measure at most; compilations come on top.",
)
@click.option("--all", "shows_all", is_flag=True, help="List every choice, not only gains.")
@report_options
@click.pass_context
@imported_when_run("armpy_numba_acc.commands.tune:tune")
def command() -> None:
    """Measure the fastest options for MODEL on this machine, and store them.

    Backends that can compute a layer in several ways take the one that should be fastest. This
    command lets them try. They store their results, for the same options: later loads of the
    model use them, and 'armpy cache list' shows them. Nothing else should run meanwhile.
    The longest parts are tried first. Ctrl-C ends the search and stores the results so far;
    a second one drops them.
    Exit code 1 if a backend could not measure, or not store its results.
    """
