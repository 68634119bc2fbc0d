"""Sections of a page about models whose accuracy and latency were measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from armpy.types import REFERENCE_BACKEND_ID, BackendId
from armpy_tools.accuracy.engines import PEER
from armpy_tools.accuracy.report import EngineReport, ModelAccuracy, Status
from armpy_tools.pages import (
    Bar,
    Bars,
    Details,
    Facts,
    Lines,
    Mark,
    Part,
    Series,
    Table,
    Text,
)

_MOST_TIMES = 300
"""Of an engine on a model that are drawn."""

ABOUT = (
    "Errors are relative: the root of the mean square of all differences from the reference, over "
    "that of the reference. The reference is the model on real numbers (its float twin) or, where "
    f"there is none, {REFERENCE_BACKEND_ID}. Same best: in how many samples the class with the "
    "highest score is the same."
)


def summary_table(backend: BackendId, models: Sequence[ModelAccuracy]) -> Table:
    """One row per model: errors, classes and medians of every engine."""
    names = list(dict.fromkeys([backend, REFERENCE_BACKEND_ID, PEER]))
    timed = [name for name in names if name != REFERENCE_BACKEND_ID or name == backend]
    columns = [
        *("model", "status", "layers>"),
        *(f"error of {name}>" for name in names),
        *(f"same best of {name}>" for name in names),
        *(f"median of {name}, ms>" for name in timed),
        f"{PEER} by {backend}>",
    ]
    rows = []
    for model in models:
        engines = [model.engine(name) for name in names]
        kind = "good" if model.status is Status.OK else "bad"
        rows.append(
            (
                _name(model),
                Mark(model.status.value, kind),
                f"{model.num_taken} of {model.num_layers}" if model.num_layers else "",
                *map(_error, engines),
                *map(_same_best, engines),
                *(_median(model.engine(name)) for name in timed),
                _ratio(backend, model),
            )
        )
    return Table("Errors and latencies", columns, rows)


def _name(model: ModelAccuracy) -> str:
    """A model's file without its folder."""
    return PurePath(model.model).name


def _error(engine: EngineReport | None) -> str:
    return "-" if engine is None or engine.errors is None else _number(engine.errors.relative)


def _same_best(engine: EngineReport | None) -> str:
    """The share of samples with the same best class."""
    if engine is None or engine.errors is None or engine.errors.same_best is None:
        return "-"
    return f"{100 * engine.errors.same_best:.0f} %"


def _median(engine: EngineReport | None) -> str:
    """The median of an engine's times."""
    return "-" if engine is None or engine.latency is None else _number(engine.latency.median_ms)


def _ratio(backend: BackendId, model: ModelAccuracy) -> str:
    """Return how many times longer the peer takes."""
    ours, theirs = model.engine(backend), model.engine(PEER)
    if not (ours and ours.latency and theirs and theirs.latency):
        return "-"
    return f"{theirs.latency.median_ms / ours.latency.median_ms:.2f}"


def _number(value: float) -> str:
    """A number with three digits that count."""
    if not math.isfinite(value):
        return "∞"
    return "0" if value == 0 else f"{value:.3g}"


def latency_parts(models: Sequence[ModelAccuracy]) -> Iterator[Part]:
    """Each model's medians as bars, to its own scale."""
    for model in models:
        timed = [(engine.name, engine.latency) for engine in model.engines if engine.latency]
        if timed:
            bars = [
                Bar(name, latency.median_ms, f"{_number(latency.median_ms)} ms", name)
                for name, latency in timed
            ]
            yield Bars(_name(model), bars, "engine", "median")
    if not any(engine.latency for model in models for engine in model.engines):
        yield Text("Not timed.")


def model_details(model: ModelAccuracy) -> Details:
    """All that is known of a model."""
    facts = [
        ("file", model.model),
        ("reference", model.reference),
        ("samples", str(model.num_samples)),
        ("why", model.text),
        ("compared with", model.compared),
    ]
    parts: list[Part] = [Facts([(name, text) for name, text in facts if text])]
    if model.engines:
        columns = ["engine", "rms error>", "largest>", "relative>", "median ms>", "mean ms>"]
        columns += ["± ms>", "best ms>", "remark"]
        parts.append(Table("Engines", columns, [_engine_row(report) for report in model.engines]))
    measures = list(dict.fromkeys(name for engine in model.engines for name in engine.scores))
    if measures:
        rows = [(engine.name, *_scores(engine, measures)) for engine in model.engines]
        columns = ["engine", *(f"{name}>" for name in measures)]
        parts.append(Table("Against expected results", columns, rows))
    series = []
    for engine in model.engines:
        times = [time_ms for time_ms in engine.times_ms if time_ms > 0][:_MOST_TIMES]
        if times:
            series.append(Series(engine.name, [float(n) for n in range(1, len(times) + 1)], times))
    if series:
        caption = "Times of executions, in order"
        parts.append(Lines(caption, series, "execution", "ms", is_log=True, has_points=True))
    return Details(_name(model), parts)


def _scores(engine: EngineReport, measures: Sequence[str]) -> list[str]:
    return [_number(engine.scores[name]) if name in engine.scores else "-" for name in measures]


def _engine_row(engine: EngineReport) -> tuple[str, ...]:
    """Errors and times of one engine."""
    errors, latency = engine.errors, engine.latency
    name = f"{engine.name} {engine.version}"
    figures = ["-"] * 7
    if errors is not None:
        figures[:3] = map(_number, (errors.rms, errors.largest, errors.relative))
    if latency is not None:
        times = (latency.median_ms, latency.mean_ms, latency.deviation_ms, latency.min_ms)
        figures[3:] = map(_number, times)
    return (name, *figures, engine.text)
