"""A model on several backends beside each other: same inputs, in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass
from armpy.core.turns import take_turns, timed
from armpy.core.units import bytes_text, time_text
from armpy.errors import ArmpyError
from armpy_tools.comparison.errors import errors
from armpy_tools.measure.latency import latency_of
from armpy_tools.measure.ratio import median_interval
from armpy_tools.pages import Bar, Bars, Part, Table, Text

if TYPE_CHECKING:
    from armpy.model import Model
    from armpy.ops.operation import Array

SECONDS_EACH = 3.0
MOST_RUNS = 200


@dataclass(frozen=True, slots=True)
class BackendComparison:
    """A model on one choice of backends."""

    name: str  # the first choice
    placement: str = ""  # layers by backend
    times_us: tuple[float, ...] = ()  # of each run, in order; empty if it failed
    ratio: float = 1.0  # median of the ratios of its runs to the first choice's of the same turn
    interval: tuple[float, float] = (1.0, 1.0)  # of that median, at 95 % confidence
    working_bytes: int = 0
    relative_error: float = 0.0  # of the outputs, against those of the first that ran
    failure: str = ""


def compare_backends(
    load: Callable[[str], Model],
    names: Sequence[str],
    arrays: Mapping[str, Array],
    num_runs: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[BackendComparison]:
    """Run a model on several backends in turns.

    Parameters
    ----------
    load : callable
        Loads the model for a first choice.
    names : sequence of str
        First choices.
    arrays : mapping of str to ndarray
        Inputs.
    num_runs : int
        Of each, at least; more as long as there is time.
    clock : callable
        In seconds.

    Notes
    -----
    The order of turns alternates, so that whatever else the machine does falls on all alike.
    A failing backend is reported, and the others go on.
    """
    models: dict[str, Model] = {}
    outputs: dict[str, list[Array]] = {}
    failures: dict[str, str] = {}
    try:
        for name in dict.fromkeys(names):
            try:
                models[name] = load(name)
                # The first run may prepare, and does not count.
                outputs[name] = list(models[name].run(dict(arrays)).values())
            except ArmpyError as error:
                failures[name] = str(error)
        ready = {n: _turn(model, arrays, clock) for n, model in models.items() if n in outputs}
        seconds = SECONDS_EACH * len(ready)
        times = take_turns(ready, seconds, least=num_runs, most=MOST_RUNS, clock=clock)
        placements = {name: models[name].placement for name in ready}
    finally:
        for model in models.values():
            model.close()
    first = next(iter(ready), "")
    comparisons = []
    for name in dict.fromkeys(names):
        if name in failures:
            comparisons.append(BackendComparison(name, failure=failures[name]))
            continue
        placement = placements[name]
        ratios = [mine / other for mine, other in zip(times[name], times[first], strict=True)]
        comparisons.append(
            BackendComparison(
                name,
                _placement_text(placement.layers_by_backend if placement is not None else {}),
                tuple(1e6 * seconds for seconds in times[name]),
                statistics.median(ratios),
                median_interval(ratios),
                placement.peak_bytes if placement is not None else 0,
                errors(outputs[first], outputs[name]).relative,
            )
        )
    return comparisons


def _turn(
    model: Model, arrays: Mapping[str, Array], clock: Callable[[], float]
) -> Callable[[], float]:
    """Runs a model once, and finds its seconds."""
    return timed(lambda: model.run(dict(arrays)), clock=clock)


def _placement_text(counts: Mapping[str, int]) -> str:
    """``NumbaAcc 64, CpuRef 1``."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def comparison_parts(compared: Sequence[BackendComparison]) -> list[Part]:
    """Return the page's parts of a comparison."""
    ran = [comparison for comparison in compared if comparison.times_us]
    parts: list[Part] = [
        Text(f"{comparison.name} was left out. {comparison.failure}", "bad")
        for comparison in compared
        if comparison.failure
    ]
    if not ran:
        return parts
    first = ran[0]
    bars = [
        Bar(
            comparison.name,
            median,
            time_text(median),
            interval=median_interval(comparison.times_us),
        )
        for comparison in ran
        for median in [statistics.median(comparison.times_us)]
    ]
    rows = [
        (
            comparison.name,
            comparison.placement,
            len(comparison.times_us),
            f"{min(comparison.times_us):,.1f}",
            f"{statistics.median(comparison.times_us):,.1f}",
            f"{1000 * latency_of(comparison.times_us).p90_ms:,.1f}",
            "1" if comparison is first else _ratio_text(comparison),
            bytes_text(comparison.working_bytes),
            "the same" if not comparison.relative_error else f"{comparison.relative_error:.2g}",
        )
        for comparison in ran
    ]
    columns = [
        "first choice", "layers", "runs>", "min µs>", "median µs>", "p90 µs>",
        f"times as long as {first.name}>", "working memory>", f"outputs against {first.name}>",
    ]  # fmt: skip
    caption = "Median time of a run, with its 95 % interval; same inputs, in turns"
    return [
        *parts,
        Bars(caption, bars, "first choice", "time"),
        Table("Backends beside each other", columns, rows),
    ]


def _ratio_text(comparison: BackendComparison) -> str:
    low, high = comparison.interval
    return f"{comparison.ratio:.3g} ({low:.3g} to {high:.3g})"
