"""Reports and tables of profiles: slowest steps, all time by its parts, changes between two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from armpy.cli.printer import Printer
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


def profile_document(summary: Summary, counters: Iterable[CounterValue] = ()) -> dict[str, object]:
    """A profile as a JSON document; all times but those of loading are of executions."""
    wall_ns, runs = summary.wall_ns, summary.num_executions
    return {
        "runs": runs,
        "wall_ms": wall_ns / 1e6,
        "layers": _part_documents(summary.layers, wall_ns, runs),
        "operations": _part_documents(summary.operations, wall_ns, runs),
        "overhead": _part_documents(summary.overhead, wall_ns, runs),
        "waiting": _part_documents(summary.waiting, wall_ns, runs),
        "load_ms": summary.load_ns / 1e6,
        "load": _part_documents(summary.load, summary.load_ns, 1),
        "counters": [
            {"name": c.name, "backend": c.backend, "unit": c.unit, "value": c.value}
            for c in counters
        ],
        "dropped": summary.num_dropped,
        "quartiles_ms": [us / 1000 for us in summary.run_us],
    }


def _part_documents(shares: Sequence[Share], whole_ns: int, runs: int) -> list[dict[str, object]]:
    """Parts of a time; layers have also the names by which tables list them."""
    short = _short_layer_names(shares)
    return [
        {
            "name": share.name,
            "backend": share.backend,
            "total_us": share.total_us,
            "share": share.total_ns / (whole_ns or 1),
            "count": share.count,
            "operation": share.operation,
            "layer": share.layer,
            "short_name": short.get(share.layer, ""),
            "details": share.details,
            "quartiles_us": share.quartiles_us(runs),
        }
        for share in shares
    ]


def _short_layer_names(shares: Iterable[Share]) -> dict[str, str]:
    """Names of layers without what all have in front; they stay distinct."""
    return short_names(share.layer for share in shares if share.layer)


def print_profile(
    printer: Printer,
    summary: Summary,
    counters: Sequence[CounterValue] = (),
    *,
    most_layers: int = MOST_LAYERS,
) -> None:
    """Print where all of the time went: by kind, by layer, of loading."""
    wall_ns, runs = summary.wall_ns, summary.num_executions
    low, median, high = summary.run_us
    printer.heading(
        f"Profile of {counted(runs, 'execution')}: shares are of {wall_ns / 1e6:.3f} ms "
        f"of wall time, medians and quartiles of one execution ({median:.1f} us, {low:.1f} to "
        f"{high:.1f} us)"
    )
    kinds = (
        ("operation", summary.operations),
        ("overhead", summary.overhead),
        ("waiting", summary.waiting),
    )
    parts = [(kind, part) for kind, part_list in kinds for part in part_list]
    rest = _small([part for _, part in parts], wall_ns)
    large = [(kind, part) for kind, part in parts if part not in rest]
    rows: list[_Row] = [
        (
            _percentage([part], wall_ns),
            *_quartile_texts(*part.quartiles_us(runs)),
            kind,
            part.backend or "armpy",
            part.name,
        )
        for kind, part in large
    ]
    if rest:
        median_us = _sum_of_medians_us(rest, runs)
        rest_share = _percentage(rest, wall_ns)
        rows.append((rest_share, f"{median_us:.1f}", "", "", "", f"{len(rest)} more"))
    printer.table(
        ["share>", *_QUARTILE_COLUMNS, "kind", "backend", "what"],
        [*rows, ("100.0%", *_quartile_texts(low, median, high), "all", "", "")],
    )
    if summary.layers:
        _print_layers(printer, summary, most_layers)
    _print_loading(printer, summary)
    if counters:
        printer.heading("Counters")
        printer.table(
            ["value>", "unit", "backend", "counter"],
            [(f"{c.value:g}", c.unit, c.backend, c.name) for c in counters],
        )
    if summary.num_dropped:
        dropped = summary.num_dropped
        printer.line(f"{dropped} events were not kept; their time is their surroundings'")


_QUARTILE_COLUMNS = ("median us>", "quartiles us>")


def _small(parts: Sequence[Share], whole_ns: int) -> Sequence[Share]:
    """The parts of less than 1 % that stand in one row; none if that row would hold one alone."""
    small = [part for part in parts if part.total_ns < _SMALL * whole_ns]
    return small if len(small) >= _FEWEST_TOGETHER else []


def _quartile_texts(low: float, median: float, high: float) -> tuple[str, str]:
    """The median of one execution, and the range of the middle half."""
    return f"{median:.1f}", f"{low:.1f} to {high:.1f}"


def _sum_of_medians_us(parts: Iterable[Share], runs: int) -> float:
    return sum(part.quartiles_us(runs).median for part in parts)


def _print_layers(printer: Printer, summary: Summary, most_layers: int) -> None:
    """Print the slowest layers, and all else in a few rows."""
    wall_ns, runs = summary.wall_ns, summary.num_executions
    num_shown = min(len(summary.layers) - len(_small(summary.layers, wall_ns)), most_layers)
    shown, rest = summary.layers[:num_shown], summary.layers[num_shown:]
    others = (
        (f"{len(rest)} more", rest),
        ("overhead", summary.overhead),
        ("waiting", summary.waiting),
    )
    has_details = any(part.details for part in shown)
    blank = ("",) * (3 if has_details else 0)
    short = _short_layer_names(summary.layers)
    rows: list[_Row] = []
    for part in shown:
        times = _quartile_texts(*part.quartiles_us(runs))
        cells = _detail_cells(part, max(runs, 1)) if has_details else ()
        names = part.backend or "armpy", part.operation, short.get(part.layer, part.name)
        rows.append((_percentage([part], wall_ns), *times, *cells, *names))
    for name, parts in others:
        if parts:
            median_us = _sum_of_medians_us(parts, runs)
            share = _percentage(parts, wall_ns)
            rows.append((share, f"{median_us:.1f}", "", *blank, "", "", name))
    rows.append(("100.0%", *_quartile_texts(*summary.run_us), *blank, "", "", "all"))
    printer.heading(f"Slowest layers ({len(shown)} of {len(summary.layers)})")
    columns = [
        "share>",
        *_QUARTILE_COLUMNS,
        *(["Mop>", "KiB>", "roofline>"] if has_details else []),
    ]
    printer.table([*columns, "backend", "operation", "layer"], rows)


def _print_loading(printer: Printer, summary: Summary) -> None:
    load_ns = summary.load_ns
    if not summary.load:
        return
    printer.heading(f"Time of loading ({load_ns / 1e6:.1f} ms)")
    rest = _small(summary.load, load_ns)
    large = [part for part in summary.load if part not in rest]
    rows = [
        (
            _percentage([part], load_ns),
            f"{part.total_us / 1000:.1f}",
            part.backend or "armpy",
            part.name,
        )
        for part in large
    ]
    if rest:
        rest_ms = sum(part.total_us for part in rest) / 1000
        rows.append((_percentage(rest, load_ns), f"{rest_ms:.1f}", "", f"{len(rest)} more"))
    printer.table(["share>", "ms>", "backend", "phase"], rows)


def _detail_cells(part: Share, runs: int) -> _Row:
    """Millions of operations and memory of one run, and how near to its limit a layer comes."""
    details = part.details
    roofline_us = details.get("roofline_us")
    return (
        f"{details['operations'] / runs / 1e6:.2f}" if "operations" in details else "",
        f"{details['bytes'] / runs / _KIB:.0f}" if "bytes" in details else "",
        f"{roofline_us / part.total_us:.0%}" if roofline_us is not None and part.total_us else "",
    )


def _percentage(parts: Iterable[Share], whole_ns: int) -> str:
    """The share of the whole that some parts have together."""
    return f"{sum(part.total_ns for part in parts) / (whole_ns or 1):.1%}"


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
