"""Writes one page about a model, for a browser."""

from __future__ import annotations

import webbrowser
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from armpy.cli.files import write_text
from armpy.cli.inputs.complete import CommandInputs, complete_inputs
from armpy.cli.inputs.request import InputRequest
from armpy.cli.inputs.values import array_files
from armpy.cli.load_model import load_model
from armpy.cli.load_request import CliLoadRequest
from armpy.cli.options import check_outputs
from armpy.cli.pictures.file_metadata import FileMetadata
from armpy.cli.progress import ProgressLine
from armpy.cli.registry import find_origin
from armpy.model import Model, begins_prepared
from armpy_tools.pages import render_page
from armpy_tools.report import ReportSubject, make_report
from armpy_tools.report.headlines import placement_text


def report(
    load_request: CliLoadRequest,
    output: str | None,
    opens: bool,
    runs: int,
    no_accuracy: bool,
    float_model: str | None,
    inputs: InputRequest,
    image: str | None,
) -> None:
    """Write a page about MODEL: one file that works in any browser, without network."""
    if float_model is not None and no_accuracy:
        raise click.UsageError("--float-model: it does not go with --no-accuracy.")
    path = Path(output or f"{Path(load_request.model).stem}.html")
    files = [load_request.model, float_model, image, *array_files(inputs)]
    check_outputs({"--output": str(path)}, files)
    progress = ProgressLine()
    progress.show("loading ...")
    with load_model(load_request, profiling=True) as model, ExitStack() as stack:
        completed = _completed(model, inputs, image)
        subject = _subject(load_request, model, completed)
        if float_model is not None:
            on_reference = CliLoadRequest(float_model).with_options(backends=("CpuRef",))
            subject = replace(
                subject,
                float_model=stack.enter_context(load_model(on_reference)),
                float_name=Path(float_model).name,
            )
        try:
            with completed.shapes.explained():
                sections = make_report(
                    subject,
                    num_runs=runs,
                    with_accuracy=not no_accuracy,
                    on_progress=lambda step: progress.show(f"{step} ..."),
                )
        finally:
            progress.show("")
        about = placement_text(model.placement) if model.placement is not None else ""
    title = f"Report of {subject.name}"
    write_text(path, render_page(title, sections, about))
    click.echo(f"{path}: {path.stat().st_size / 1024:.0f} KiB")
    if opens:
        _open(path)


def _completed(model: Model, inputs: InputRequest, image: str | None) -> CommandInputs:
    """The inputs of a model."""
    # Random numbers need no metadata of the model's file.
    metadata = FileMetadata(model) if image or inputs.arrays else None
    return complete_inputs(model, inputs, image, metadata=metadata)


def _subject(load_request: CliLoadRequest, model: Model, inputs: CommandInputs) -> ReportSubject:
    """The model with its inputs, and facts of its file."""
    path = Path(load_request.model)
    outline, title = None, "compiled by armpy"
    if not begins_prepared(load_request.model):
        file = find_origin(load_request, model.runtime.registry)
        outline, title = file.outline(load_request.options.signature), file.front_end.title

    facts = [("format", title)]
    num_bytes = path.stat().st_size
    arrays, origin = inputs.arrays, inputs.origin
    return ReportSubject(model, path.name, arrays, origin, facts, outline, num_bytes)


def _open(path: Path) -> None:
    """Open a page in a browser; print a hint if there is none."""
    if not webbrowser.open(path.resolve().as_uri()):
        click.echo(f"armpy: hint: no browser was found; open {path} yourself", err=True)
