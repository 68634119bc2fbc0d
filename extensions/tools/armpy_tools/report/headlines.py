"""The first screen of a report: how fast, where, how big, how exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.core.units import bytes_text, count_text, counted, time_text
from armpy_tools.measure.limits import limit_of, main_limit
from armpy_tools.pages import Bar, Headline
from armpy_tools.report.layers import LayerRow, LayerRows, times_by_backend

if TYPE_CHECKING:
    from armpy.compiler import Placement
    from armpy.inspect import ModelFacts
    from armpy.profiling import Share, Summary
    from armpy_tools.report.run_times import RunTimes


_FEW_RUNS = 10
_MOST_KINDS = 2
_MUCH = 0.5
"""Share of the time that is worth the verdict's sentence."""


def speed_headline(times: RunTimes) -> Headline:
    """Return how long a run takes, how much that varies, and what limits it."""
    summary, whole_us = times.summary, times.whole_us or 1.0
    by_limit: dict[str, float] = {}
    for share in summary.layers:
        limit = limit_of(times.time_us(share), *_least_us(share, summary))
        by_limit[limit] = by_limit.get(limit, 0.0) + times.time_us(share)
    overhead_us = sum(map(times.time_us, summary.overhead))
    lines = [f"{100 * overhead_us / whole_us:.0f} % of a run is overhead around layers"]
    lines.append(main_limit(by_limit))
    if summary.num_executions > 1:
        lines.insert(0, _spread(times))
    return Headline("How fast?", [(time_text(whole_us), times.basis)], lines)


def _spread(times: RunTimes) -> str:
    """How much runs vary: the middle half of them, or all of a few, whose middle says little."""
    summary = times.summary
    low, _, high = summary.run_us
    subject = "half of the disturbed runs took" if times.is_busy else "half of the runs take"
    if few_runs(summary):
        low, high = (find(summary.run_ns) / 1000 for find in (min, max))
        subject = "disturbed runs took" if times.is_busy else "runs take"
    return f"{subject} {time_text(low)} to {time_text(high)}"


def _least_us(share: Share, summary: Summary) -> tuple[float, float]:
    """The least that the machine needs for a layer: for arithmetic and for memory; 0 if unknown."""
    runs = max(summary.num_executions, 1)
    compute_us, memory_us = (share.details.get(name, 0.0) for name in ("compute_us", "memory_us"))
    return compute_us / runs, memory_us / runs


def few_runs(summary: Summary) -> str:
    """Remark on a number of runs that is too low to trust; empty if it is not."""
    count = summary.num_executions
    if count >= _FEW_RUNS:
        return ""
    about = "1 run of the model is little" if count == 1 else f"{count} runs of the model are few"
    return f"{about}; {2 * _FEW_RUNS} say more."


def verdict(times: RunTimes, known: LayerRows) -> str:
    """Say in a sentence how long a run takes, how near that is to the least, and what takes it.

    Notes
    -----
    The roofline is the least time for the arithmetic and the memory accesses of the layers. It is
    left out where backends do not state the work of a tenth of the time or more.
    """
    text = f"A run takes {time_text(times.whole_us)}"
    stated = {id(s): max(_least_us(s, times.summary)) for s in times.summary.layers}
    unknown_us = sum(times.time_us(s) for s in times.summary.layers if not stated[id(s)])
    least_us = sum(stated.values())
    if least_us and unknown_us < times.whole_us / 10:
        ratio = _digits(times.whole_us / least_us)
        text += f", {ratio} times the least that the machine needs (roofline)"
    by_kind: dict[str, float] = {}
    for share in times.summary.layers:
        kind = known.kind(share)
        by_kind[kind] = by_kind.get(kind, 0.0) + times.time_us(share)
    by_kind["the overhead around layers"] = times.whole_us - times.layers_us
    kinds = sorted(by_kind, key=by_kind.__getitem__, reverse=True)
    for count in range(1, _MOST_KINDS + 1):
        time_us = sum(by_kind[kind] for kind in kinds[:count])
        if time_us >= _MUCH * times.whole_us > 0:
            verb = "takes" if count == 1 else "take"
            text += f"; {' and '.join(kinds[:count])} {verb} {_percent(time_us, times)} of it"
            break
    return f"{text}."


def _digits(number: float) -> str:
    """One digit after the point, or all before it."""
    return f"{number:.1f}" if number < 9.95 else f"{number:,.0f}"


def _percent(time_us: float, times: RunTimes) -> str:
    """A share of a run, rounded."""
    return f"{100 * time_us / times.whole_us:.0f} %"


def placement_text(placement: Placement) -> str:
    """Return the number of layers, and the backends that run them."""
    counts = {name: count for name, count in placement.layers_by_backend.items() if count}
    if len(counts) == 1:
        ((name, count),) = counts.items()
        return f"{counted(count, 'layer')}, all on {name}"
    return str(placement).partition(";")[0]


def place_headline(
    placement: Placement | None, rows: Sequence[LayerRow], times: RunTimes
) -> Headline:
    """Which backends ran the model, and the first reason why one did not take a layer."""
    question = "Where did it run?"
    if placement is None:
        return Headline(question, [("not known", "the shapes of the inputs are not known")])
    counts = {name: count for name, count in placement.layers_by_backend.items() if count}
    time_of = times_by_backend(times)
    bars = [Bar(name, time_of.get(name, 0.0), counted(n, "layer")) for name, n in counts.items()]
    unit = "the time in layers"
    if not any(bar.value for bar in bars):
        unit = "the layers"
        bars = [Bar(name, float(n), counted(n, "layer")) for name, n in counts.items()]
    first = max(bars, key=lambda bar: bar.value, default=None)
    if first is None:
        return Headline(question, [("nowhere", "the model has no layers that run")])
    share = first.value / (sum(bar.value for bar in bars) or 1.0)
    figure = (first.name, f"{100 * share:.0f} % of {unit}")
    return Headline(question, [figure], _fallback(rows), bars)


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
