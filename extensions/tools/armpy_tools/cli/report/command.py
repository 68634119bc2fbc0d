"""Options of ``armpy report``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.inputs.options import INPUT_OPTIONS, input_options
from armpy.cli.options import (
    MODEL_FILE,
    OUTPUT,
    RUNS,
    WRITABLE_FILE,
    model_options,
    verbosity_options,
)


@click.command("report")
@model_options
@click.option(*OUTPUT, type=WRITABLE_FILE, help="The page; MODEL.html in this folder if left out.")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@click.option(
    *RUNS,
    type=click.IntRange(min=1, max=10_000),
    default=10,
    show_default=True,
    help="How many runs to profile, after one that does not count.",
)
@click.option("--no-accuracy", is_flag=True, help="Do not compare each layer with CpuRef.")
@click.option(
    "--float-model",
    type=MODEL_FILE,
    help="The float model that MODEL was quantised from, to compare outputs with.",
)
@input_options(*INPUT_OPTIONS)
@verbosity_options
@imported_when_run("armpy_tools.cli.report.work:report")
def command() -> None:
    """Write a page about MODEL: one file that works in any browser, without network.

    Its first screen answers four questions: how fast, where it ran, how big, how exact. Below are
    the graph to zoom and search, where layers run and why not elsewhere, where time and memory go,
    and the error of each layer against CpuRef. 'armpy benchmark --html' compares backends.
    """
