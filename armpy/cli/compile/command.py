"""Options of ``armpy compile``."""

from __future__ import annotations

from functools import partial

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.inputs.options import input_options
from armpy.cli.options import (
    MODEL_FILE,
    OUTPUT,
    WRITABLE_FILE,
    model_options,
    report_options,
)


@click.command("compile")
@partial(model_options, is_optional=True)
@click.option(*OUTPUT, type=WRITABLE_FILE, metavar="FILE", help="The file to write; required.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help="A machine to compile for: 'host', which is this one, or a processor; 'help' lists them. "
    "May be repeated, the most wanted first; 'host' if left out.",
)
@input_options(
    "shape",
    "size",
    "batch",
    more_on_shapes="A name that comes again begins a further set that the model is prepared for.",
    several_shapes=True,
)
@click.option(
    "--sign", "key", type=MODEL_FILE, metavar="KEY", help="Sign the file with this private key."
)
@report_options
@imported_when_run("armpy.cli.compile.work:compile_command")
def command() -> None:
    """Prepare MODEL ahead of time, and write it as one file.

    The file holds the optimised network with its weights, and for each target the code that
    backends have compiled. It is given wherever a model is: 'armpy run FILE', armpy.load(FILE). No
    compiler is needed where it is used. 'armpy inspect FILE' shows its contents.
    """
