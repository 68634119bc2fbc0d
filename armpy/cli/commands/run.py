"""Options of ``armpy run``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.inputs.options import input_options
from armpy.cli.options import (
    DEFAULT_TOP,
    MODEL_FILE,
    OUTPUT,
    RUNS,
    json_option,
    model_options,
    verbosity_options,
)
from armpy.cli.pictures.options import picture_options
from armpy.model.load_options import OPTIONS

_RUN_OPTIONS = (
    model_options,
    click.argument("pictures", nargs=-1, metavar="[PICTURES]..."),
    click.option("--image", "images", multiple=True, metavar="PICTURE", help="As PICTURES."),
    picture_options,
    click.option("--labels", type=MODEL_FILE, help="Names of the classes, one per line."),
    click.option(
        "--top",
        type=click.IntRange(min=1),
        help=f"How many classes to list.  [default: {DEFAULT_TOP}]",
    ),
    click.option(
        *RUNS,
        "repeat",
        type=click.IntRange(min=1),
        help="Time so many runs, after one that is not timed.",
    ),
    click.option(
        "--compile",
        type=click.Choice(OPTIONS["compile"].choices),
        help=f"{OPTIONS['compile'].help}  [default: background for one answer on a terminal, on "
        "backends that are not named; else wait]",
    ),
    json_option,
    verbosity_options,
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the model and the options of one run, for commands that run a model as ``armpy run``."""
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return command


@click.command("run")
@run_options
@input_options(
    "input",
    "shape",
    "size",
    "batch",
    "seed",
)
@click.option(
    *OUTPUT,
    type=click.Path(writable=True),
    help="Write each output to this folder as .npy.",
)
@imported_when_run("armpy.cli.run.work:run")
def command() -> None:
    """Run MODEL on a picture, on arrays, or on random numbers.

    A picture is stretched to the size of the input, and turned grey for an input of one channel.
    Its pixels become elements of the input's type and scale, normalised as the file's metadata
    say; for float inputs of a file without these, pixels become numbers from 0 to 1 unless --range,
    --mean or --std ask for others. Labels that are packed into the file name the classes unless
    --labels does.

    Several pictures, folders and patterns, objects and people in pictures, masks and drawings, and
    files of results are for `armpy pictures` (extension armpy-tools).

    With --compile background, the answer comes from backends that need not compile, and the rest
    is compiled for the next time; the command ends with that.
    """
