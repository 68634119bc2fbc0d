"""The commands and their options; the work is done in the modules named after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

import armpy
from armpy.cli.settings import Settings
from armpy.cli.values import parse_names, parse_numbers, parse_range, parse_size, parsed

if TYPE_CHECKING:
    from armpy.runtime import Model

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415

_Command = TypeVar("_Command", bound=Callable[..., object])

_FILE = click.Path(exists=True, dir_okay=False, readable=True)
_WRITABLE_FILE = click.Path(dir_okay=False, writable=True)
_FOLDER = click.Path(file_okay=False, writable=True)

_SIZE = click.option(
    "--size",
    metavar="HxW",
    callback=parsed(parse_size),
    help="Size of images for a model that takes any.",
)


def _set_verbosity(context: click.Context, _: click.Parameter, value: int) -> None:
    """Take up -v as soon as it is seen."""
    context.ensure_object(Settings).raise_verbosity(value)


def _set_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Take up --debug."""
    context.ensure_object(Settings).debug |= value


def _verbosity_options(command: _Command) -> _Command:
    """Add the options that say how much is told; they may stand before or after the command."""
    command = click.option(
        "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show tracebacks."
    )(command)
    return click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        callback=_set_verbosity,
        help="Log to stderr; twice for more.",
    )(command)


def _json_option(command: _Command) -> _Command:
    """Add ``--json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
    )(command)


def _model_options(command: _Command) -> _Command:
    """Add the options of everything that loads a model."""
    options = (
        click.argument("model", type=_FILE),
        click.option(
            "--backends",
            metavar="A,B",
            callback=parsed(parse_names),
            help="Ids in order of preference; all installed ones if left out.",
        ),
        click.option(
            "--num-threads",
            type=click.IntRange(min=1),
            help="For backends that have threads of their own.",
        ),
        click.option("--signature", metavar="NAME", help="Use this signature of the model."),
        click.option(
            "--on-fallback",
            type=click.Choice(["allow", "warn", "error"]),
            default="allow",
            show_default=True,
            help="What to do when a layer does not run on the first preferred backend.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(armpy.__version__, prog_name="armpy", message="%(prog)s %(version)s")
@_verbosity_options
@click.pass_context
def app(context: click.Context) -> None:
    """Run neural networks on whatever accelerators are installed.

    Exit codes: 0 done, 1 failed, 2 the command line cannot be followed.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


@app.command(short_help="Run a model on a picture, on arrays, or on random numbers.")
@_model_options
@click.option("--image", type=_FILE, help="A picture for a model with one image input.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="An array for one input; once per input.",
)
@click.option("--labels", type=_FILE, help="Names of the classes, one per line.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="How many classes to list.",
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
@_json_option
@_verbosity_options
def run(
    model: str,
    backends: tuple[str, ...] | None,
    num_threads: int | None,
    signature: str | None,
    on_fallback: str,
    quantize_inputs: bool,
    as_json: bool,
    **options: Any,  # Any: click hands over the fields of RunRequest by name
) -> None:
    """Run MODEL on a picture, on arrays, or on random numbers.

    A picture is stretched to the size of the input. Its pixels become what the input's
    type and quantisation say; for float inputs nothing says it, and pixels become numbers
    from 0 to 1 unless --range, --mean or --std ask for others.
    """
    from armpy.cli import report
    from armpy.cli.run import RunRequest, run_model

    request = RunRequest(**options)
    with _load(model, backends, num_threads, signature, on_fallback, quantize_inputs) as loaded:
        result = run_model(loaded, request)
    for hint in result.hints:
        click.echo(f"armpy: hint: {hint}", err=True)
    if as_json:
        report.print_json(report.run_document(model, result))
    else:
        report.print_run(result)


@app.command(short_help="Show what a model is made of and where it would run.")
@_model_options
@click.option("--layers", "with_layers", is_flag=True, help="List every layer.")
@_SIZE
@click.option("--dot", type=_WRITABLE_FILE, help="Write the network for Graphviz to this file.")
@_json_option
@_verbosity_options
def inspect(
    model: str,
    backends: tuple[str, ...] | None,
    num_threads: int | None,
    signature: str | None,
    on_fallback: str,
    with_layers: bool,
    size: tuple[int, int] | None,
    dot: str | None,
    as_json: bool,
) -> None:
    """Show what MODEL takes and gives, what it is made of, and where it would run."""
    from armpy.cli import report
    from armpy.cli.images import sized_shapes
    from armpy.cli.inspect import inspect_model, read_signature_reports, write_dot

    with _load(model, backends, num_threads, signature, on_fallback) as loaded:
        if size is not None:
            loaded.resize(sized_shapes(loaded.inputs, size))
        result = inspect_model(loaded, read_signature_reports(model))
        if dot is not None:
            write_dot(loaded, dot)
    if as_json:
        report.print_json(report.model_document(model, result, with_layers=with_layers))
    else:
        report.print_model(result, with_layers=with_layers)


@app.command(short_help="List the backends that are installed.")
@click.option("--load", is_flag=True, help="Import each backend to see whether it can be used.")
@_json_option
@_verbosity_options
def backends(load: bool, as_json: bool) -> None:
    """List the backends that are installed, and why one cannot be used."""
    from armpy.cli import report
    from armpy.cli.backends import list_backends
    from armpy.plugins import BackendRegistry

    found = list_backends(BackendRegistry.discover(), load=load)
    if as_json:
        report.print_json(report.backends_document(found))
    else:
        report.print_backends(found)


def _load(
    path: str,
    backends: tuple[str, ...] | None,
    num_threads: int | None,
    signature: str | None,
    on_fallback: str,
    quantize_inputs: bool = False,
) -> Model:
    """Load a model as the options say."""
    from armpy.cli.inspect import check_signature

    check_signature(path, signature)
    return armpy.load(
        path,
        backends=backends,
        num_threads=num_threads,
        on_fallback=on_fallback,
        quantize_inputs=quantize_inputs,
        signature=signature,
    )
