"""Options of the commands that join ``armpy conformance``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.inputs.options import input_options
from armpy.cli.options import (
    MODEL_FILE,
    MODEL_OR_FOLDER,
    OUTPUT,
    SECONDS,
    THREADS,
    WRITABLE_FILE,
    ExistingPath,
    json_option,
    verbosity_options,
)
from armpy.cli.values import FiniteRange
from armpy_conformance.cli.conformance.options import backend_option, trial_options


@click.command(
    "conformance accuracy",
    short_help="Latency and accuracy on models, beside real numbers and a peer.",
)
@click.argument("models", nargs=-1, required=True, type=MODEL_OR_FOLDER)
@backend_option
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    help="Inputs of each model: all of its file if left out, or 8 random ones.",
)
@input_options(
    "shape",
    "seed",
    more_on_shapes="They are used for every model.",
)
@click.option(
    "--inputs",
    "folder",
    type=ExistingPath(exists=True, file_okay=False, readable=True),
    help="A folder with <model>.npz: arrays by input, or samples as <sample>/in0, <sample>/in1, "
    "with expected results as <sample>/out0, class, words or cepstra. The model's own folder if "
    "left out.",
)
@click.option(
    *SECONDS,
    type=FiniteRange(min=0),
    default=2.0,
    show_default=True,
    help="How long each model is timed; 0 not to.",
)
@click.option(
    *THREADS,
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Of the backend and the peer.",
)
@click.option(
    "--tolerance",
    type=FiniteRange(min=0),
    default=1.25,
    show_default=True,
    help="How many times the smaller error of CpuRef and LiteRT the backend may have.",
)
@click.option("--html", type=WRITABLE_FILE, help="Write the result as one page to this file.")
@trial_options
@json_option
@verbosity_options
@click.pass_context
@imported_when_run("armpy_tools.cli.conformance.accuracy:accuracy")
def accuracy() -> None:
    """Run MODELS on a backend, and compare with their float twins, CpuRef and LiteRT.

    MODELS are files, or folders with models and the samples of each.
    A float twin has the same layers on real numbers. Exit code 1 unless the backend runs layers
    of every model and is about as near to the twin as CpuRef is; measures against expected
    results are shown beside that. Every model has a process of its
    own; the backend and the peer, where it is installed, take turns when they are timed.
    """


@click.command("conformance page", short_help="A result of a trial as one page for browsers.")
@click.argument("result", type=MODEL_FILE)
@click.option(*OUTPUT, type=WRITABLE_FILE, required=True, help="The page.")
@verbosity_options
@imported_when_run("armpy_tools.cli.conformance.result_page:page")
def page() -> None:
    """Write RESULT as a page: operations by type in colours, problems, and every case.

    RESULT is the JSON of 'armpy conformance ID --json', or of 'armpy conformance nnapi-vectors'.
    """
