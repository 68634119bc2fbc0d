"""``armpy profile``: where the time of a model goes."""

from __future__ import annotations

from dataclasses import asdict

import click

from armpy.cli.command_group import OnceGroup
from armpy.cli.files import write_text
from armpy.cli.inputs.complete import complete_inputs
from armpy.cli.inputs.options import INPUT_OPTIONS, input_options
from armpy.cli.inputs.request import InputRequest
from armpy.cli.inputs.values import array_files
from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import (
    MODEL_FILE,
    OUTPUT,
    RUNS,
    WRITABLE_FILE,
    check_outputs,
    model_options,
    report_options,
)
from armpy.cli.pictures.file_metadata import FileMetadata
from armpy.cli.printer import Printer, print_json
from armpy.cli.profile_report import print_comparison, print_profile, profile_document
from armpy.cli.run.report import show_hints
from armpy.cli.run.run_model import time_runs
from armpy.profiling import compare_summaries, read_summary, to_chrome_trace

_TOP = click.option(
    "--top",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    help="How many layers to list.",
)


class _ModelOrCommand(OnceGroup):
    """A group that runs its command ``model`` where the first argument names no command."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        """Put ``model`` in front of anything but a command or a request for help."""
        first = arguments[0] if arguments else "--help"
        if first not in self.commands and first not in self.get_help_option_names(context):
            arguments = [model.name or "", *arguments]
        return super().parse_args(context, arguments)


@click.group("profile", cls=_ModelOrCommand, subcommand_metavar="MODEL | COMMAND [ARGS]...")
def command() -> None:
    """Profile MODEL: show where the time of its executions goes.

    'armpy profile MODEL' runs a model and prints its profile, 'armpy profile model --help' lists
    the options. The other commands show saved profiles, which -o writes, and compare two of
    them. The files are traces as well: chrome://tracing
    and ui.perfetto.dev draw them.
    """


@command.command(short_help="Run a model and show where the time of its executions goes.")
@model_options
@click.option(
    *RUNS,
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Number of executions to profile, after one that is not profiled.",
)
@input_options(*INPUT_OPTIONS)
@_TOP
@click.option(*OUTPUT, type=WRITABLE_FILE, help="Write the profile to FILE.json.")
@report_options
def model(
    load_request: CliLoadRequest,
    runs: int,
    inputs: InputRequest,
    image: str | None,
    top: int,
    output: str | None,
    as_json: bool,
) -> None:
    """Run MODEL and show where the time of its executions goes: by kind and by layer."""
    check_outputs({"--output": output}, [load_request.model, image, *array_files(inputs)])
    with load_model(load_request, profiling=True) as loaded:
        metadata = FileMetadata(loaded)
        completed = complete_inputs(loaded, inputs, image, metadata=metadata)
        with completed.shapes.explained():
            loaded.run(completed.arrays)
        profiler = loaded.runtime.get_profiler(loaded.network_id)
        assert profiler is not None  # as it is loaded with profiling
        profiler.clear()  # the first execution does not count
        time_runs(loaded, completed.arrays, runs)
        summary, counters = profiler.summary(), profiler.counters
        placement = str(loaded.placement)
        if output is not None:
            write_text(output, to_chrome_trace(profiler))
    show_hints([*completed.hints, *metadata.hints])
    if as_json:
        document = profile_document(summary, counters)
        print_json({"model": load_request.model, "inputs": completed.origin, **document})
        return
    printer = Printer()
    printer.line(f"inputs: {completed.origin}")
    printer.line(f"placement: {placement}")
    print_profile(printer, summary, counters, most_layers=top)
    if output is not None:
        printer.line(f"written: {output}")


@command.command(short_help="Where all of the time of a profile went.")
@click.argument("file", type=MODEL_FILE)
@_TOP
@report_options
def show(file: str, top: int, as_json: bool) -> None:
    """Show where all of the time of FILE went: by kind, by layer, and of loading."""
    summary = read_summary(file)
    if as_json:
        print_json({"file": file, **profile_document(summary)})
    else:
        print_profile(Printer(), summary, most_layers=top)


@command.command(short_help="Changes from one profile to another, by kind and by layer.")
@click.argument("before", type=MODEL_FILE)
@click.argument("after", type=MODEL_FILE)
@_TOP
@report_options
def compare(before: str, after: str, top: int, as_json: bool) -> None:
    """Print the changes from BEFORE to AFTER, the largest first.

    Times are of one execution. Layers are matched by name; those that a backend computes as one
    are compared together. Profiles are best made of several executions, see --runs: single ones
    differ by chance.
    """
    changes = compare_summaries(read_summary(before), read_summary(after))
    if changes.layers and not any(layer.before_us and layer.after_us for layer in changes.layers):
        click.echo("armpy: hint: no layer is in both profiles: are they of one model?", err=True)
    if as_json:
        print_json({"before": before, "after": after, "comparison": asdict(changes)})
    else:
        print_comparison(Printer(), changes, most_layers=top)
