"""Measures how exact and how fast a backend runs models, and prints the results."""

from __future__ import annotations

from pathlib import Path

import click

from armpy.cli.files import model_files, write_text
from armpy.cli.inputs.request import InputRequest
from armpy.cli.printer import Printer, print_json
from armpy_conformance.cli.conformance.trials import runtime_options
from armpy_tools.accuracy import AccuracyRun, run_accuracy
from armpy_tools.accuracy.runner import AccuracySettings

_SHOWN = 300


def accuracy(
    context: click.Context,
    models: tuple[str, ...],
    backend: str,
    samples: int | None,
    inputs: InputRequest,
    folder: str | None,
    seconds: float,
    num_threads: int,
    tolerance: float,
    html: str | None,
    backend_options: tuple[str, ...],
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run MODELS on a backend, and compare with their float twins, CpuRef and LiteRT."""
    result = run_accuracy(
        model_files(models),
        backend,
        runtime_options=runtime_options(dynamic_backends_path, backend_options),
        settings=AccuracySettings(
            samples,
            inputs.seed,
            folder or "",
            seconds,
            num_threads,
            tolerance,
            inputs.shapes,
        ),
    )
    if html is not None:
        write_text(html, result.to_html())
    if as_json:
        print_json(result.to_document())
    else:
        print_accuracy(result)
    if not result.is_passed:
        context.exit(1)


def print_accuracy(run: AccuracyRun) -> None:
    """Print one row per model and engine, and why something is missing."""
    printer = Printer()
    rows = []
    for model in run.models:
        first = (
            Path(model.model).name,
            model.status.value,
            f"{model.num_taken}/{model.num_layers}",
        )
        for engine in model.engines:
            errors, latency = engine.errors, engine.latency
            same_best = None if errors is None else errors.same_best
            rows.append(
                (
                    *first,
                    engine.name,
                    "-" if errors is None else f"{errors.relative:.3g}",
                    "-" if errors is None else f"{errors.largest:.3g}",
                    "-" if same_best is None else f"{100 * same_best:.0f} %",
                    "-" if latency is None else f"{latency.median_ms:.3g}",
                    "-" if latency is None else f"{latency.deviation_ms:.2g}",
                )
            )
            first = ("", "", "")
        if not model.engines:
            rows.append((*first, "", "-", "-", "-", "-", "-"))
    columns = ["model", "status", "layers>", "engine", "relative error>", "largest>"]
    printer.table([*columns, "same best>", "median ms>", "± ms>"], rows)
    _print_scores(printer, run)
    remarks = [(Path(model.model).name, model.text) for model in run.models if model.text]
    remarks += [
        (Path(model.model).name, f"compared with {model.compared}")
        for model in run.models
        if model.compared
    ]
    remarks += [
        (Path(model.model).name, f"errors are counted from {model.reference}")
        for model in run.models
        if model.reference and model.reference != "real numbers"
    ]
    remarks += [
        (Path(model.model).name, f"{engine.name}: {engine.text}")
        for model in run.models
        for engine in model.engines
        if engine.text and not model.compared
    ]
    if remarks:
        printer.heading("Remarks")
        for name, text in remarks:
            printer.line(f"{name}: {text if len(text) < _SHOWN else text[:_SHOWN] + ' ...'}")
    printer.heading(f"{run} in {run.duration_s:.1f} s")


def _print_scores(printer: Printer, run: AccuracyRun) -> None:
    """Print how answers compare with expected results, where a model has any."""
    rows = [
        (Path(model.model).name, engine.name, measure, f"{score:.4g}")
        for model in run.models
        for engine in model.engines
        for measure, score in engine.scores.items()
    ]
    if rows:
        printer.heading("Against expected results")
        printer.table(["model", "engine", "measure", "value>"], rows)
