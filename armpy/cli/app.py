"""The commands and their options; the work is done in the modules named after them."""

from __future__ import annotations

from typing import Any

import click

import armpy
from armpy.cli.load_request import LoadRequest, load_model
from armpy.cli.options import (
    MODEL_FILE,
    WRITABLE_FILE,
    json_option,
    model_options,
    verbosity_options,
)
from armpy.cli.plugin_commands import PluginGroup
from armpy.cli.values import parse_numbers, parse_range, parse_size, parse_trace, parsed

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415

_FOLDER = click.Path(file_okay=False, writable=True)

_SIZE = click.option(
    "--size",
    metavar="HxW",
    callback=parsed(parse_size),
    help="Size of images for a model that takes any.",
)


@click.group(
    cls=PluginGroup,
    elsewhere={
        "backends": "armpy.cli.backend_commands:backends",
        "benchmark": "armpy.cli.benchmark:benchmark_command",
        "cache": "armpy.cli.cache_commands:cache",
        "calibrate": "armpy.cli.calibrate:calibrate",
        "compile": "armpy.cli.compile:compile_command",
        "conformance": "armpy.cli.conformance:conformance",
        "demo": "armpy.cli.demo:demo",
        "diff": "armpy.cli.diff:diff",
        "doctor": "armpy.cli.backend_commands:doctor",
        "keys": "armpy.cli.keys:keys",
        "new-backend": "armpy.cli.backend_commands:new_backend",
        "quantize": "armpy.cli.quantize:quantize",
        "tune": "armpy.cli.tune:tune",
    },
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(armpy.__version__, prog_name="armpy", message="%(prog)s %(version)s")
@verbosity_options
@click.pass_context
def app(context: click.Context) -> None:
    """Run neural networks on whatever accelerators are installed.

    Exit codes: 0 done, 1 failed, 2 the command line cannot be followed.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


@app.command(short_help="Run a model on a picture, on arrays, or on random numbers.")
@model_options
@click.option(
    "--image",
    "images",
    multiple=True,
    type=MODEL_FILE,
    help="A picture for a model with one image input; may be repeated.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]FILE.npy",
    help="An array for one input; once per input. An only input needs no name.",
)
@click.option("--labels", type=MODEL_FILE, help="Names of the classes, one per line.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="How many classes to list.",
)
@click.option(
    "--softmax", is_flag=True, help="Turn scores that are no probabilities into probabilities."
)
@click.option("--output", type=_FOLDER, help="Write each output to this folder as .npy.")
@click.option(
    "--repeat", type=click.IntRange(min=1), help="Time so many runs, after one that is not timed."
)
@_SIZE
@click.option(
    "--resize",
    type=click.Choice(["stretch", "crop", "pad"]),
    default="stretch",
    show_default=True,
    help="How to bring a picture to the size of the input.",
)
@click.option(
    "--range",
    "value_range",
    metavar="LOW,HIGH",
    callback=parsed(parse_range),
    help="Real numbers that black and white become.",
)
@click.option(
    "--mean",
    metavar="NUMBERS",
    callback=parsed(parse_numbers),
    help="Subtract this from pixels of 0 to 255; one number, or one per channel.",
)
@click.option(
    "--std", metavar="NUMBERS", callback=parsed(parse_numbers), help="Divide by this after --mean."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of random inputs.")
@click.option(
    "--quantize-inputs", is_flag=True, help="Quantise float arrays given for quantised inputs."
)
@click.option(
    "--profile",
    is_flag=False,
    flag_value="",
    metavar="[FILE.json]",
    callback=parsed(parse_trace),
    help="List the slowest steps; FILE.json gets a trace for Chrome's and Perfetto's viewers.",
)
@json_option
@verbosity_options
def run(
    load_request: LoadRequest,
    quantize_inputs: bool,
    profile: str | None,
    as_json: bool,
    images: tuple[str, ...],
    **options: Any,  # Any: click hands over the fields of RunRequest by name
) -> None:
    """Run MODEL on a picture, on arrays, or on random numbers.

    A picture is stretched to the size of the input. Its pixels become what the input's
    type and quantisation say, normalised as the file's metadata say; for float inputs of a
    file without these, pixels become numbers from 0 to 1 unless --range, --mean or --std ask
    for others. Labels that are packed into the file name the classes unless --labels does.
    Of several pictures, each is
    run alone; the outputs go to a folder each, and --json prints a list.
    """
    from armpy.cli.run import print_runs, run_all, run_requests

    requests = run_requests(images, **options, trace=profile)
    with load_model(
        load_request, quantize_inputs=quantize_inputs, profiling=profile is not None
    ) as loaded:
        results = run_all(loaded, requests)
    print_runs(load_request.model, results, as_json=as_json)


@app.command(short_help="Show what a model is made of and where it would run.")
@model_options
@click.option("--layers", "with_layers", is_flag=True, help="List every layer.")
@_SIZE
@click.option("--dot", type=WRITABLE_FILE, help="Write the network for Graphviz to this file.")
@json_option
@verbosity_options
def inspect(
    load_request: LoadRequest,
    with_layers: bool,
    size: tuple[int, int] | None,
    dot: str | None,
    as_json: bool,
) -> None:
    """Show what MODEL takes and gives, what it is made of, and where it would run.

    Of a prepared file, show also what is in it, by whom, and what of it would be used here.
    """
    from armpy.cli import report
    from armpy.cli.images import sized_shapes
    from armpy.cli.inspect import inspect_file, write_dot
    from armpy.cli.printer import print_json
    from armpy.runtime.load_request import begins_prepared

    if begins_prepared(load_request.model):
        _inspect_prepared(load_request, size, dot, with_layers=with_layers, as_json=as_json)
        return
    with load_model(load_request) as loaded:
        if size is not None:
            loaded.resize(sized_shapes(loaded.inputs, size))
        result = inspect_file(loaded, load_request)
        if dot is not None:
            write_dot(loaded, dot)
    if as_json:
        document = report.model_document(load_request.model, result, with_layers=with_layers)
        print_json(document)
    else:
        report.print_model(result, with_layers=with_layers)


def _inspect_prepared(
    load_request: LoadRequest,
    size: tuple[int, int] | None,
    dot: str | None,
    *,
    with_layers: bool,
    as_json: bool,
) -> None:
    """Show a prepared file."""
    from armpy.cli import report
    from armpy.cli.inspect_prepared import inspect_prepared, prepared_document, print_prepared
    from armpy.cli.printer import print_json

    if size is not None:
        raise click.UsageError("--size: a prepared file is shown with the shapes that it is for.")
    result, found = inspect_prepared(load_request, dot)
    if as_json:
        document = report.model_document(load_request.model, result, with_layers=with_layers)
        print_json({**document, "prepared": prepared_document(found)})
        return
    report.print_model(result, with_layers=with_layers)
    print_prepared(found)
