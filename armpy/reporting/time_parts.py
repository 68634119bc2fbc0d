"""Where time goes: parts of a report, each of which adds up to 100 %."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING

from armpy.pages import Bar, Bars, Details, Facts, Lines, Part, Series, Stack, Table, Text
from armpy.profiling import EventKind
from armpy.reporting.layers import TOGETHER, LayerRow, members_of
from armpy.reporting.units import count_text, percent_text, time_text

if TYPE_CHECKING:
    from armpy.profiling import Profiler, Share, Summary

OVERHEAD, WAITING = "overhead", "waiting"
_MOST_SLICES = 9
"""Kinds of operations with a part of the bar of their own; the others share one."""


def time_parts(profiler: Profiler, summary: Summary, rows: Sequence[LayerRow]) -> list[Part]:
    """Where the time of executions goes.

    Parameters
    ----------
    profiler : Profiler
    summary : Summary
        Of `profiler`; of at least one execution.
    rows : sequence of LayerRow
        The layers, for their short names.
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
    kinds = [*summary.operations, *summary.overhead, *summary.waiting]
    shorts = {row.name: row.short for row in rows}
    layers = [*summary.layers, *summary.overhead, *summary.waiting]
    parts += [
        Stack("Time by kind of layer, with overhead and waiting: 100 %", _slices(kinds, runs)),
        _bars("Time of one run by kind of layer", "kind", kinds, summary, {}),
        _bars("Time of one run by layer", "layer", layers, summary, shorts),
        _in_order(rows),
        Details("Every layer with what is known of it", [_table(rows)]),
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
    caption: str, label: str, shares: Sequence[Share], summary: Summary, shorts: dict[str, str]
) -> Bars:
    """A bar for each share, the longest first."""
    runs = max(summary.num_executions, 1)
    bars = [
        Bar(
            _layer_name(share, shorts),
            share.total_us / runs,
            f"{time_text(share.total_us / runs)}, "
            f"{percent_text(share.total_ns / (summary.wall_ns or 1))}",
            share.backend or "armpy",
        )
        for share in sorted(shares, key=lambda share: -share.total_ns)
    ]
    return Bars(f"{caption}: 100 %", bars, label, "time", shown=20)


def _layer_name(share: Share, shorts: dict[str, str]) -> str:
    """A layer's operation and short name."""
    members = members_of(share.layer, shorts) if share.layer else []
    if not members:
        return share.name
    inside = share.layer != TOGETHER.join(members)
    short = share.layer if inside else TOGETHER.join(shorts[name] for name in members)
    return f"{share.operation} {short}"


def _in_order(rows: Sequence[LayerRow]) -> Lines:
    """The profile of a run: what each layer takes, in order."""
    timed = [(n, row) for n, row in enumerate(rows) if row.time_us is not None]
    seen: set[tuple[str, ...]] = set()
    xs, ys, labels = [], [], []
    for number, row in timed:
        group = tuple(sorted((row.name, *row.company)))
        if group in seen:
            continue
        seen.add(group)
        xs.append(float(number))
        ys.append(row.time_us or 0.0)
        labels.append(f"{row.operation} {row.short}")
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
            row.operation,
            row.shape,
            row.precision,
            row.backend,
            "" if row.time_us is None else f"{row.time_us:.2f}",
            count_text(row.operations),
            _rate(row),
            f"{row.bytes_moved / 1024:.1f}",
            f"{row.weight_bytes / 1024:.1f}",
            f"{len(row.company)} more" if row.company else "",
        )
        for number, row in enumerate(rows)
    ]
    return Table("Layers in order", columns, lines)


def _rate(row: LayerRow) -> str:
    """Operations per nanosecond, of a layer that is computed by itself."""
    if not row.time_us or row.company:
        return ""
    return f"{row.operations / row.time_us / 1e3:.3g}"
