"""Options of ``armpy kernels``."""

from __future__ import annotations

import click

from armpy.cli.command_group import OnceGroup, imported_when_run
from armpy.cli.inputs.options import input_options
from armpy.cli.options import (
    MODEL_FILE,
    OUTPUT,
    backends_option,
    dynamic_backends_option,
    report_options,
)


@click.group("kernels", cls=OnceGroup)
def command() -> None:
    """Build packs of compiled kernels, or list those that are found.

    Backends that compile look into packs before they do: ARMPY_KERNELS names packs, or folders of
    them, and NumbaAcc comes with packs of its own.
    """


@command.command(short_help="Build packs with the kernels of some models.")
@click.argument("models", type=MODEL_FILE, nargs=-1, required=True)
@click.option(
    *OUTPUT,
    type=click.Path(file_okay=False, writable=True),
    metavar="DIR",
    required=True,
    help="Where the packs go, a file for each target; it is made if need be.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help="A machine to compile for, as 'armpy compile --target help' lists them; may be repeated. "
    "'host', this one, if left out.",
)
@input_options(
    "shape",
    "size",
    "batch",
    more_on_shapes="They are used for every model. A name that comes again begins a further set of "
    "shapes.",
    several_shapes=True,
)
@backends_option("Whose kernels, in order of preference; every installed backend if left out.")
@dynamic_backends_option
@report_options
@click.pass_context
@imported_when_run("armpy_numba_acc.commands.kernels:build")
def build() -> None:
    """Build packs of the kernels that MODELS need on machines like the targets.

    Other models find kernels in them, too, as far as they need the same. Other versions of armpy
    use those whose sources are the same there.
    Exit code 1 if a model could not be loaded; the packs have the kernels of the others then.
    """


@command.command("list", short_help="List the packs that are used here.")
@click.argument("model", type=MODEL_FILE, required=False)
@click.option(
    "--all", "shows_all", is_flag=True, help="List also packs for other machines, with the reasons."
)
@input_options("shape", "size", "batch")
@dynamic_backends_option
@report_options
@click.pass_context
@imported_when_run("armpy_numba_acc.commands.kernels:list_command")
def list_command() -> None:
    """List the packs that are used here, and those that are damaged.

    With MODEL, load it, and say which kernels come from where.
    Exit code 1 if one cannot be used at all: it is damaged, or others can write to it.
    """
