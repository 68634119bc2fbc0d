"""Options of the commands that join ``armpy conformance``."""

from __future__ import annotations

import click

from armpy.cli.command_group import imported_when_run
from armpy.cli.options import (
    OUTPUT,
    SECONDS,
    ExistingPath,
    dynamic_backends_option,
    json_option,
    seed_option,
    verbosity_options,
)
from armpy.cli.values import FiniteRange
from armpy_conformance.cli.conformance.options import (
    backend_option,
    filter_option,
    trial_options,
)


@click.command(
    "conformance nnapi-vectors", short_help="NNAPI's published operation tests, as data."
)
@click.argument("directory", type=ExistingPath(exists=True, file_okay=False, readable=True))
@backend_option
@filter_option
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Processes at a time; one per core if left out."
)
@dynamic_backends_option
@json_option
@verbosity_options
@click.pass_context
@imported_when_run("armpy_nnapi.conformance.cli.vectors:nnapi_vectors")
def nnapi_vectors() -> None:
    """Run every example in DIRECTORY: as declared, and with unknown output dimensions.

    An example of unsigned quantised tensors is also run as its signed twin, of int8, whose outputs
    must be equal up to 128.

    Exit code 1 if an example fails or crashes. One whose operations the backend does not
    take is unsupported.
    """


@click.command("conformance random-graphs", short_help="Random NNAPI models, compared with CpuRef.")
@backend_option
@click.option(
    "--count", type=click.IntRange(min=1), default=1000, show_default=True, help="How many models."
)
@seed_option("Of the first model.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Processes at a time; one per core if left out."
)
@click.option(
    *OUTPUT,
    type=click.Path(file_okay=False, writable=True),
    help="Keep the smallest failing part of each failure in this folder, as test vectors; in "
    "armpy-random-graphs if left out.",
)
@dynamic_backends_option
@json_option
@verbosity_options
@click.pass_context
@imported_when_run("armpy_nnapi.conformance.cli.random_graphs:random_graphs")
def random_graphs() -> None:
    """Make up valid NNAPI models and compare a backend's answers with CpuRef's.

    Exit code 1 if one fails or crashes. 'armpy conformance nnapi-vectors' runs what
    --output has kept again.
    """


@click.command(
    "conformance fuzz", short_help="A search for failing models, guided by coverage or by chance."
)
@backend_option
@click.option(
    "--engine",
    type=click.Choice(["atheris", "seeded"]),
    help="atheris where it is installed, if left out; else by chance.",
)
@seed_option("Of the search.")
@click.option(
    "--count", type=click.IntRange(min=1), help="How many models; 1000 if no time is given."
)
@click.option(*SECONDS, type=FiniteRange(min=0, min_open=True), help="How long to search.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Processes of a seeded search; one per core."
)
@click.option(
    *OUTPUT,
    type=click.Path(file_okay=False, writable=True),
    help="Keep findings, and the corpus of atheris, in this folder: armpy-fuzz if left out, or "
    "where the file of --reproduce is.",
)
@click.option(
    "--reproduce",
    type=ExistingPath(exists=True, dir_okay=False, readable=True),
    help="Judge the model of this file alone.",
)
@trial_options
@json_option
@verbosity_options
@click.pass_context
@imported_when_run("armpy_nnapi.conformance.cli.fuzz:fuzz")
def fuzz() -> None:
    """Make up valid NNAPI models until a backend crashes or disagrees with CpuRef.

    Exit code 1 if it does. Each finding is kept as the bytes that its model is made of, with the
    command that runs them again, and its smallest failing part as test vectors.
    """
