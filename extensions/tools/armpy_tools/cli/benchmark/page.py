"""The page that `armpy benchmark --html` writes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

import armpy
from armpy.cli.files import write_text
from armpy.core.units import number_text, time_text
from armpy_tools.benchmark import BenchmarkResult, Ratio, SubjectResult
from armpy_tools.cli.benchmark.report import (
    costs_table,
    how_measured,
    label_of,
    layers_table,
    runs_table,
)
from armpy_tools.measure.limits import UNKNOWN
from armpy_tools.pages import (
    Bar,
    Bars,
    Cautions,
    Details,
    Facts,
    Lines,
    Section,
    Series,
    Stack,
    Table,
    Text,
    render_page,
)

_FAR_APART = 20
"""Times that differ more are drawn on a logarithmic axis, on which the short ones are seen."""


def write_page(path: str, result: BenchmarkResult) -> None:
    """Write what a benchmark has found as one page.

    Raises
    ------
    InvalidArgumentError
        If the file cannot be written.
    """
    done = [subject for subject in result.subjects if subject.latency is not None]
    sections = [Section("Overview", [*_overview(result)])]
    if done:
        sections.append(Section("Warm runs", [*_runs(result, done)]))
        sections.append(Section("Loading and memory", [*_costs(result, done)]))
    layered = [subject for subject in done if subject.layers]
    if layered:
        parts = [part for subject in layered for part in _layers(result, subject)]
        sections.append(Section("What limits layers", parts))
    models = list(dict.fromkeys(subject.subject.model for subject in result.subjects))
    title = models[0].rpartition("/")[2] if len(models) == 1 else f"{len(models)} models"
    about = f"armpy {armpy.__version__}"
    write_text(path, render_page(f"Benchmark of {title}", sections, about=about))


def _overview(result: BenchmarkResult) -> Iterator[Facts | Text | Bars | Cautions]:
    """The result in a line, what endangers it, the comparison, and how it was measured."""
    machine, plan = result.machine, result.plan
    if line := in_a_line(result):
        yield Text(line, "lead")
    yield Cautions(
        [
            *result.notes,
            *(f"{label_of(result, s)}: {note}." for s in result.subjects for note in s.notes),
        ]
    )
    for subject in result.subjects:
        if subject.failure:
            yield Text(f"{label_of(result, subject)} failed: {subject.failure}", "bad")
    compared = [s for s in result.subjects if s.ratio is not None and s.ratio.units > 0]
    if compared:
        baseline = result.subjects[plan.baseline]
        bars = [Bar(label_of(result, baseline), 1.0, "1, the baseline")]
        for subject in compared:
            ratio = subject.ratio
            assert ratio is not None  # these have one
            is_known = ratio.high < float("inf")
            interval = (ratio.low, ratio.high) if is_known else None
            name = label_of(result, subject)
            bars.append(Bar(name, ratio.value, _speed(ratio), interval=interval))
        yield Bars("Times as fast as the baseline, with intervals of 95 %", bars, "what", "times")
    facts = [
        ("machine", f"{machine.description}; {machine.processors} may be used"),
        ("measured", how_measured(result)),
        ("took", f"{result.seconds:.1f} s"),
    ]
    if machine.others is not None:
        facts.append(("other processes", f"kept {machine.others:.1f} processors busy meanwhile"))
    yield Facts(facts)


def in_a_line(result: BenchmarkResult) -> str:
    """The result in a sentence: what a run takes, and which is how much faster; empty if none ran.

    Notes
    -----
    Of two it has both times; of more, those of the baseline and of the quickest one beside it.
    """
    done = {id(s): s.latency.median_ms for s in result.subjects if s.latency is not None}
    texts = {key: time_text(1000 * median_ms) for key, median_ms in done.items()}
    ran = [subject for subject in result.subjects if id(subject) in done]
    if not ran:
        return ""
    baseline = result.subjects[result.plan.baseline]
    others = [subject for subject in ran if subject is not baseline]
    if id(baseline) not in done or not others:
        first, *more = ran
        line = f"{first.name} takes {texts[id(first)]}"
        return ", ".join([line, *(f"{s.name} {texts[id(s)]}" for s in more)]) + " a run."
    other = min(others, key=lambda subject: done[id(subject)])
    line = f"{baseline.name} takes {texts[id(baseline)]} a run"
    if len(others) > 1:
        line += f"; {other.name}, the quickest of {len(others)} others, {texts[id(other)]}"
    else:
        line += f", {other.name} {texts[id(other)]}"
    ratio = other.ratio
    if ratio is None or math.isnan(ratio.value):
        return f"{line}."
    subject = "the second" if other.name == baseline.name else other.name
    return f"{line}: {subject} is {_speed(ratio)}."


def _speed(ratio: Ratio) -> str:
    """How much faster or slower, with the interval, in words."""
    if ratio.verdict not in ("faster", "slower"):
        return f"{number_text(ratio.value)} times as fast ({ratio.verdict})"
    value, low, high = ratio.value, ratio.low, ratio.high
    if value < 1:
        value, low, high = 1 / value, 1 / high, 1 / low if low else math.inf
    if math.isinf(high) or not low:
        return f"{number_text(value)} times {ratio.verdict}"
    return f"{number_text(value)} times {ratio.verdict} ({number_text(low)} to {number_text(high)})"


def _runs(
    result: BenchmarkResult, subjects: Sequence[SubjectResult]
) -> Iterator[Bars | Table | Lines]:
    """Describe the times of runs."""
    bars = [
        Bar(label_of(result, s), s.latency.median_ms, time_text(1000 * s.latency.median_ms))
        for s in subjects
        if s.latency is not None
    ]
    yield Bars("Median of a run", bars, "what", "time")
    columns, rows = runs_table(result, subjects)
    yield Table("All figures, in milliseconds", columns, rows)
    series = []
    for subject in subjects:
        every = [1000 * duration for turns in subject.turns_ms for duration in turns]
        numbers = [float(number + 1) for number in range(len(every))]
        series.append(Series(label_of(result, subject), numbers, every))
    if any(len(line.xs) > 1 for line in series):
        medians = [median(line.ys) for line in series if line.ys]
        is_log = max(medians) > _FAR_APART * min(medians)
        yield Lines("Medians of turns, in order", series, "turn", "µs", is_log=is_log)


def _costs(result: BenchmarkResult, subjects: Sequence[SubjectResult]) -> Iterator[Bars | Table]:
    """Describe the costs of loading and memory."""
    loads = [(s, median(s.load_ms[1:] or s.load_ms)) for s in subjects]
    bars = [Bar(label_of(result, s), ms, time_text(1000 * ms)) for s, ms in loads]
    yield Bars("Load, after the first one", bars, "what", "time")
    columns, rows = costs_table(result, subjects)
    yield Table("Loading in milliseconds, memory in MiB, processors busy", columns, rows)
    placed = [(label_of(result, s), s.placement) for s in subjects if s.placement]
    if placed:
        yield Table("Placement", ["what", "placement"], placed)


def _layers(result: BenchmarkResult, subject: SubjectResult) -> Iterator[Stack | Details | Table]:
    """Describe the limits of a subject's layers."""
    limits: dict[str, float] = {}
    for layer in subject.layers:
        limits[layer.limit] = limits.get(layer.limit, 0.0) + layer.time_us
    bars = [
        Bar(name, us, time_text(us), is_grey=name == UNKNOWN) for name, us in sorted(limits.items())
    ]
    yield Stack(f"{label_of(result, subject)}: time by limit", bars)
    columns, rows = layers_table(subject, len(subject.layers))
    yield Details("All layers", [Table(f"Layers of {subject.name}", columns, rows)])
