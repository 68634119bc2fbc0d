"""Tables of `armpy benchmark`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import TypeAlias

from armpy.cli.printer import Printer
from armpy.profiling import short_names
from armpy_tools.benchmark import (
    BenchmarkResult,
    LayerCost,
    SubjectResult,
)

_MIB = 1 << 20
_KIB = 1 << 10
_SMALL = 0.1
_MOST_LAYERS = 15
"""Of a subject; the JSON document has all."""


def print_benchmark(result: BenchmarkResult) -> None:
    """Print tables for people."""
    printer = Printer()
    machine = result.machine
    printer.line(f"machine: {machine.description}; {machine.processors} may be used")
    printer.line(f"measured: {how_measured(result)}; {result.seconds:.1f} s in all")
    for note in result.notes:
        printer.line(f"note: {note}")
    done = [subject for subject in result.subjects if subject.latency is not None]
    if done:
        printer.heading("Warm runs (ms)")
        printer.table(*runs_table(result, done))
        columns, rows = ratios_table(result, done)
        if rows:
            baseline = label_of(result, result.subjects[result.plan.baseline])
            printer.heading(f"Times as fast as {baseline} (from, to: 95 %)")
            printer.table(columns, rows)
        printer.heading("Loading (ms), memory (MiB), processors busy")
        printer.table(*costs_table(result, done))
    for subject in done:
        if subject.placement:
            printer.line(f"placement of {label_of(result, subject)}: {subject.placement}")
    for subject in result.subjects:
        for note in subject.notes:
            printer.line(f"note: {label_of(result, subject)}: {note}")
    for subject in done:
        if subject.layers:
            _print_layers(printer, result, subject)
    failed = [subject for subject in result.subjects if subject.failure]
    if failed:
        printer.heading("Failed")
        for subject in failed:
            printer.line(f"{label_of(result, subject)}: {subject.failure}")


def how_measured(result: BenchmarkResult) -> str:
    """Return how much was measured, and how."""
    plan, count = result.plan, result.processes
    much = f"{plan.runs} runs" if plan.runs is not None else f"{plan.seconds:g} s of runs"
    where = "a fresh process" if count <= 1 else f"{count} fresh processes, one after the other"
    return f"{much} of each, in turns, in {where}"


def label_of(result: BenchmarkResult, subject: SubjectResult) -> str:
    """A row's number and name."""
    if len(result.subjects) == 1:
        return subject.name
    return f"{result.subjects.index(subject) + 1}. {subject.name}"


Table: TypeAlias = tuple[list[str], list[tuple[str, ...]]]
"""Headings and rows."""


def runs_table(result: BenchmarkResult, subjects: Sequence[SubjectResult]) -> Table:
    """Return how long runs take."""
    columns = ["what", "min>", "median>", "p90>", "p99>", "runs>", "per second>"]
    rows: list[tuple[str, ...]] = []
    for subject in subjects:
        latency = subject.latency
        assert latency is not None  # the caller has seen to it
        times = (latency.min_ms, latency.median_ms, latency.p90_ms, latency.p99_ms)
        row = (label_of(result, subject), *map(milliseconds, times), str(latency.runs))
        rows.append((*row, f"{subject.per_second:,.1f}"))
    return columns, rows


def ratios_table(result: BenchmarkResult, subjects: Sequence[SubjectResult]) -> Table:
    """Build the table of subjects' speed by the baseline's; no rows without a difference."""
    rows: list[tuple[str, ...]] = []
    for subject in subjects:
        ratio = subject.ratio
        if ratio is None or math.isnan(ratio.value):
            continue
        is_known = not math.isinf(ratio.high)
        ends = (_times(ratio.low), _times(ratio.high)) if is_known else ("", "")
        rows.append((label_of(result, subject), _times(ratio.value), *ends, ratio.verdict))
    return ["what", "times>", "from>", "to>", "shows"], rows


def costs_table(result: BenchmarkResult, subjects: Sequence[SubjectResult]) -> Table:
    """Build the table of costs of loading and memory."""
    columns = ["what", "first load>", "load>", "first run>", "peak>", "weights>", "arena>", "busy>"]
    rows: list[tuple[str, ...]] = []
    for subject in subjects:
        memory = subject.memory
        rows.append(
            (
                label_of(result, subject),
                milliseconds(subject.load_ms[0]),
                milliseconds(median(subject.load_ms[1:])) if len(subject.load_ms) > 1 else "",
                milliseconds(median(subject.first_ms)),
                _mebibytes(memory.peak_bytes if memory else None),
                _mebibytes(memory.weights_bytes if memory else None),
                _mebibytes(memory.arena_bytes if memory else None),
                f"{subject.processors:.2f}",
            )
        )
    return columns, rows


def layers_table(subject: SubjectResult, most: int) -> Table:
    """Build the table of layers' limits, the slowest first; the others are one row."""
    names = short_names([layer.name for layer in subject.layers])
    rows = [_layer_row(layer, names[layer.name]) for layer in subject.layers[:most]]
    rest = subject.layers[most:]
    if rest:
        share = f"{sum(layer.share for layer in rest):.1%}"
        time_us = f"{sum(layer.time_us for layer in rest):.1f}"
        rows.append((share, time_us, "", "", "", "", "", f"{len(rest)} more"))
    columns = ["share>", "us>", "Mop>", "KiB>", "limit", "reached>", "operation", "layer"]
    return columns, rows


def _print_layers(printer: Printer, result: BenchmarkResult, subject: SubjectResult) -> None:
    """Print what limits the layers of a subject."""
    shown = min(len(subject.layers), _MOST_LAYERS)
    label = label_of(result, subject)
    printer.heading(f"Layers of {label}: what limits them ({shown} of {len(subject.layers)})")
    printer.table(*layers_table(subject, _MOST_LAYERS))
    limits: dict[str, float] = {}
    for layer in subject.layers:
        limits[layer.limit] = limits.get(layer.limit, 0.0) + layer.share
    ordered = sorted(limits.items(), key=lambda item: -item[1])
    printer.line("time by limit: " + ", ".join(f"{name} {part:.0%}" for name, part in ordered))


def _layer_row(layer: LayerCost, name: str) -> tuple[str, ...]:
    """A line of the table of layers."""
    is_known = layer.compute_us > 0 or layer.memory_us > 0
    return (
        f"{layer.share:.1%}",
        f"{layer.time_us:.1f}",
        f"{layer.operations / 1e6:.2f}",
        f"{layer.size_bytes / _KIB:.0f}",
        layer.limit,
        f"{layer.reached:.0%}" if is_known else "",
        layer.operation,
        name,
    )


def milliseconds(number: float) -> str:
    """A time with as many digits as are worth reading."""
    if number < 0.1:
        digits = 4
    elif number < 10:
        digits = 3
    elif number < 100:
        digits = 2
    else:
        digits = 1
    return f"{number:.{digits}f}"


def _times(number: float) -> str:
    """A ratio; a small one as a fraction."""
    return f"{number:.3g}" if number >= _SMALL else f"1/{1 / number:.3g}"


def _mebibytes(size: int | None) -> str:
    """A size; empty if not known."""
    return "" if size is None else f"{size / _MIB:.1f}"
