"""Options of ``armpy export-triton``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.inputs.options import input_options
from armpy.cli.options import (
    MODEL_FILE,
    OUTPUT,
    THREADS,
    backends_option,
    json_option,
    loading_options,
    verbosity_options,
)
from armpy.cli.values import parse_numbers, parsed

_COUNT = click.IntRange(min=0)
_SOME = click.IntRange(min=1)


@click.command("export-triton")
@click.argument("models", nargs=-1, required=True, type=MODEL_FILE, metavar="MODEL...")
@click.option(
    *OUTPUT,
    type=click.Path(file_okay=False),
    required=True,
    metavar="REPOSITORY",
    help="The server's model repository (its --model-repository); created if missing.",
)
@click.option("--name", help="What clients call the model; its file's name if left out.")
@click.option("--model-version", type=_SOME, default=1, show_default=True, metavar="N")
@click.option(
    "--force",
    is_flag=True,
    help="Replace the version if it is there, and config.pbtxt, which stays "
    "otherwise if there are other versions.",
)
@click.option(
    "--instances",
    type=_SOME,
    default=1,
    show_default=True,
    metavar="N",
    help="Processes that run the model side by side. They share its weights and the cores.",
)
@click.option(
    "--max-batch",
    type=_COUNT,
    default=0,
    show_default=True,
    metavar="N",
    help="The most rows that requests are joined to, along the first dimension, which is opened; "
    "0 leaves the model's shapes as they are.",
)
@click.option(
    "--queue-delay-us",
    type=_COUNT,
    default=0,
    show_default=True,
    metavar="US",
    help="How long a request waits for others to join it.",
)
@click.option(
    "--max-queue", type=_COUNT, default=0, metavar="N", help="How many wait at most; any if 0."
)
@click.option(
    "--timeout-us", type=_COUNT, default=0, metavar="US", help="How long they wait; any time if 0."
)
@click.option(
    "--timeout-action",
    type=click.Choice(["reject", "delay"]),
    default="reject",
    show_default=True,
    help="Refuse those that have waited so long, or answer them after all others.",
)
@click.option(
    "--own-timeout", is_flag=True, help="Let requests say a time of their own (parameter timeout)."
)
@click.option(
    "--labels",
    type=MODEL_FILE,
    metavar="FILE",
    help="Labels of the first output's classes, a line each; those in the model's file if left "
    "out. Clients that ask for classes get them.",
)
@click.option(
    "--ensemble",
    is_flag=True,
    help="Put steps around the model: clients send real numbers, or pixels, and get real numbers, "
    "or the best classes. Written are NAME, NAME_model, NAME_preprocess, NAME_postprocess.",
)
@click.option(
    "--mean",
    metavar="R[,G,B]",
    callback=parsed(parse_numbers),
    help="With --ensemble: pixels (UINT8) are sent, and become (pixel - mean) / std.",
)
@click.option("--std", metavar="R[,G,B]", callback=parsed(parse_numbers), help="1 if left out.")
@click.option(
    "--top",
    type=_COUNT,
    default=0,
    metavar="K",
    help="With --ensemble: so many of the best classes and their scores in place of all.",
)
@click.option(
    "--isolate",
    multiple=True,
    metavar="ID",
    help="Give this backend a process of its own, which may crash; may be repeated.",
)
@click.option(
    "--isolate-memory-mb",
    type=_SOME,
    metavar="N",
    help="With --isolate: the most memory of such a process; three quarters of the machine's if "
    "left out.",
)
@click.option(
    "--memory-limit-mb", type=_SOME, metavar="N", help="Refuse what takes more; 4096 if left out."
)
@click.option("--target", "targets", multiple=True, metavar="NAME", help="As for 'armpy compile'.")
@click.option("--sign", "key", type=MODEL_FILE, metavar="KEY", help="As for 'armpy compile'.")
@input_options(
    "shape",
    "size",
    more_on_shapes="A name that comes again begins a further set that the model is prepared for. "
    "Not with --max-batch.",
    several_shapes=True,
)
@backends_option("Ids in order of preference; may be repeated; all if left out.")
@click.option(
    *THREADS,
    "num_threads",
    type=_SOME,
    help="Of each instance; the cores divided by the instances if left out.",
)
@loading_options
@json_option
@verbosity_options
@imported_when_run("armpy_serving.commands.triton_export:export_command")
def command() -> None:
    """Put each MODEL into a repository of Triton's, which serves it over HTTP and gRPC.

    The written files are config.pbtxt, a module of two lines for the Python backend, and the model
    as 'armpy compile' prepares it. The server needs armpy in the Python that it runs models with.
    It may be running: a model appears, or is replaced, in one step.
    """
