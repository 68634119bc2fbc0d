"""Reports and tables of profiles: slowest steps, all time by its parts, changes between two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TypeAlias

from armpy.cli.printer import Printer
from armpy.core.dataclass import dataclass
from armpy.core.units import counted
from armpy.profiling import (
    Change,
    Comparison,
    CounterValue,
    Share,
    Summary,
    short_names,
)

_KIB = 1024
_Row: TypeAlias = tuple[str, ...]

MOST_LAYERS = 15
"""Of a profile; the JSON document has all."""

_SMALL = 0.01
"""Share of the time below which parts are one row together, unless they are but a few."""

_FEWEST_TOGETHER = 2


@dataclass(frozen=True, slots=True)
class PartReport:
    """A part of the time."""

    name: str
    backend: str
    total_us: float  # all executions together
    share: float  # of the time of all executions, or of loading
    count: int = 0  # how often it was done
    # Of a layer; empty for other events.
    operation: str = ""
    layer: str = ""
    # The layer's name without what all have in front; distinct among the layers.
    short_name: str = ""
    # Sums of what its backend says about it; see `armpy.backend.Measurement`.
    details: dict[str, float] = field(default_factory=dict)
    # Of one execution: the first quartile, the median and the third quartile.
    quartiles_us: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class CounterReport:
    """Value of a backend's counter, all executions together."""

    name: str
    backend: str
    unit: str
    value: float


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """Division of all time of a profile; see `armpy.profiling.Summary`."""

    runs: int
    wall_ms: float  # all executions added up: operations, overhead and waiting make 100 % of it
    layers: tuple[PartReport, ...]
    operations: tuple[PartReport, ...]
    overhead: tuple[PartReport, ...]
    waiting: tuple[PartReport, ...]
    load_ms: float
    load: tuple[PartReport, ...]  # phases of loading
    counters: tuple[CounterReport, ...] = ()
    dropped: int = 0  # events for which there was no room
    # Of one execution: the first quartile, the median and the third quartile.
    quartiles_ms: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @classmethod
    def of(cls, summary: Summary, counters: Iterable[CounterValue] = ()) -> ProfileReport:
        """Split all of the time of a profile into parts."""
        wall_ns, runs = summary.wall_ns, summary.num_executions
        low, median, high = summary.run_us
        return cls(
            summary.num_executions,
            wall_ns / 1e6,
            _parts(summary.layers, wall_ns, runs),
            _parts(summary.operations, wall_ns, runs),
            _parts(summary.overhead, wall_ns, runs),
            _parts(summary.waiting, wall_ns, runs),
            summary.load_ns / 1e6,
            _parts(summary.load, summary.load_ns, 1),
            tuple(CounterReport(c.name, c.backend, c.unit, c.value) for c in counters),
            summary.num_dropped,
            (low / 1000, median / 1000, high / 1000),
        )


def _parts(shares: Iterable[Share], whole_ns: int, runs: int) -> tuple[PartReport, ...]:
    shares = list(shares)
    short = short_names(share.layer for share in shares if share.layer)
    return tuple(
        PartReport(
            s.name,
            s.backend,
            s.total_us,
            s.total_ns / whole_ns if whole_ns else 0.0,
            s.count,
            s.operation,
            s.layer,
            short.get(s.layer, ""),
            dict(s.details),
            s.quartiles_us(runs),
        )
        for s in shares
    )


def print_profile(
    printer: Printer, profile: ProfileReport, *, most_layers: int = MOST_LAYERS
) -> None:
    """Print where all of the time went: by kind, by layer, of loading."""
    low, median, high = (1000 * ms for ms in profile.quartiles_ms)
    printer.heading(
        f"Profile of {counted(profile.runs, 'execution')}: shares are of {profile.wall_ms:.3f} ms "
        f"of wall time, medians and quartiles of one execution ({median:.1f} us, {low:.1f} to "
        f"{high:.1f} us)"
    )
    kinds = (
        ("operation", profile.operations),
        ("overhead", profile.overhead),
        ("waiting", profile.waiting),
    )
    parts = [(kind, part) for kind, part_list in kinds for part in part_list]
    rest = _small([part for _, part in parts])
    large = [(kind, part) for kind, part in parts if part not in rest]
    rows: list[_Row] = [
        (_share([part]), *_quartile_cells(part), kind, part.backend or "armpy", part.name)
        for kind, part in large
    ]
    if rest:
        median_us = sum(part.quartiles_us[1] for part in rest)
        rows.append((_share(rest), f"{median_us:.1f}", "", "", "", f"{len(rest)} more"))
    printer.table(
        ["share>", *_QUARTILE_COLUMNS, "kind", "backend", "what"],
        [*rows, ("100.0%", *_quartile_texts(low, median, high), "all", "", "")],
    )
    if profile.layers:
        _print_layers(printer, profile, most_layers)
    _print_loading(printer, profile)
    if profile.counters:
        printer.heading("Counters")
        printer.table(
            ["value>", "unit", "backend", "counter"],
            [(f"{c.value:g}", c.unit, c.backend, c.name) for c in profile.counters],
        )
    if profile.dropped:
        printer.line(f"{profile.dropped} events were not kept; their time is their surroundings'")


_QUARTILE_COLUMNS = ("median us>", "quartiles us>")


def _small(parts: Sequence[PartReport]) -> Sequence[PartReport]:
    """The parts of less than 1 % that stand in one row; none if that row would hold one alone."""
    small = [part for part in parts if part.share < _SMALL]
    return small if len(small) >= _FEWEST_TOGETHER else []


def _quartile_cells(part: PartReport) -> _Row:
    """The median of one execution, and the range of the middle half."""
    return _quartile_texts(*part.quartiles_us)


def _quartile_texts(low: float, median: float, high: float) -> _Row:
    return f"{median:.1f}", f"{low:.1f} to {high:.1f}"


def _print_layers(printer: Printer, profile: ProfileReport, most_layers: int) -> None:
    """Print the slowest layers, and all else in a few rows."""
    runs = max(profile.runs, 1)
    num_shown = min(len(profile.layers) - len(_small(profile.layers)), most_layers)
    shown, rest = profile.layers[:num_shown], profile.layers[num_shown:]
    others = (
        (f"{len(rest)} more", rest),
        ("overhead", profile.overhead),
        ("waiting", profile.waiting),
    )
    has_details = any(part.details for part in shown)
    blank = ("",) * (3 if has_details else 0)
    rows: list[_Row] = []
    for part in shown:
        cells = _detail_cells(part, runs) if has_details else ()
        names = part.backend or "armpy", part.operation, part.short_name or part.name
        rows.append((_share([part]), *_quartile_cells(part), *cells, *names))
    for name, parts in others:
        if parts:
            median_us = sum(part.quartiles_us[1] for part in parts)
            rows.append((_share(parts), f"{median_us:.1f}", "", *blank, "", "", name))
    whole = _quartile_texts(*(1000 * ms for ms in profile.quartiles_ms))
    rows.append(("100.0%", *whole, *blank, "", "", "all"))
    printer.heading(f"Slowest layers ({len(shown)} of {len(profile.layers)})")
    columns = [
        "share>",
        *_QUARTILE_COLUMNS,
        *(["Mop>", "KiB>", "roofline>"] if has_details else []),
    ]
    printer.table([*columns, "backend", "operation", "layer"], rows)


def _print_loading(printer: Printer, profile: ProfileReport) -> None:
    if not profile.load:
        return
    printer.heading(f"Time of loading ({profile.load_ms:.1f} ms)")
    rest = _small(profile.load)
    large = [part for part in profile.load if part not in rest]
    rows = [
        (_share([part]), f"{part.total_us / 1000:.1f}", part.backend or "armpy", part.name)
        for part in large
    ]
    if rest:
        rest_ms = sum(part.total_us for part in rest) / 1000
        rows.append((_share(rest), f"{rest_ms:.1f}", "", f"{len(rest)} more"))
    printer.table(["share>", "ms>", "backend", "phase"], rows)


def _detail_cells(part: PartReport, runs: int) -> _Row:
    """Millions of operations and memory of one run, and how near to its limit a layer comes."""
    details = part.details
    roofline_us = details.get("roofline_us")
    return (
        f"{details['operations'] / runs / 1e6:.2f}" if "operations" in details else "",
        f"{details['bytes'] / runs / _KIB:.0f}" if "bytes" in details else "",
        f"{roofline_us / part.total_us:.0%}" if roofline_us is not None and part.total_us else "",
    )


def _share(parts: Iterable[PartReport]) -> str:
    """The share of the whole that some parts have together."""
    return f"{sum(part.share for part in parts):.1%}"


def print_comparison(printer: Printer, found: Comparison, *, most_layers: int) -> None:
    """Print the differences of two profiles."""
    printer.line(
        f"one execution: {found.before_us:.1f} us before, {found.after_us:.1f} us after "
        f"({_change_text(found.before_us, found.after_us)}); of "
        f"{counted(found.before_executions, 'execution')} and {found.after_executions}"
    )
    kinds = (
        ("operation", found.operations),
        ("overhead", found.overhead),
        ("waiting", found.waiting),
    )
    rows = [(kind, change) for kind, changes in kinds for change in changes]
    rows.sort(key=lambda row: -abs(row[1].difference_us))
    printer.heading("By kind, the largest change first (us of one execution)")
    times = f"{found.after_us / found.before_us:.2f}" if found.before_us else ""
    cells = [(*_numbers(c), kind, c.backend or "armpy", c.name) for kind, c in rows]
    printer.table(
        ["change>", "before>", "after>", "times>", "kind", "backend", "what"],
        [*cells, (*_microseconds(found.before_us, found.after_us), times, "all", "", "")],
    )
    shown, rest = found.layers[:most_layers], found.layers[most_layers:]
    if not shown:
        return
    short = short_names(_layer_name(change) for change in found.layers)
    layers: list[_Row] = [
        (*_numbers(c), c.backend, c.operation, short[_layer_name(c)]) for c in shown
    ]
    if rest:
        sums = sum(c.before_us for c in rest), sum(c.after_us for c in rest)
        layers.append((*_microseconds(*sums), "", "", "", f"{len(rest)} more"))
    printer.heading(f"By layer, the largest change first ({len(shown)} of {len(found.layers)})")
    printer.table(
        ["change>", "before>", "after>", "times>", "backend", "operation", "layer"], layers
    )


def _layer_name(change: Change) -> str:
    """Return a layer's own name, which follows its operation in quotes."""
    prefix = f"{change.operation} '"
    is_quoted = change.name.startswith(prefix) and change.name.endswith("'")
    return change.name[len(prefix) : -1] if is_quoted else change.name


def _numbers(change: Change) -> _Row:
    ratio = change.after_us / change.before_us if change.before_us else 0.0
    if ratio:
        times = f"{ratio:.2f}"
    elif change.before_us:
        times = "gone"
    else:
        times = "new"
    return (*_microseconds(change.before_us, change.after_us), times)


def _microseconds(before: float, after: float) -> _Row:
    return f"{after - before:+.1f}", f"{before:.1f}", f"{after:.1f}"


def _change_text(before: float, after: float) -> str:
    if not (before and after):
        return "nothing to compare"
    if after <= before:
        return f"{before / after:.2f} times as fast"
    return f"{after / before:.2f} times as slow"
