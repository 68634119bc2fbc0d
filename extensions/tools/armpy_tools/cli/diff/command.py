"""Options of ``armpy diff``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.inputs.options import input_options
from armpy.cli.options import (
    MODEL_FILE,
    dynamic_backends_option,
    json_option,
    verbosity_options,
)


@click.command(
    "diff", short_help="Find the first layer that two backends, or two files, differ in."
)
@click.argument("model", type=MODEL_FILE)
@click.argument("other", type=MODEL_FILE, required=False)
@click.option("--backend", metavar="ID", help="The backend that may be wrong.")
@click.option(
    "--against", default="CpuRef", show_default=True, metavar="ID", help="The one that is right."
)
@input_options(
    "input",
    "shape",
    "size",
    "batch",
    "seed",
    more_on_shapes="With OTHER, they are of MODEL's inputs.",
)
@click.option("--exact", is_flag=True, help="Allow no difference in integers and truth values.")
@dynamic_backends_option
@json_option
@verbosity_options
@click.pass_context
@imported_when_run("armpy_tools.cli.diff.work:diff")
def command() -> None:
    """Run MODEL on two backends and name the first layer whose output leaves the tolerance.

    Each layer is tried by itself on the right inputs first; if all are right, beginnings of
    the model are, so that layers which are wrong only when they are fused are found too.
    Exit code 1 if there is a difference, or if the backend runs none of the layers.

    With OTHER, another file of the same network in any format, both run on CpuRef, and the layer
    is named at which the files no longer compute the same numbers. Inputs of the same names
    are the same; with other names they are the same by order. --input names those of MODEL.
    A quantised model differs from its float model by rounding, which 'armpy report QUANTISED
    --float-model FLOAT' shows.
    """
