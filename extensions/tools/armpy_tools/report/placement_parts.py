"""Placement of layers on backends, and refusals: parts of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.core.units import counted, time_text
from armpy_tools.pages import Bar, Details, Facts, Part, Stack, Table, Text
from armpy_tools.report.layers import LayerRow, times_by_backend

if TYPE_CHECKING:
    from armpy.compiler import Placement
    from armpy_tools.report.run_times import RunTimes


def placement_parts(
    placement: Placement | None, rows: Sequence[LayerRow], times: RunTimes
) -> list[Part]:
    """Return the page's parts of placement, with the reason of each refusal."""
    if placement is None:
        return [Text("Where layers run is not known before the inputs' shapes are.", "note")]
    counts = placement.layers_by_backend
    parts: list[Part] = [
        Facts(
            [
                *((name, counted(count, "layer")) for name, count in counts.items()),
                ("not on the first choice", counted(placement.fallbacks, "layer")),
                ("partitions", str(placement.num_partitions)),
                ("copies between memories", str(placement.num_copies)),
                ("decided by", f"{placement.preference}, {placement.basis}"),
            ]
        ),
        Stack(
            "Layers by backend", [Bar(name, float(n), str(n)) for name, n in counts.items() if n]
        ),
    ]
    if len(time_of := times_by_backend(times)) > 1:
        bars = [Bar(name, us, time_text(us)) for name, us in time_of.items()]
        parts.append(Stack("Time in layers by backend", bars))
    parts += _refusals(rows)
    if placement.alternatives:
        parts.append(_alternatives(placement))
    return parts


def _refusals(rows: Sequence[LayerRow]) -> list[Part]:
    """Why layers do not run where they would have been preferred."""
    refusals = [(row, refusal) for row in rows for refusal in row.facts.refusals]
    if not refusals:
        return [Text("No backend refused a layer that it was asked to take.", "good")]
    reasons = Counter((row.facts.operator, r.backend, r.text, r.code) for row, r in refusals)
    counted = [(count, *reason) for reason, count in reasons.most_common()]
    columns = ["layers>", "operator", "refused by", "reason", "code"]
    lines = [(row.short, row.facts.operator, r.backend, r.text) for row, r in refusals]
    return [
        Table("Refusals by reason", columns, counted),
        Details(
            "Every refusal, layer by layer",
            [Table("Refusals by layer", ["layer", "operator", "refused by", "reason"], lines)],
        ),
    ]


def _alternatives(placement: Placement) -> Table:
    """Placements that were weighed."""
    rows = [
        (
            a.name,
            f"{a.estimated_us:.1f}",
            "chosen" if a.is_chosen else "",
            ", ".join(f"{name} {n}" for name, n in a.layers_by_backend.items()),
        )
        for a in placement.alternatives
    ]
    columns = ["placement", "estimated µs>", "", "layers"]
    return Table("Placements that were weighed", columns, rows)
