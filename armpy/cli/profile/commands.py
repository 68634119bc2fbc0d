"""``armpy profile``: shows what `armpy run --profile FILE.json` has written, and compares two."""

from __future__ import annotations

from dataclasses import asdict

import click

from armpy.cli.options import MODEL_FILE, json_option, verbosity_options
from armpy.cli.strict_options import OnceGroup

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415

_TOP = click.option(
    "--top",
    type=click.IntRange(min=1),
    default=15,
    show_default=True,
    help="How many layers to list.",
)


@click.group(cls=OnceGroup, short_help="Show profiles that runs have written, and compare two.")
def profile() -> None:
    """Show profiles, which 'armpy run MODEL --profile FILE.json' writes, and compare two of them.

    The files are traces as well: chrome://tracing and ui.perfetto.dev draw them.
    """


@profile.command(short_help="Where all of the time of a profile went.")
@click.argument("file", type=MODEL_FILE)
@_TOP
@json_option
@verbosity_options
def show(file: str, top: int, as_json: bool) -> None:
    """Show where all of the time of FILE went: by kind, by layer, and of loading."""
    from armpy.cli.printer import Printer, print_json
    from armpy.cli.profile.report import summary_report
    from armpy.cli.profile.tables import print_profile
    from armpy.profiling import read_summary

    found = summary_report(read_summary(file))
    if as_json:
        print_json({"file": file, **asdict(found)})
    else:
        print_profile(Printer(), found, most_layers=top)


@profile.command(short_help="What has changed from one profile to another, by kind and by layer.")
@click.argument("before", type=MODEL_FILE)
@click.argument("after", type=MODEL_FILE)
@_TOP
@json_option
@verbosity_options
def compare(before: str, after: str, top: int, as_json: bool) -> None:
    """Say what has changed from BEFORE to AFTER, the largest change first.

    Times are of one execution. Layers are matched by name; those that a backend computes as one
    are compared together. Profiles are best made with --repeat: single executions differ by
    chance.
    """
    from armpy.cli.printer import Printer, print_json
    from armpy.cli.profile.tables import print_comparison
    from armpy.profiling import read_summary

    found = read_summary(before).compare(read_summary(after))
    if found.layers and not any(layer.before_us and layer.after_us for layer in found.layers):
        click.echo("armpy: hint: no layer is in both profiles: are they of one model?", err=True)
    if as_json:
        print_json({"before": before, "after": after, "comparison": asdict(found)})
    else:
        print_comparison(Printer(), found, most_layers=top)
