"""Shows what runs with a profile have written, and compares two."""

from __future__ import annotations

from dataclasses import asdict

import click

from armpy.cli.printer import Printer, print_json
from armpy.cli.profile.report import summary_report
from armpy.cli.profile.tables import print_comparison, print_profile
from armpy.profiling import read_summary


def show(file: str, top: int, as_json: bool) -> None:
    """Show where all of the time of FILE went: by kind, by layer, and of loading."""
    found = summary_report(read_summary(file))
    if as_json:
        print_json({"file": file, **asdict(found)})
    else:
        print_profile(Printer(), found, most_layers=top)


def compare(before: str, after: str, top: int, as_json: bool) -> None:
    """Say what has changed from BEFORE to AFTER, the largest change first."""
    found = read_summary(before).compare(read_summary(after))
    if found.layers and not any(layer.before_us and layer.after_us for layer in found.layers):
        click.echo("armpy: hint: no layer is in both profiles: are they of one model?", err=True)
    if as_json:
        print_json({"before": before, "after": after, "comparison": asdict(found)})
    else:
        print_comparison(Printer(), found, most_layers=top)
