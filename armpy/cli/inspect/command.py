"""Options of ``armpy inspect``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.inputs.options import input_options
from armpy.cli.options import (
    model_options,
    report_options,
)


@click.command("inspect")
@model_options
@click.option("--layers", "with_layers", is_flag=True, help="List every layer of the file.")
@click.option("--tensors", "with_tensors", is_flag=True, help="List every tensor of the file.")
@input_options(
    "shape",
    "size",
    "batch",
)
@report_options
@imported_when_run("armpy.cli.inspect.work:inspect")
def command() -> None:
    """Show MODEL's inputs and outputs, its layers, and where they would run.

    Operators have the names that the file has for them. A model with operators that armpy does
    not have is described as well, and these are named. Of a compiled model, show also what is in
    it, by whom, and what of it would be used here. `armpy report` draws the layers to a page or,
    with --svg, to a picture (extension armpy-tools).
    """
