"""Options of ``armpy run``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import (
    MODEL_FILE,
    OUTPUT,
    RUNS,
    json_option,
    model_options,
    seed_option,
    verbosity_options,
)
from armpy.cli.pictures.option_decorator import picture_options
from armpy.cli.values import parse_trace, parsed
from armpy.model.load_options import OPTIONS

DEFAULT_TOP = 5


@click.command("run")
@model_options
@click.argument("pictures", nargs=-1, metavar="[PICTURES]...")
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="PICTURE",
    help="The same as PICTURES: a file, a folder, or a pattern; may be repeated.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]FILE.npy",
    help="An array for one input; once per input. An only input needs no name.",
)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    help="Give the model so many pictures together, if it takes any number.",
)
@picture_options
@seed_option()
@click.option(
    "--quantize-inputs", is_flag=True, help="Quantise float arrays given for quantised inputs."
)
@click.option("--labels", type=MODEL_FILE, help="Names of the classes, one per line.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help=f"How many classes to list.  [default: {DEFAULT_TOP}, 1 in a table of pictures]",
)
@click.option(
    "--softmax", is_flag=True, help="Turn scores that are no probabilities into probabilities."
)
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    default=0.3,
    show_default=True,
    help="Least score of an object or a person that counts.",
)
@click.option(
    "--truth",
    metavar="FILE.csv|folders",
    help="What the pictures show: a file with a picture and its label in each line, or the "
    "folder that each is in. Tells how often the model is right.",
)
@click.option(
    *OUTPUT,
    type=click.Path(writable=True),
    help="Write the results to FILE.csv, FILE.jsonl or FILE.npz; otherwise to a folder: "
    "each output as .npy, and of several pictures a result file for each.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Skip pictures whose result files are whole in the folder of --output.",
)
@click.option(
    "--save-pictures",
    type=click.Path(file_okay=False, writable=True),
    help="Draw what was found (regions, boxes, key points, classes) on the pictures, and "
    "write them to this folder.",
)
@click.option(
    *RUNS,
    "repeat",
    type=click.IntRange(min=1),
    help="Time so many runs, after one that is not timed.",
)
@click.option(
    "--profile",
    is_flag=False,
    flag_value="",
    metavar="[FILE.json]",
    callback=parsed(parse_trace),
    help="List the slowest steps; FILE.json gets a trace for Chrome's and Perfetto's viewers.",
)
@click.option(
    "--compile",
    type=click.Choice(OPTIONS["compile"].choices),
    help=f"{OPTIONS['compile'].help}  [default: background for one answer on a terminal, on "
    "backends that are not named; else wait]",
)
@json_option
@verbosity_options
@imported_when_run("armpy.cli.run.work:run")
def command() -> None:
    """Run MODEL on PICTURES, on arrays, or on random numbers.

    PICTURES are files, folders, or patterns such as 'photos/*.jpg'. One file gets a report, several
    pictures get a table with a row for each; one that cannot be read is told in its row, and the
    exit code is 1 at the end. Of very many, the table has the first and the last; --output has all,
    each as soon as it is there; with a folder, --resume goes on after an interrupt (exit code 130).

    A picture is stretched to the size of the input, and turned grey for an input of one channel.
    Its pixels become what the input's type and quantisation say, normalised as the file's metadata
    say; for float inputs of a file without these, pixels become numbers from 0 to 1 unless --range,
    --mean or --std ask for others. Labels that are packed into the file name the classes unless
    --labels does.

    With --compile background, the answer comes from backends that need not compile, and the rest
    is compiled for the next time; the command ends with that.
    """
