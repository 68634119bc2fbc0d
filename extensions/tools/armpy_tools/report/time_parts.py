"""Time of executions and loading: parts of a report, each of which adds up to 100 %."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass
from armpy.core.units import count_text, percent_text, time_text
from armpy_conformance.pages import (
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
    from armpy.profiling import Share, Summary

OVERHEAD, WAITING = "overhead", "waiting"
_MOST_SLICES = 9
"""Kinds of operations with a part of the bar of their own; the others share one."""


def time_parts(summary: Summary, known: LayerRows) -> list[Part]:
    """Return the page's parts of the time of executions.

    Parameters
    ----------
    summary : Summary
        Of at least one execution.
    known : LayerRows
        The layers, for their names.
    """
    durations = [time_ns / 1000 for time_ns in summary.run_ns]
    around = [TimePart.of(s, summary) for s in (*summary.overhead, *summary.waiting)]
    layers = [TimePart.of(share, summary, known.title(share)) for share in summary.layers]
    kinds = [*_by_kind(summary, known), *around]
    parts: list[Part] = [
        Facts(
            [
                ("runs that were profiled", str(summary.num_executions)),
                ("shortest and longest run", _range_text(durations)),
                ("in layers", _share_text(summary.layers, summary)),
                (OVERHEAD, _share_text(summary.overhead, summary)),
                (WAITING, _share_text(summary.waiting, summary)),
            ]
        ),
        Text(
            "Times of layers are medians of all runs. Their sum, which charts call 100 %, is near "
            "the median of a run."
        ),
    ]
    if summary.num_dropped:
        parts.append(Text(f"{summary.num_dropped} events were not kept.", "note"))
    parts += [
        _bars("Time of one run by kind of layer", "kind", kinds),
        _bars("Time of one run by layer", "layer", [*layers, *around]),
        _in_order(known.rows),
        Details("Every layer with its figures", [_table(known.rows)]),
    ]
    if len(durations) > 1:
        numbers = [float(n + 1) for n in range(len(durations))]
        series = [Series("run", numbers, [us / 1e3 for us in durations])]
        parts.append(Lines("Run by run", series, "run", "ms"))
    return parts


def loading_parts(summary: Summary) -> list[Part]:
    """Return the page's parts of the time of loading."""
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


@dataclass(slots=True)
class TimePart:
    """A part of the time of one run."""

    name: str
    backend: str  # empty for armpy itself
    time_us: float  # median

    @classmethod
    def of(cls, share: Share, summary: Summary, name: str = "") -> TimePart:
        """The part that a profile has as a share."""
        time_us = share.quartiles_us(summary.num_executions).median
        return cls(name or share.name, share.backend, time_us)


def kind_stack(summary: Summary, known: LayerRows) -> Stack:
    """Draw the time of a run by kind of layer: the picture of the first screen."""
    around = [TimePart.of(share, summary) for share in (*summary.overhead, *summary.waiting)]
    parts = [*_by_kind(summary, known), *around]
    whole_us = sum(part.time_us for part in parts)
    return Stack(
        f"Where the time of a run goes ({time_text(whole_us)})",
        _slices(parts, {share.name for share in summary.overhead}),
    )


def _by_kind(summary: Summary, known: LayerRows) -> list[TimePart]:
    """The time of layers by the file's kinds of operators, and backends."""
    by_kind: dict[tuple[str, str], TimePart] = {}
    for share in summary.layers:
        part = TimePart.of(share, summary, known.kind(share))
        whole = by_kind.setdefault(
            (part.name, part.backend), TimePart(part.name, part.backend, 0.0)
        )
        whole.time_us += part.time_us
    return list(by_kind.values())


def _slices(parts: Sequence[TimePart], greys: Collection[str]) -> list[Bar]:
    """Parts of the whole; kinds that take little share the last one."""
    ordered = sorted(parts, key=lambda part: -part.time_us)
    shown, others = ordered[:_MOST_SLICES], ordered[_MOST_SLICES:]
    has_one_backend = len({part.backend for part in parts if part.backend}) == 1
    bars = [
        Bar(
            part.name if has_one_backend else _kind_name(part),
            part.time_us,
            time_text(part.time_us),
            is_grey=part.name in greys,
        )
        for part in shown
    ]
    if others:
        rest = sum(part.time_us for part in others)
        bars.append(Bar(f"{len(others)} others", rest, time_text(rest)))
    return bars


def _kind_name(part: TimePart) -> str:
    """A part with its backend."""
    return f"{part.name} ({part.backend})" if part.backend else part.name


def _bars(caption: str, label: str, parts: Sequence[TimePart]) -> Bars:
    """A bar for each part, the longest first."""
    whole = sum(part.time_us for part in parts) or 1.0
    bars = [
        Bar(
            part.name,
            part.time_us,
            f"{time_text(part.time_us)}, {percent_text(part.time_us / whole)}",
            part.backend or "armpy",
        )
        for part in sorted(parts, key=lambda part: -part.time_us)
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
    return Lines("A run, layer by layer in order", series, "layer", "µs", has_points=True)


def _table(rows: Sequence[LayerRow]) -> Table:
    """All layers."""
    columns = [
        "number>", "layer", "operation", "shape", "type", "backend", "median µs>", "quartiles µs>",
        "operations>", "per ns>", "KiB moved>", "KiB weights>", "with",
    ]  # fmt: skip
    lines = [
        (
            number,
            row.short,
            row.facts.operator,
            row.shape,
            row.type,
            row.where,
            "" if row.quartiles_us is None else f"{row.quartiles_us.median:.2f}",
            "" if row.quartiles_us is None else "{:.2f} to {:.2f}".format(*row.quartiles_us[::2]),
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
