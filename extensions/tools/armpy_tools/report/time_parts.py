"""Time of executions and loading: parts of a report, each of which adds up to 100 %."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from armpy.core.units import count_text, percent_text, time_text
from armpy.profiling import EventKind
from armpy_tools.pages import (
    Bar,
    Bars,
    Details,
    Facts,
    Lines,
    Part,
    Series,
    Stack,
    Table,
    Text,
)
from armpy_tools.report.layers import LayerRow, LayerRows

if TYPE_CHECKING:
    from armpy.profiling import Profiler, Share, Summary

OVERHEAD, WAITING = "overhead", "waiting"
_MOST_SLICES = 9
"""Kinds of operations with a part of the bar of their own; the others share one."""


def time_parts(profiler: Profiler, summary: Summary, known: LayerRows) -> list[Part]:
    """Where the time of executions goes.

    Parameters
    ----------
    summary : Summary
        Of `profiler`; of at least one execution.
    known : LayerRows
        The layers, for their names.
    """
    runs = max(summary.num_executions, 1)
    durations = [e.duration_us for e in profiler.events if e.kind is EventKind.EXECUTION]
    parts: list[Part] = [
        Facts(
            [
                ("runs that were profiled", str(summary.num_executions)),
                ("mean of one run", time_text(summary.wall_ns / 1e3 / runs)),
                ("median of a run", time_text(median(durations)) if durations else "-"),
                ("shortest and longest run", _range_text(durations)),
                ("in layers", _share_text(summary.layers, summary)),
                (OVERHEAD, _share_text(summary.overhead, summary)),
                (WAITING, _share_text(summary.waiting, summary)),
            ]
        )
    ]
    if summary.num_dropped:
        parts.append(Text(f"{summary.num_dropped} events were not kept.", "note"))
    kinds = [*_by_kind(summary, known), *summary.overhead, *summary.waiting]
    layers = [*summary.layers, *summary.overhead, *summary.waiting]
    parts += [
        Stack("Time by kind of layer, with overhead and waiting: 100 %", _slices(kinds, runs)),
        _bars("Time of one run by kind of layer", "kind", kinds, summary, None),
        _bars("Time of one run by layer", "layer", layers, summary, known),
        _in_order(known.rows),
        Details("Every layer with what is known of it", [_table(known.rows)]),
    ]
    if len(durations) > 1:
        numbers = [float(n + 1) for n in range(len(durations))]
        series = [Series("run", numbers, [us / 1e3 for us in durations])]
        parts.append(Lines("Run by run", series, "run", "ms"))
    return parts


def loading_parts(summary: Summary) -> list[Part]:
    """Where the time of loading goes."""
    if not summary.load_ns:
        return []
    shares = summary.load
    bars = [
        Bar(
            share.name,
            share.total_us,
            f"{time_text(share.total_us)}, {percent_text(share.total_ns / summary.load_ns)}",
            share.backend or "armpy",
        )
        for share in shares
    ]
    caption = f"Loading and preparing took {time_text(summary.load_ns / 1e3)}: 100 %"
    return [Bars(caption, bars, "phase", "time")]


def _range_text(durations: Sequence[float]) -> str:
    """The ends of a range."""
    return f"{time_text(min(durations))} to {time_text(max(durations))}" if durations else "-"


def _share_text(shares: Iterable[Share], summary: Summary) -> str:
    """All of some shares together, as part of the whole."""
    return percent_text(sum(share.total_ns for share in shares) / (summary.wall_ns or 1))


def _by_kind(summary: Summary, known: LayerRows) -> list[Share]:
    """The time of layers by the file's kinds of operators, and backends."""
    found: dict[tuple[str, str], Share] = {}
    for share in summary.layers:
        key = (known.kind(share), share.backend)
        whole = found.setdefault(key, replace(share, name=key[0], count=0, total_ns=0, details={}))
        whole.count += share.count
        whole.total_ns += share.total_ns
    return list(found.values())


def _slices(shares: Sequence[Share], runs: int) -> list[Bar]:
    """Parts of the whole; kinds that take little share the last one."""
    ordered = sorted(shares, key=lambda share: -share.total_ns)
    shown, others = ordered[:_MOST_SLICES], ordered[_MOST_SLICES:]
    bars = [Bar(_kind_name(s), s.total_us / runs, time_text(s.total_us / runs)) for s in shown]
    if others:
        rest = sum(share.total_us for share in others) / runs
        bars.append(Bar(f"{len(others)} others", rest, time_text(rest)))
    return bars


def _kind_name(share: Share) -> str:
    """A share with its backend."""
    return f"{share.name} ({share.backend})" if share.backend else share.name


def _bars(
    caption: str, label: str, shares: Sequence[Share], summary: Summary, known: LayerRows | None
) -> Bars:
    """A bar for each share, the longest first."""
    runs = max(summary.num_executions, 1)
    bars = [
        Bar(
            share.name if known is None else known.title(share),
            share.total_us / runs,
            f"{time_text(share.total_us / runs)}, "
            f"{percent_text(share.total_ns / (summary.wall_ns or 1))}",
            share.backend or "armpy",
        )
        for share in sorted(shares, key=lambda share: -share.total_ns)
    ]
    return Bars(f"{caption}: 100 %", bars, label, "time", shown=20)


def _in_order(rows: Sequence[LayerRow]) -> Lines:
    """The profile of a run: what each layer takes, in order."""
    timed = [(n, row) for n, row in enumerate(rows) if row.time_us is not None]
    seen: set[tuple[str, ...]] = set()
    xs, ys, labels = [], [], []
    for number, row in timed:
        group = tuple(sorted((row.short, *row.company)))
        if group in seen:
            continue
        seen.add(group)
        xs.append(float(number))
        ys.append(row.time_us or 0.0)
        labels.append(row.title)
    series = [Series("layer", xs, ys, labels)]
    return Lines("A run, layer by layer in order", series, "layer", "us", has_points=True)


def _table(rows: Sequence[LayerRow]) -> Table:
    """All layers."""
    columns = [
        "number>", "layer", "operation", "shape", "precision", "backend", "us>", "operations>",
        "per ns>", "KiB moved>", "KiB weights>", "with",
    ]  # fmt: skip
    lines = [
        (
            number,
            row.short,
            row.facts.operator,
            row.shape,
            row.facts.type,
            row.where,
            "" if row.time_us is None else f"{row.time_us:.2f}",
            count_text(row.facts.operations),
            _rate(row),
            f"{row.facts.bytes_moved / 1024:.1f}",
            f"{row.facts.parameter_bytes / 1024:.1f}",
            f"{len(row.company)} more" if row.company else "",
        )
        for number, row in enumerate(rows)
    ]
    return Table("Layers in order", columns, lines)


def _rate(row: LayerRow) -> str:
    """Operations per nanosecond, of a layer that is computed by itself."""
    if not row.time_us or row.company:
        return ""
    return f"{row.facts.operations / row.time_us / 1e3:.3g}"
