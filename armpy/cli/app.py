"""The commands and their options; the work is done in the modules named after them."""

from __future__ import annotations

import click

import armpy
from armpy.cli.load_request import LoadRequest, load_model
from armpy.cli.options import (
    WRITABLE_FILE,
    json_option,
    model_options,
    size_option,
    verbosity_options,
)
from armpy.cli.plugin_commands import PluginGroup

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415


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
        "profile": "armpy.cli.profile_commands:profile",
        "quantize": "armpy.cli.quantize:quantize",
        "run": "armpy.cli.run_command:run",
        "report": "armpy.cli.report_command:report",
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


@app.command(short_help="Show what a model is made of and where it would run.")
@model_options
@click.option("--layers", "with_layers", is_flag=True, help="List every layer.")
@size_option
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
