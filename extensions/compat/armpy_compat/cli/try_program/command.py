"""Options of ``armpy try``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import MODEL_FILE, ExistingPath, json_option, verbosity_options
from armpy.cli.values import FiniteRange


@click.command(
    "try",
    short_help="Run a program of another engine on that engine and on armpy.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("program", type=ExistingPath(exists=True, dir_okay=False, readable=True))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="N",
    help="Runs on each side, in turns; times are of those after the first one.",
)
@click.option(
    "--within",
    type=FiniteRange(min=0),
    default=1e-5,
    show_default=True,
    metavar="NUMBER",
    help="Largest difference of equal answers, relative to an answer's largest number where that "
    "is above 1.",
)
@click.option(
    "--stdin",
    type=MODEL_FILE,
    metavar="FILE",
    help="Standard input of every run; empty if left out.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(min=0, min_open=True),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="Longest time of a run.",
)
@json_option
@verbosity_options
@click.pass_context
@imported_when_run("armpy_compat.cli.try_program.work:run_trial")
def command() -> None:
    """Run PROGRAM with its ARGUMENTS on its own engine and on armpy, and compare them.

    PROGRAM is a Python file that uses onnxruntime, ai_edge_litert, tflite_runtime, tensorflow.lite
    or pyarmnn. It runs unchanged, in processes of its own, in turns. Printed are times of calls and
    of the whole program, whether the answers are equal, where the layers ran on armpy, and what the
    program asked for that armpy lacks. Options of this command stand before PROGRAM.

    armpy's caches are empty at the first run, as on a new machine. Exit code 0 if all answers are
    equal and the program ends alike, otherwise 1.
    """
