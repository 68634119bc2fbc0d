"""Profiles a model, shows saved profiles, and compares two."""

from __future__ import annotations

from dataclasses import asdict

import click

from armpy.cli.inputs.request import InputRequest
from armpy.cli.inputs.values import array_files
from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import check_outputs
from armpy.cli.printer import Printer, print_json
from armpy.cli.profile_report import ProfileReport, print_comparison, print_profile
from armpy.cli.run.report import show_hints
from armpy.cli.run.run_model import RunRequest, run_model
from armpy.profiling import compare_summaries, read_summary


def profile(
    load_request: CliLoadRequest,
    runs: int,
    inputs: InputRequest,
    image: str | None,
    top: int,
    output: str | None,
    as_json: bool,
) -> None:
    """Run MODEL and show where the time of its executions goes."""
    check_outputs({"--output": output}, [load_request.model, image, *array_files(inputs)])
    request = RunRequest(image=image, inputs=inputs, repeat=runs, trace=output or "")
    with load_model(load_request, profiling=True) as model:
        report = run_model(model, request)
    if report.profile is None:
        raise RuntimeError("a model that is loaded with profiling has no profile")
    show_hints(report.hints)
    if as_json:
        print_json({"model": load_request.model, "inputs": report.inputs, **asdict(report.profile)})
        return
    printer = Printer()
    printer.line(f"inputs: {report.inputs}")
    printer.line(f"placement: {report.placement}")
    print_profile(printer, report.profile, most_layers=top)
    if output is not None:
        printer.line(f"written: {output}")


def show(file: str, top: int, as_json: bool) -> None:
    """Show where all of the time of FILE went: by kind, by layer, and of loading."""
    report = ProfileReport.of(read_summary(file))
    if as_json:
        print_json({"file": file, **asdict(report)})
    else:
        print_profile(Printer(), report, most_layers=top)


def compare(before: str, after: str, top: int, as_json: bool) -> None:
    """Print the changes from BEFORE to AFTER, the largest first."""
    changes = compare_summaries(read_summary(before), read_summary(after))
    if changes.layers and not any(layer.before_us and layer.after_us for layer in changes.layers):
        click.echo("armpy: hint: no layer is in both profiles: are they of one model?", err=True)
    if as_json:
        print_json({"before": before, "after": after, "comparison": asdict(changes)})
    else:
        print_comparison(Printer(), changes, most_layers=top)
