"""``armpy conformance accuracy``: how exact and how fast a backend runs models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from armpy.cli.conformance.options import backend_option, runtime_options, trial_options
from armpy.cli.options import (
    MODEL_FILE,
    SECONDS,
    THREADS,
    WRITABLE_FILE,
    json_option,
    seed_option,
    verbosity_options,
)
from armpy.cli.values import FiniteRange

if TYPE_CHECKING:
    from armpy.testing.accuracy import AccuracyRun

# What a command needs is imported when it runs: --help and usage errors are quick.
# ruff: noqa: PLC0415

_SHOWN = 300


@click.command(short_help="Latency and accuracy on models, beside real numbers and a peer.")
@click.argument("models", nargs=-1, required=True, type=MODEL_FILE)
@backend_option
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Inputs of each model.",
)
@seed_option()
@click.option(
    "--inputs",
    type=click.Path(exists=True, file_okay=False, readable=True),
    help="A folder with <model>.npz: arrays by input, or samples as <sample>/in0, <sample>/in1.",
)
@click.option(
    *SECONDS,
    type=FiniteRange(min=0),
    default=2.0,
    show_default=True,
    help="How long each model is timed; 0 not to.",
)
@click.option(
    *THREADS,
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Of the backend and the peer.",
)
@click.option(
    "--tolerance",
    type=FiniteRange(min=0),
    default=1.25,
    show_default=True,
    help="How many times CpuRef's error the backend may have.",
)
@click.option("--html", type=WRITABLE_FILE, help="Write the result as one page to this file.")
@trial_options
@json_option
@verbosity_options
@click.pass_context
def accuracy(
    context: click.Context,
    models: tuple[str, ...],
    backend: str,
    samples: int,
    seed: int,
    inputs: str | None,
    seconds: float,
    num_threads: int,
    tolerance: float,
    html: str | None,
    backend_options: tuple[str, ...],
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run MODELS on a backend, and compare with their float twins, CpuRef and LiteRT.

    A float twin has the same layers on real numbers. Exit code 1 unless the backend runs layers
    of every model and is about as near to the twin as CpuRef is. Every model has a process of its
    own; the backend and the peer, where it is installed, take turns when they are timed.
    """
    from armpy.cli.printer import print_json
    from armpy.testing.accuracy import run_accuracy
    from armpy.testing.accuracy.runner import AccuracySettings

    result = run_accuracy(
        models,
        backend,
        runtime_options=runtime_options(dynamic_backends_path, backend_options),
        settings=AccuracySettings(samples, seed, inputs or "", seconds, num_threads, tolerance),
    )
    if html is not None:
        Path(html).write_text(result.to_html(), "utf-8")
    if as_json:
        print_json(result.to_document())
    else:
        print_accuracy(result)
    if not result.is_passed:
        context.exit(1)


def print_accuracy(run: AccuracyRun) -> None:
    """Print one row per model and engine, and why something is missing."""
    from armpy.cli.printer import Printer

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
    remarks = [(Path(model.model).name, model.text) for model in run.models if model.text]
    remarks += [
        (Path(model.model).name, f"errors are counted from {model.reference}")
        for model in run.models
        if model.reference and model.reference != "real numbers"
    ]
    remarks += [
        (Path(model.model).name, f"{engine.name}: {engine.text}")
        for model in run.models
        for engine in model.engines
        if engine.text
    ]
    if remarks:
        printer.heading("Remarks")
        for name, text in remarks:
            printer.line(f"{name}: {text if len(text) < _SHOWN else text[:_SHOWN] + ' ...'}")
    printer.heading(f"{run} in {run.duration_s:.1f} s")
