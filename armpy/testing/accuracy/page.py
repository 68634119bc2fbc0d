"""A run over models as one HTML page without anything from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from pathlib import PurePath
from typing import Protocol

from armpy.testing.accuracy.engines import PEER
from armpy.testing.accuracy.report import EngineReport, ModelAccuracy, Status
from armpy.testing.html import PAGE, STYLE
from armpy.tools.compare.errors import ErrorStats
from armpy.tools.measure.latency import Latency
from armpy.types import REFERENCE_BACKEND_ID, BackendId

_MORE_STYLE = """
body { max-width: 84rem; }
.scroll { overflow-x: auto; }
.scroll th, .scroll td { overflow-wrap: normal; white-space: nowrap; }
.scroll td.n, .scroll th.n { width: auto; padding: .25rem .4rem; }
svg { max-width: 100%; }
.scroll td.long { white-space: normal; overflow-wrap: anywhere; }
.bars { width: auto; } .bars td { padding-right: 1rem; white-space: nowrap; }
th.g { text-align: center; border-bottom-style: double; }
td.model { white-space: nowrap; font-weight: 600; }
.bar { display: inline-block; height: .6rem; border-radius: .15rem; background: var(--one);
  vertical-align: middle; }
.bar.peer { background: var(--two); }
:root { --one: #3367d6; --two: #c77700; }
@media (prefers-color-scheme: dark) { :root { --one: #8ab4f8; --two: #fdb95c; } }
.key { display: inline-block; width: .8rem; height: .8rem; border-radius: .15rem;
  background: var(--one); vertical-align: -0.05rem; } .key.peer { background: var(--two); }
svg circle { fill: var(--one); fill-opacity: .55; } svg .peer circle { fill: var(--two); }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; } svg line { stroke: #8888; }
dl { display: grid; grid-template-columns: max-content auto; gap: .1rem 1rem; }
dt { color: var(--dim); } dd { margin: 0; }
"""

_BAR_REM = 9.0
_PLOT_WIDTH, _PLOT_ROW = 640, 26


class IAccuracyRun(Protocol):
    """A run as a page tells of it; see `AccuracyRun`."""

    @property
    def backend(self) -> BackendId:
        """What was measured."""

    @property
    def models(self) -> tuple[ModelAccuracy, ...]:
        """What became of each model."""

    @property
    def machine(self) -> Mapping[str, str]:
        """Where."""

    @property
    def settings(self) -> Mapping[str, str]:
        """How."""

    @property
    def duration_s(self) -> float:
        """How long it took."""

    @property
    def is_passed(self) -> bool:
        """Whether all models are OK."""


def page(run: IAccuracyRun) -> str:
    """The page: verdict, one row per model, latencies and errors of each, machine and settings."""
    parts = [_verdict(run), "<h2>Models</h2>", _summary(run), "<h2>Latency</h2>", _bars(run)]
    parts += ["<h2>Each model</h2>", *(_details(run, model) for model in run.models)]
    parts += ["<h2>Machine</h2>", _pairs(run.machine)]
    parts += ["<h2>Settings</h2>", _pairs(run.settings)]
    title = escape(f"Accuracy and latency of {run.backend}")
    return PAGE.format(title=title, style=STYLE + _MORE_STYLE, body="\n".join(parts))


def _verdict(run: IAccuracyRun) -> str:
    """What the run comes to."""
    word, kind = ("passed", "good") if run.is_passed else ("did not pass", "bad")
    return (
        f'<p><span class="{kind}">{word}</span>: {escape(str(run))} '
        f'<span class="dim">({run.duration_s:.1f} s)</span></p>'
        "<p>Errors are relative: the root of the mean square of all differences from the "
        "reference, over that of the reference. The reference is the model on real numbers (its "
        f"float twin) or, where there is none, {REFERENCE_BACKEND_ID}. Same best: in how many "
        "samples the class with the highest score is the same.</p>"
    )


def _summary(run: IAccuracyRun) -> str:
    """One row per model."""
    names = [run.backend, REFERENCE_BACKEND_ID, PEER]
    names = list(dict.fromkeys(names))
    heads = "".join(f'<th class="n">{escape(name)}</th>' for name in names)
    timed = [name for name in names if name != REFERENCE_BACKEND_ID or name == run.backend]
    head = (
        '<tr><th></th><th></th><th></th><th class="g" colspan="'
        f'{len(names)}">relative error</th><th class="g" colspan="{len(names)}">same best</th>'
        f'<th class="g" colspan="{len(timed) + 1}">median, ms</th></tr>'
        f'<tr><th>model</th><th>status</th><th class="n">layers</th>{heads}{heads}'
        + "".join(f'<th class="n">{escape(name)}</th>' for name in timed)
        + '<th class="n">ratio</th></tr>'
    )
    rows = []
    for model in run.models:
        engines = [model.engine(name) for name in names]
        kind = "good" if model.status is Status.OK else "bad"
        share = f"{model.num_taken} of {model.num_layers}" if model.num_layers else ""
        cells = [_error_cell(engine) for engine in engines]
        cells += [_best_cell(engine) for engine in engines]
        cells += [_time_cell(model.engine(name)) for name in timed]
        cells.append(f'<td class="n">{_ratio(run, model)}</td>')
        rows.append(
            f'<tr><td class="model">{escape(PurePath(model.model).name)}</td>'
            f'<td class="{kind}">{model.status.value}</td><td class="n">{share}</td>'
            + "".join(cells)
            + "</tr>"
        )
    return (
        f'<div class="scroll"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody>'
        "</table></div>"
    )


def _error_cell(engine: EngineReport | None) -> str:
    """The relative error of an engine."""
    if engine is None or engine.errors is None:
        return _NOTHING
    return f'<td class="n">{_number(engine.errors.relative)}</td>'


def _best_cell(engine: EngineReport | None) -> str:
    """The share of samples with the same best class."""
    if engine is None or engine.errors is None or engine.errors.same_best is None:
        return _NOTHING
    return f'<td class="n">{100 * engine.errors.same_best:.0f} %</td>'


def _time_cell(engine: EngineReport | None) -> str:
    """The median of an engine's times."""
    if engine is None or engine.latency is None:
        return _NOTHING
    return f'<td class="n">{_number(engine.latency.median_ms)}</td>'


_NOTHING = '<td class="n zero">-</td>'


def _number(value: float) -> str:
    """A number with three digits that count."""
    if not math.isfinite(value):
        return "∞"
    return "0" if value == 0 else f"{value:.3g}"


def _ratio(run: IAccuracyRun, model: ModelAccuracy) -> str:
    """How many times longer the peer takes."""
    ours, theirs = model.engine(run.backend), model.engine(PEER)
    if not (ours and ours.latency and theirs and theirs.latency):
        return "-"
    return f"{theirs.latency.median_ms / ours.latency.median_ms:.2f}"


def _bars(run: IAccuracyRun) -> str:
    """Each model's medians as bars, as parts of its longest one."""
    key = (
        f'<p><span class="key"></span> {escape(run.backend)} &nbsp; '
        f'<span class="key peer"></span> {PEER}; '
        '<span class="dim">each model to its own scale</span></p>'
    )
    rows = []
    for model in run.models:
        timed = [
            (engine.latency.median_ms, "peer" if engine.name == PEER else "")
            for engine in model.engines
            if engine.latency is not None
        ]
        if not timed:
            continue
        longest = max(median for median, _ in timed)
        bars = "<br>".join(
            f'<span class="bar {kind}" style="width: {_BAR_REM * median / longest:.2f}rem"></span> '
            f"{_number(median)} ms"
            for median, kind in timed
        )
        name = escape(PurePath(model.model).name)
        rows.append(f'<tr><td class="model">{name}</td><td>{bars}</td></tr>')
    return (
        f'{key}<table class="bars"><tbody>{"".join(rows)}</tbody></table>'
        if rows
        else "<p>Not timed.</p>"
    )


def _details(run: IAccuracyRun, model: ModelAccuracy) -> str:
    """All that is known of a model."""
    facts = {"file": model.model, "reference": model.reference, "samples": str(model.num_samples)}
    if model.text:
        facts["why"] = model.text
    heads = "<th>engine</th>" + "".join(
        f'<th class="n">{name}</th>'
        for name in ("rms error", "largest", "relative", "median ms", "mean ms", "± ms", "best ms")
    )
    rows = "".join(_engine_row(engine) for engine in model.engines)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""
    table = f'<div class="scroll">{table}</div>'
    return (
        f"<details><summary>{escape(PurePath(model.model).name)}</summary>{_pairs(facts)}{table}"
        f"{_plot(run, model)}</details>"
    )


def _engine_row(engine: EngineReport) -> str:
    """Errors and times of one engine."""
    name = f"{escape(engine.name)} {escape(engine.version)}"
    if engine.errors is None:
        return f'<tr><td>{name}</td><td class="long" colspan="7">{escape(engine.text)}</td></tr>'
    numbers = [*_shown_errors(engine.errors), *_shown_latency(engine.latency)]
    return f"<tr><td>{name}</td>" + "".join(f'<td class="n">{n}</td>' for n in numbers) + "</tr>"


def _shown_errors(errors: ErrorStats) -> list[str]:
    """Three numbers."""
    return [_number(e) for e in (errors.rms, errors.largest, errors.relative)]


def _shown_latency(latency: Latency | None) -> list[str]:
    """Four numbers."""
    if latency is None:
        return ["-"] * 4
    return [
        _number(t)
        for t in (latency.median_ms, latency.mean_ms, latency.deviation_ms, latency.min_ms)
    ]


def _plot(run: IAccuracyRun, model: ModelAccuracy) -> str:
    """Every execution's time as a dot, an engine in each row, on one logarithmic axis."""
    timed = [
        (engine, [time_ms for time_ms in engine.times_ms if time_ms > 0])
        for engine in model.engines
    ]
    timed = [(engine, times) for engine, times in timed if times]
    if not timed:
        return ""
    low = min(min(times) for _, times in timed)
    high = max(max(times) for _, times in timed)
    span = math.log(high / low) or 1.0
    left, width = 110, _PLOT_WIDTH - 130
    rows = []
    for number, (engine, times) in enumerate(timed):
        y = 16 + number * _PLOT_ROW
        dots = "".join(
            f'<circle cx="{left + width * math.log(t / low) / span:.1f}" cy="{y}" r="3"/>'
            for t in times[:300]
        )
        kind = "peer" if engine.name == PEER else ""
        label = f'<text x="0" y="{y + 4}">{escape(engine.name)}</text>'
        rows.append(f'<g class="{kind}">{label}{dots}</g>')
    bottom = 16 + len(timed) * _PLOT_ROW
    axis = (
        f'<line x1="{left}" y1="{bottom - 10}" x2="{left + width}" y2="{bottom - 10}"/>'
        f'<text x="{left}" y="{bottom + 6}">{_number(low)} ms</text>'
        f'<text x="{left + width}" y="{bottom + 6}" text-anchor="end">{_number(high)} ms</text>'
    )
    return (
        f'<svg role="img" aria-label="times of executions" width="{_PLOT_WIDTH}" '
        f'height="{bottom + 12}">{"".join(rows)}{axis}</svg>'
    )


def _pairs(facts: Mapping[str, str]) -> str:
    """Names and values."""
    rows = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items() if v)
    return f"<dl>{rows}</dl>"
