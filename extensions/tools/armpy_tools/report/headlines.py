"""The first screen of a report: how fast, where, how big, how exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.core.units import bytes_text, count_text, time_text
from armpy_conformance.measure.limits import limit_of, main_limit
from armpy_conformance.pages import Bar, Headline
from armpy_tools.report.layers import LayerRow, times_by_backend

if TYPE_CHECKING:
    from armpy.compiler import Placement
    from armpy.inspect import ModelFacts
    from armpy.profiling import Summary


_FEW_RUNS = 10


def speed_headline(summary: Summary) -> Headline:
    """Return how long a run takes, how much that varies, and what limits it."""
    low, median, high = summary.run_us
    times: dict[str, float] = {}
    runs = max(summary.num_executions, 1)
    for share in summary.layers:
        time_us = share.quartiles_us(runs).median
        compute_us, memory_us = (
            share.details.get(name, 0.0) / runs for name in ("compute_us", "memory_us")
        )
        limit = limit_of(time_us, compute_us, memory_us)
        times[limit] = times.get(limit, 0.0) + time_us
    around_us, waiting_us = (
        sum(share.quartiles_us(runs).median for share in shares)
        for shares in (summary.overhead, summary.waiting)
    )
    whole_us = sum(times.values()) + around_us + waiting_us or 1.0
    lines = [f"half of the runs take {time_text(low)} to {time_text(high)}"]
    if runs < _FEW_RUNS:
        ends = [time_text(find(summary.run_ns) / 1e3) for find in (min, max)]
        lines = [f"runs take {ends[0]} to {ends[1]}"] if runs > 1 else []
        lines.append("few runs: use --runs for more")
    lines += [f"{100 * around_us / whole_us:.0f} % of a run is overhead around layers"]
    lines += [main_limit(times)]
    about = f"median of {runs} runs" if runs > 1 else "one run"
    return Headline("How fast?", [(time_text(median), about)], lines)


def placement_text(placement: Placement) -> str:
    """Return the number of layers, and the backends that run them."""
    counts = {name: count for name, count in placement.layers_by_backend.items() if count}
    if len(counts) == 1:
        ((name, count),) = counts.items()
        return f"{layers_text(count)}, all on {name}"
    return str(placement).partition(";")[0]


def place_headline(
    placement: Placement | None, rows: Sequence[LayerRow], summary: Summary
) -> Headline:
    """Which backends ran the model, and the first reason why one did not take a layer."""
    question = "Where did it run?"
    if placement is None:
        return Headline(question, [("not known", "the shapes of the inputs are not known")])
    counts = {name: count for name, count in placement.layers_by_backend.items() if count}
    times = times_by_backend(summary)
    bars = [Bar(name, times.get(name, 0.0), layers_text(n)) for name, n in counts.items()]
    unit = "the time in layers"
    if not any(bar.value for bar in bars):
        unit = "the layers"
        bars = [Bar(name, float(n), layers_text(n)) for name, n in counts.items()]
    first = max(bars, key=lambda bar: bar.value, default=None)
    if first is None:
        return Headline(question, [("nowhere", "the model has no layers that run")])
    share = first.value / (sum(bar.value for bar in bars) or 1.0)
    figure = (first.name, f"{100 * share:.0f} % of {unit}")
    return Headline(question, [figure], _fallback(rows), bars)


def layers_text(count: int) -> str:
    """``1 layer``, ``2 layers``."""
    return f"{count} layer" if count == 1 else f"{count} layers"


def _fallback(rows: Sequence[LayerRow]) -> list[str]:
    """The first reason why a layer does not run where it would have been preferred."""
    for row in rows:
        for refusal in row.facts.refusals:
            reason = refusal.text.rstrip(".")
            return [f"{row.facts.operator} {row.short} not on {refusal.backend}: {reason}"]
    return ["no layer fell back"]


def size_headline(facts: ModelFacts, memory: Sequence[tuple[str, int]]) -> Headline:
    """Return how many parameters the model has, how large its file is, and what memory it takes.

    Parameters
    ----------
    memory : sequence of (str, int)
        Kinds of memory of one model and one run, in bytes.
    """
    lines = []
    if facts.file_bytes:
        lines.append(f"file: {bytes_text(facts.file_bytes)}")
    whole = sum(size for _, size in memory)
    lines.append(f"peak memory: {bytes_text(whole)}, with weights, inputs and outputs")
    lines.append(f"work of a run: {count_text(facts.macs)} multiply-adds")
    return Headline("How big?", [(_parameters_text(facts.parameters), "parameters")], lines)


def _parameters_text(number: int) -> str:
    """The whole number, or three digits of a large one."""
    if number < 100_000:
        return f"{number:,}"
    unit, name = next(u for u in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if number >= 0.9995 * u[0])
    return f"{number / unit:.3g} {name}"
