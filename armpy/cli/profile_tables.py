"""Tables of profiles: where all of the time went, and what has changed between two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from armpy.cli.printer import Printer
from armpy.core.units import counted
from armpy.profiling import short_names

if TYPE_CHECKING:
    from armpy.cli.profile_report import PartReport, ProfileReport
    from armpy.profiling import Change, Comparison

_KIB = 1024
_Row: TypeAlias = tuple[str, ...]

MOST_LAYERS = 15
"""Of a profile; the JSON document has all."""


def print_profile(
    printer: Printer, profile: ProfileReport, *, most_layers: int = MOST_LAYERS
) -> None:
    """Print where all of the time went: by kind, by layer, of loading; shares make 100 %."""
    runs = max(profile.runs, 1)
    each_us = 1000 * profile.wall_ms / runs
    printer.heading(
        f"Profile of {counted(profile.runs, 'execution')}: {profile.wall_ms:.3f} ms of wall time, "
        f"{each_us:.1f} us each"
    )
    kinds = (
        ("operation", profile.operations),
        ("overhead", profile.overhead),
        ("waiting", profile.waiting),
    )
    parts = [(kind, part) for kind, found in kinds for part in found]
    shares = shown_shares([part.share for _, part in parts])
    rows: list[_Row] = [
        (share, f"{part.total_us / runs:.1f}", kind, part.backend or "armpy", part.name)
        for share, (kind, part) in zip(shares, parts, strict=True)
    ]
    printer.table(
        ["share>", "us each>", "kind", "backend", "what"],
        [*rows, ("100.0%", f"{each_us:.1f}", "all", "", "")],
    )
    if profile.layers:
        _print_layers(printer, profile, each_us, most_layers)
    _print_loading(printer, profile)
    if profile.counters:
        printer.heading("Counters")
        printer.table(
            ["value>", "unit", "backend", "counter"],
            [(f"{c.value:g}", c.unit, c.backend, c.name) for c in profile.counters],
        )
    if profile.dropped:
        printer.line(f"{profile.dropped} events were not kept; their time is their surroundings'")


def _print_layers(
    printer: Printer, profile: ProfileReport, each_us: float, most_layers: int
) -> None:
    """Print the slowest layers, and all else in a few rows."""
    runs = max(profile.runs, 1)
    shown, rest = profile.layers[:most_layers], profile.layers[most_layers:]
    others = (
        (f"{len(rest)} more", rest),
        ("overhead", profile.overhead),
        ("waiting", profile.waiting),
    )
    sums = [(name, parts) for name, parts in others if parts]
    shares = shown_shares(
        [*(p.share for p in shown), *(sum(p.share for p in parts) for _, parts in sums)]
    )
    has_details = any(part.details for part in shown)
    blank = ("",) * (3 if has_details else 0)
    rows: list[_Row] = []
    for share, part in zip(shares, shown, strict=False):
        cells = _detail_cells(part, runs) if has_details else ()
        names = part.backend or "armpy", part.operation, part.short_name or part.name
        rows.append((share, f"{part.total_us / runs:.1f}", *cells, *names))
    for share, (name, parts) in zip(shares[len(shown) :], sums, strict=True):
        total_us = sum(part.total_us for part in parts) / runs
        rows.append((share, f"{total_us:.1f}", *blank, "", "", name))
    rows.append(("100.0%", f"{each_us:.1f}", *blank, "", "", "all"))
    printer.heading(f"Slowest layers ({len(shown)} of {len(profile.layers)})")
    columns = ["share>", "us each>", *(["Mop>", "KiB>", "roofline>"] if has_details else [])]
    printer.table([*columns, "backend", "operation", "layer"], rows)


def _print_loading(printer: Printer, profile: ProfileReport) -> None:
    """Print where the time of loading went."""
    if not profile.load:
        return
    printer.heading(f"Time of loading ({profile.load_ms:.1f} ms)")
    shares = shown_shares([part.share for part in profile.load])
    printer.table(
        ["share>", "ms>", "backend", "phase"],
        [
            (share, f"{part.total_us / 1000:.1f}", part.backend or "armpy", part.name)
            for share, part in zip(shares, profile.load, strict=True)
        ],
    )


def _detail_cells(part: PartReport, runs: int) -> _Row:
    """Millions of operations and memory of one run, and how near to its limit a layer comes."""
    found = part.details
    roofline_us = found.get("roofline_us")
    return (
        f"{found['operations'] / runs / 1e6:.2f}" if "operations" in found else "",
        f"{found['bytes'] / runs / _KIB:.0f}" if "bytes" in found else "",
        f"{roofline_us / part.total_us:.0%}" if roofline_us is not None and part.total_us else "",
    )


def shown_shares(shares: Sequence[float]) -> list[str]:
    """Shares of a whole as percentages of one digit, which add up to what all of them are.

    Notes
    -----
    Each is rounded down, and those that lose most by it get the tenths that are missing.
    """
    exact = [1000 * share for share in shares]
    tenths = [int(number) for number in exact]
    missing = round(sum(exact)) - sum(tenths)
    by_loss = sorted(range(len(exact)), key=lambda n: tenths[n] - exact[n])
    for number in by_loss[:missing]:
        tenths[number] += 1
    return [f"{number / 10:.1f}%" for number in tenths]


def print_comparison(printer: Printer, found: Comparison, *, most_layers: int) -> None:
    """Print what has changed between two profiles."""
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
    total = ("", "", f"{found.before_us:.1f}", f"{found.after_us:.1f}")
    all_of_it = (f"{found.difference_us:+.1f}", *total[2:], _times(found), "all", "", "")
    printer.table(
        ["change>", "before>", "after>", "times>", "kind", "backend", "what"],
        [*[(*_numbers(c), kind, c.backend or "armpy", c.name) for kind, c in rows], all_of_it],
    )
    _print_changed_layers(printer, found, most_layers)


def _print_changed_layers(printer: Printer, found: Comparison, most_layers: int) -> None:
    """Print the layers that have changed most."""
    shown, rest = found.layers[:most_layers], found.layers[most_layers:]
    if not shown:
        return
    short = short_names(_layer_name(change) for change in found.layers)
    rows: list[_Row] = [
        (*_numbers(c), c.backend, c.operation, short[_layer_name(c)]) for c in shown
    ]
    if rest:
        before, after = _sums(rest)
        rows.append(
            (
                *(f"{after - before:+.1f}", f"{before:.1f}", f"{after:.1f}"),
                *("", "", "", f"{len(rest)} more"),
            )
        )
    printer.heading(f"By layer, the largest change first ({len(shown)} of {len(found.layers)})")
    printer.table(["change>", "before>", "after>", "times>", "backend", "operation", "layer"], rows)


def _layer_name(change: Change) -> str:
    """A layer's own name, which stands in quotes behind its operation."""
    prefix = f"{change.operation} '"
    is_quoted = change.name.startswith(prefix) and change.name.endswith("'")
    return change.name[len(prefix) : -1] if is_quoted else change.name


def _numbers(change: Change) -> _Row:
    """Cells of a change."""
    ratio = change.after_us / change.before_us if change.before_us else 0.0
    return (
        f"{change.difference_us:+.1f}",
        f"{change.before_us:.1f}",
        f"{change.after_us:.1f}",
        f"{ratio:.2f}" if ratio else "gone" if change.before_us else "new",
    )


def _times(found: Comparison) -> str:
    """How many times as long all of it takes."""
    return f"{found.after_us / found.before_us:.2f}" if found.before_us else ""


def _sums(changes: Iterable[Change]) -> tuple[float, float]:
    """Before and after, all together."""
    changes = list(changes)
    return sum(c.before_us for c in changes), sum(c.after_us for c in changes)


def _change_text(before: float, after: float) -> str:
    """How much faster or slower it has become."""
    if not (before and after):
        return "nothing to compare"
    if after <= before:
        return f"{before / after:.2f} times as fast"
    return f"{after / before:.2f} times as slow"
