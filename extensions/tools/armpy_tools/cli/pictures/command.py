"""Options of ``armpy pictures``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.commands.run import run_options
from armpy.cli.inputs.options import input_options
from armpy.cli.options import OUTPUT


@click.command("pictures")
@run_options
@input_options(
    "input",
    "shape",
    "size",
    "seed",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    help="Give the model so many pictures together, if it takes any number.",
)
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    default=0.3,
    show_default=True,
    help="Least score of an object or a person that counts.",
)
@click.option(
    *OUTPUT,
    type=click.Path(writable=True),
    help="Write the results to FILE.csv or FILE.jsonl; otherwise to a folder: "
    "each output as .npy, and of several pictures a folder for each.",
)
@click.option(
    "--save-pictures",
    type=click.Path(file_okay=False, writable=True),
    help="Draw the findings (regions, boxes, key points, classes) on the pictures, and "
    "write them to this folder.",
)
@imported_when_run("armpy_tools.cli.pictures.work:run")
def command() -> None:
    """Run MODEL on many PICTURES, find objects and people, and write files of results.

    PICTURES are files, folders, or patterns such as 'photos/*.jpg'. One file gets a report, several
    pictures get a table with a row for each; unreadable pictures are reported in their row, and the
    exit code is 1 at the end. Of very many, the table has the first and the last, with one class
    each unless --top asks for more; --output has all.

    Without pictures it runs on arrays or random numbers as `armpy run`, which documents the other
    options, and --output writes one file of results.
    """
