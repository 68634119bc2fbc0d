"""Options of ``armpy benchmark``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.inputs.options import input_options
from armpy.cli.options import (
    BACKENDS,
    MODEL_FILE,
    RUNS,
    SECONDS,
    THREADS,
    WRITABLE_FILE,
    json_option,
    loading_options,
    verbosity_options,
)
from armpy.cli.values import FiniteRange, parse_name_lists

_PEERS = ("litert", "onnxruntime", "openvino")


def _counts(context: click.Context, param: click.Parameter, text: str | None) -> list[int]:
    """Numbers of 1 or more with commas between them."""
    if text is None:
        return []
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 0 < int(part) <= 1_000_000 for part in parts):
        raise click.BadParameter(
            f"'{text}': expected numbers of 1 or more with commas between them.", context, param
        )
    return list(dict.fromkeys(map(int, parts)))


@click.command("benchmark")
@click.argument("models", nargs=-1, required=True, type=MODEL_FILE, metavar="MODEL...")
@click.option(
    *BACKENDS,
    "backend_lists",
    multiple=True,
    metavar="A,B",
    callback=parse_name_lists,
    help="Ids in order of preference. Give it again for each list to measure beside: "
    "--backends NumbaAcc --backends CpuRef.",
)
@click.option(
    "--every-device",
    "takes_every_device",
    is_flag=True,
    help="Measure each device of each backend beside the others, CpuRef for layers that it lacks.",
)
@click.option(
    *THREADS,
    "threads",
    metavar="N,N",
    callback=_counts,
    help="For backends that have threads of their own; several are measured beside each other.",
)
@click.option(
    "--callers",
    metavar="N,N",
    callback=_counts,
    help="So many threads call the model at the same time.",
)
@click.option(
    "--batch",
    metavar="N,N",
    callback=_counts,
    help="Size of the first axis of every input.",
)
@input_options(
    "input",
    "shape",
    "size",
    "seed",
    more_on_shapes="(224 for images). A name that comes again begins a further set, which is "
    "measured beside.",
    several_shapes=True,
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="ID.NAME=VALUE[,...]",
    help="Measure once more with these options of backends; may be repeated.",
)
@click.option(
    "--peer",
    "peers",
    multiple=True,
    type=click.Choice(_PEERS),
    help="Measure another engine beside, if it is installed; may be repeated.",
)
@click.option(
    *SECONDS,
    type=FiniteRange(min=0, min_open=True),
    default=3.0,
    show_default=True,
    metavar="SECONDS",
    help="Of warm runs, about, for each that is measured.",
)
@click.option(
    *RUNS, type=click.IntRange(min=1), help="So many warm runs of each instead of a time."
)
@click.option(
    "--warm-up",
    "warm_up_s",
    type=FiniteRange(min=0),
    default=0.2,
    show_default=True,
    metavar="SECONDS",
    help="Runs that do not count, in every process; one at least.",
)
@click.option(
    "--processes",
    type=click.IntRange(min=1, max=100),
    default=6,
    show_default=True,
    help="Measure all of it in so many fresh processes, one after the other.",
)
@click.option(
    "--baseline",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="NUMBER",
    help="Which row the others are compared with.",
)
@click.option("--layers", "with_layers", is_flag=True, help="Find out what limits each layer.")
@loading_options
@click.option("--html", "page_path", type=WRITABLE_FILE, help="Write a page for browsers.")
@json_option
@verbosity_options
@click.pass_context
@imported_when_run("armpy_tools.cli.benchmark.work:benchmark_command")
def command() -> None:
    """Measure what each MODEL takes to load, to run first, and to run.

    Whatever is given several times is measured beside each other: models, --backends, --threads,
    --callers, --batch, --shape, --variant, --peer. Each has a process of its own. They take short
    turns in changing order, and all begins anew in fresh processes several times, so that the
    ratios hold: they come with intervals, of 95 %. Control-C stops, and prints the measurements.
    """
