"""Which backend took which layers, and why others did not: parts of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.pages import Bar, Details, Facts, Part, Stack, Table, Text
from armpy.reporting.layers import LayerRow
from armpy.reporting.units import time_text

if TYPE_CHECKING:
    from armpy.optimizer import Placement


def placement_parts(placement: Placement | None, rows: Sequence[LayerRow]) -> list[Part]:
    """Where layers run, with the reason of each refusal."""
    if placement is None:
        return [Text("Where layers run is not known before the inputs' shapes are.", "note")]
    counts = placement.layers_by_backend
    parts: list[Part] = [
        Facts(
            [
                *((name, _layers_text(count)) for name, count in counts.items()),
                ("not on the first choice", _layers_text(placement.fallbacks)),
                ("partitions", str(placement.num_partitions)),
                ("copies between memories", str(placement.num_copies)),
                ("decided by", f"{placement.preference}, {placement.basis}"),
            ]
        ),
        Stack(
            "Layers by backend", [Bar(name, float(n), str(n)) for name, n in counts.items() if n]
        ),
    ]
    if len(times := _times(rows)) > 1:
        bars = [Bar(name, us, time_text(us)) for name, us in times.items()]
        parts.append(Stack("Time in layers by backend", bars))
    parts += _refusals(placement)
    if placement.alternatives:
        parts.append(_alternatives(placement))
    return parts


def _layers_text(count: int) -> str:
    """``1 layer``."""
    return f"{count} layer" if count == 1 else f"{count} layers"


def _times(rows: Sequence[LayerRow]) -> dict[str, float]:
    """Time by backend; what several layers take together counts once."""
    found: dict[str, float] = {}
    for row in rows:
        if row.time_us is not None:
            part = row.time_us / (1 + len(row.company))
            found[row.backend] = found.get(row.backend, 0.0) + part
    return found


def _refusals(placement: Placement) -> list[Part]:
    """Why layers do not run where they would have been preferred."""
    if not placement.refusals:
        return [Text("No backend refused a layer that it was asked to take.", "good")]
    reasons = Counter((r.operation, r.backend, r.code, r.text) for r in placement.refusals)
    rows = [
        (count, operation, backend, text, code)
        for (operation, backend, code, text), count in reasons.most_common()
    ]
    columns = ["layers>", "operation", "refused by", "reason", "code"]
    each = [(r.layer, r.operation, r.backend, r.text) for r in placement.refusals]
    return [
        Table("Refusals by reason", columns, rows),
        Details(
            "Every refusal, layer by layer",
            [Table("Refusals by layer", ["layer", "operation", "refused by", "reason"], each)],
        ),
    ]


def _alternatives(placement: Placement) -> Table:
    """Placements that were weighed."""
    rows = [
        (
            a.name,
            f"{a.estimated_us:.1f}",
            "" if a.measured_us is None else f"{a.measured_us:.1f}",
            "chosen" if a.is_chosen else a.failure,
            ", ".join(f"{name} {n}" for name, n in a.layers_by_backend.items()),
        )
        for a in placement.alternatives
    ]
    columns = ["placement", "estimated us>", "measured us>", "", "layers"]
    return Table("Placements that were weighed", columns, rows)
