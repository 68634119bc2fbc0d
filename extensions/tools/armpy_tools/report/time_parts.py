"""Time of executions and loading: parts of a report, each of which adds up to 100 %."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass
from armpy.core.units import count_text, percent_text, time_text
from armpy.profiling import short_names
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
from armpy_tools.report.name_groups import name_groups
from armpy_tools.report.run_times import RunTimes

if TYPE_CHECKING:
    from armpy.profiling import Share, Summary

OVERHEAD, WAITING = "overhead", "waiting"
_FEWEST_GROUPS = 3
_MOST_SLICES = 9
"""Kinds of operations with a part of the bar of their own; the others share one."""


def time_parts(times: RunTimes, known: LayerRows) -> list[Part]:
    """Return the page's parts of the time of executions.

    Parameters
    ----------
    times : RunTimes
        The time of a run.
    known : LayerRows
        The layers, for their names.
    """
    summary = times.summary
    durations = [time_ns / 1000 for time_ns in summary.run_ns]
    around = [TimePart.of(share, times) for share in times.around]
    layers = [TimePart.of(share, times, known.title(share)) for share in summary.layers]
    kinds = [*_by_kind(times, known), *around]
    parts: list[Part] = [
        Facts(
            [
                ("a run", f"{time_text(times.whole_us)}, {times.basis}"),
                ("runs that were profiled", str(summary.num_executions)),
                ("shortest and longest run", _range_text(durations)),
                ("in layers", _share_text(summary.layers, times)),
                (OVERHEAD, _share_text(summary.overhead, times)),
                (WAITING, _share_text(summary.waiting, times)),
            ]
        ),
    ]
    if summary.num_dropped:
        parts.append(Text(f"{summary.num_dropped} events were not kept.", "note"))
    parts += [
        _bars("Time of one run by kind of layer", "kind", kinds, times),
        *_folded(times, known),
        _bars("Time of one run by layer", "layer", [*layers, *around], times),
        _in_order(known.rows),
        Details("Every layer with its figures", [_table(known.rows)]),
    ]
    if len(durations) > 1:
        numbers = [float(n + 1) for n in range(len(durations))]
        series = [Series("run", numbers, [us / 1e3 for us in durations])]
        parts.append(Lines("Run by run", series, "run", "ms"))
    return parts


def _folded(times: RunTimes, known: LayerRows) -> list[Bars]:
    """The time of layers, folded by what their names begin with; nothing where that says little."""
    shares = [share for share in times.summary.layers if share.layer]
    paths = [known.path(share) for share in shares]
    short = short_names(paths, longest=1000)
    by_name: dict[str, list[Share]] = {}
    for share, path in zip(shares, paths, strict=True):
        by_name.setdefault(short[path], []).append(share)
    groups = name_groups({name: sum(map(times.time_us, s)) for name, s in by_name.items()})
    if not _FEWEST_GROUPS <= len(groups) < len(by_name):
        return []
    nameless = [share for share in times.summary.layers if not share.layer]
    bars = [_share_bar(share, times, known) for share in (*nameless, *times.around)]
    for group in groups:
        inside = [
            _share_bar(share, times, known) for name in group.names for share in by_name[name]
        ]
        bars.append(inside[0] if len(inside) == 1 else _group_bar(group.prefix, inside, times))
    bars.sort(key=lambda bar: -bar.value)
    caption = "Time of one run by the beginning of layers' names"
    return [Bars(caption, bars, "name", "time", shown=20)]


def _share_bar(share: Share, times: RunTimes, known: LayerRows) -> Bar:
    """The bar of a layer, or of what is around layers."""
    time_us, name = times.time_us(share), known.title(share)
    return Bar(name, time_us, _time_and_share(time_us, times), share.backend or "armpy")


def _group_bar(prefix: str, inside: Sequence[Bar], times: RunTimes) -> Bar:
    """The bar of layers whose names begin alike."""
    backends = dict.fromkeys(bar.group for bar in inside)
    name = f"{prefix.rstrip('/._:') or 'all'} ({len(inside)} layers)"
    time_us = sum(bar.value for bar in inside)
    backend = next(iter(backends)) if len(backends) == 1 else "several"
    return Bar(name, time_us, _time_and_share(time_us, times), backend, inside=inside)


def _time_and_share(time_us: float, times: RunTimes) -> str:
    return f"{time_text(time_us)}, {percent_text(time_us / (times.whole_us or 1.0))}"


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
    caption = f"Loading and preparing took {time_text(summary.load_ns / 1e3)}"
    return [Bars(caption, bars, "phase", "time")]


def _range_text(durations: Sequence[float]) -> str:
    """The ends of a range."""
    return f"{time_text(min(durations))} to {time_text(max(durations))}" if durations else "-"


def _share_text(shares: Iterable[Share], times: RunTimes) -> str:
    """All of some shares together, as part of the whole."""
    return percent_text(sum(map(times.time_us, shares)) / (times.whole_us or 1.0))


@dataclass(slots=True)
class TimePart:
    """A part of the time of one run."""

    name: str
    backend: str  # empty for armpy itself
    time_us: float

    @classmethod
    def of(cls, share: Share, times: RunTimes, name: str = "") -> TimePart:
        """The part that a profile has as a share."""
        return cls(name or share.name, share.backend, times.time_us(share))


def kind_stack(times: RunTimes, known: LayerRows) -> Stack:
    """Draw the time of a run by kind of layer: the picture of the first screen."""
    around = [TimePart.of(share, times) for share in times.around]
    return Stack(
        f"Where the time of a run goes ({time_text(times.whole_us)})",
        _slices([*_by_kind(times, known), *around], {s.name for s in times.summary.overhead}),
    )


def _by_kind(times: RunTimes, known: LayerRows) -> list[TimePart]:
    """The time of layers by the file's kinds of operators, and backends."""
    by_kind: dict[tuple[str, str], TimePart] = {}
    for share in times.summary.layers:
        part = TimePart.of(share, times, known.kind(share))
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


def _bars(caption: str, label: str, parts: Sequence[TimePart], times: RunTimes) -> Bars:
    """A bar for each part of a run, the longest first."""
    bars = [
        Bar(
            part.name,
            part.time_us,
            _time_and_share(part.time_us, times),
            part.backend or "armpy",
        )
        for part in sorted(parts, key=lambda part: -part.time_us)
    ]
    return Bars(caption, bars, label, "time", shown=20)


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
        "number>", "layer", "operation", "shape", "type", "backend", "µs>",
        "quartiles of all runs, µs>", "operations>", "per ns>", "KiB moved>", "KiB weights>",
        "with",
    ]  # fmt: skip
    lines = [
        (
            number,
            row.short,
            row.facts.operator,
            row.shape,
            row.type,
            row.where,
            "" if row.time_us is None else f"{row.time_us:.2f}",
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
