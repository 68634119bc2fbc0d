"""Measures backends on this machine, and prints the results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict

import click

from armpy.cli.commands.devices import figure_rows
from armpy.cli.files import model_files
from armpy.cli.options import EXIT_PROBLEMS
from armpy.cli.printer import Printer, print_json
from armpy.cli.progress import progress_shown
from armpy.core.machine import describe_machine
from armpy.plugins import BackendRegistry, PluginOptions
from armpy.plugins.proxy.figures import figures_fields
from armpy_tools.calibrate import OUT_OF_TIME, CalibrationReport, ModelTime
from armpy_tools.calibrate import calibrate as measure_backends
from armpy_tools.calibrate.user_models import MODEL
from armpy_tools.devices.records import costs_fields
from armpy_tools.devices.store import FiguresStore

_MOST_BUSY = 0.5


def calibrate(
    context: click.Context,
    models: tuple[str, ...],
    backends: tuple[str, ...] | None,
    seconds: float,
    dynamic_backends_path: tuple[str, ...],
    as_json: bool,
) -> None:
    """Measure how fast backends are on this machine, and keep it."""
    options = PluginOptions(dynamic_backends_path=dynamic_backends_path, probe=True)
    store = FiguresStore()
    registry = BackendRegistry.discover(options)
    if (num_busy := busy_processors()) > _MOST_BUSY:
        click.echo(
            f"armpy: warning: other programs keep {num_busy:.1f} processors busy, which makes "
            "figures too high",
            err=True,
        )
    files = model_files(models)
    with progress_shown():
        reports = measure_backends(registry, backends, store=store, seconds=seconds, models=files)
    if as_json:
        print_json(calibration_document(reports, store))
    else:
        print_calibration(reports, store)
    if any(report.problem or not report.is_kept for report in reports):
        context.exit(EXIT_PROBLEMS)


def busy_processors() -> float:
    """Return how many processors were busy in the last minute, where the system says it; else 0."""
    averages = getattr(os, "getloadavg", None)
    try:
        return 0.0 if averages is None else float(averages()[0])
    except OSError:
        return 0.0


def print_calibration(reports: Sequence[CalibrationReport], store: FiguresStore) -> None:
    """Print the measurements of each backend."""
    printer = Printer()
    printer.line(f"{describe_machine()} (machine {store.machine})")
    for report in reports:
        printer.heading(f"{report.backend} {report.version}".rstrip())
        if report.problem:
            printer.line(f"problem: {report.problem}")
            continue
        printer.line(
            f"{report.num_measured} workloads in {report.seconds:.3g} s{_left_out(report)}; "
            "against CpuRef, lower is better"
        )
        if report.is_declared:
            printer.line("the backend declares these figures; they go before measured ones")
        printer.table(["operands", "time>", "power>"], figure_rows(report.figures))
        if report.models:
            printer.table(["model", "ms>", "time>"], [_model_row(time) for time in report.models])
        for name, reason in report.left_out.items():
            if name.startswith(MODEL):
                printer.line(f"not measured: {name.rpartition(' ')[0]}: {reason}")
        if not report.is_kept:
            printer.line("problem: they could not be kept")
    if any(report.is_kept for report in reports):
        printer.line(f"kept in {store.directory}")


def _model_row(time: ModelTime) -> tuple[str, str, str]:
    """Milliseconds of a model, and the time against CpuRef."""
    ratio = "-" if time.ratio is None else f"{time.ratio:.3g}"
    return time.title, f"{1e3 * time.seconds:.3g}", ratio


def _left_out(report: CalibrationReport) -> str:
    """Describe the missing measurements, for people."""
    late = sum(reason == OUT_OF_TIME for reason in report.left_out.values())
    refused = len(report.left_out) - late
    said = f", {refused} that it cannot run" if refused else ""
    return said + (f", {late} left out for lack of time (--seconds)" if late else "")


def calibration_document(
    reports: Sequence[CalibrationReport], store: FiguresStore
) -> dict[str, object]:
    """Everything that was measured as a JSON document."""
    backends = [
        {
            "backend": report.backend,
            "version": report.version,
            "problem": report.problem,
            "kept": report.is_kept,
            "declared": report.is_declared,
            "num_measured": report.num_measured,
            "seconds": report.seconds,
            "left_out": dict(report.left_out),
            "models": [{"ratio": time.ratio, **asdict(time)} for time in report.models],
            "figures": report.figures and figures_fields(report.figures),
            "costs": report.costs and costs_fields(report.costs),
        }
        for report in reports
    ]
    return {"machine": store.machine, "processor": describe_machine(), "backends": backends}
