"""Figures of a report: kept in its page, and compared with those of another page or model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from armpy.core.dataclass import dataclass
from armpy.core.units import time_text
from armpy.errors import InvalidArgumentError, ParserError
from armpy_tools.pages import Bar, Bars, Mark, Part, Table, Text, read_page_data

_FORMAT = "armpy report 2"
_MOST_LAYERS = 40


@dataclass(frozen=True, slots=True)
class LayerFigures:
    """A layer in a report."""

    operator: str
    backend: str
    time_us: float | None
    """Time of the layer in a run; None if it was not measured by itself."""


@dataclass(frozen=True, slots=True)
class ReportFigures:
    """Figures that a report measured."""

    model: str
    machine: str
    date: str
    run_us: float
    """Time of a run; `basis` says of which runs."""
    basis: str
    quartiles_us: tuple[float, float]
    """The first and the third one of all runs."""
    parameters: int
    file_bytes: int
    peak_bytes: int
    largest_error: float | None
    """Largest relative error of a layer by itself against CpuRef; None if it was not measured."""
    kinds: Mapping[str, float]
    """Microseconds of a run by kind of layer, and of what is around layers."""
    layers: Mapping[str, LayerFigures]
    """Figures of layers by short name."""

    def page_data(self) -> dict[str, object]:
        """The figures as `armpy_tools.pages.write_page` takes them."""
        return {"format": _FORMAT, **asdict(self)}


def read_figures(path: str | os.PathLike[str]) -> ReportFigures:
    """Read the figures of a page that ``armpy report`` has written.

    Raises
    ------
    ParserError
        If it is another page, or damaged.
    OSError
        If it cannot be read.
    """
    data = read_page_data(path)
    fix = "Write it again with this version of armpy: armpy report MODEL -o PAGE.html"
    if data.get("format") != _FORMAT:
        raise ParserError(
            "the page holds no figures of a report",
            where=os.fspath(path),
            expected=repr(_FORMAT),
            actual=repr(data.get("format")),
            fix=fix,
        )
    try:
        return _figures(data)
    except (InvalidArgumentError, KeyError) as error:
        raise ParserError(
            f"the figures of the report are damaged: {error}", where=os.fspath(path), fix=fix
        ) from error


def _figures(data: Mapping[str, object]) -> ReportFigures:
    low, high = (_number(value, "quartiles_us") for value in _listed(data, "quartiles_us", 2))
    return ReportFigures(
        str(data["model"]),
        str(data["machine"]),
        str(data["date"]),
        _number(data["run_us"], "run_us"),
        str(data["basis"]),
        (low, high),
        int(_number(data["parameters"], "parameters")),
        int(_number(data["file_bytes"], "file_bytes")),
        int(_number(data["peak_bytes"], "peak_bytes")),
        _number_or_none(data["largest_error"], "largest_error"),
        {name: _number(us, f"kinds of {name}") for name, us in _mapped(data, "kinds").items()},
        {name: _layer(value, name) for name, value in _mapped(data, "layers").items()},
    )


def _mapped(data: Mapping[str, object], name: str) -> dict[str, object]:
    value = data[name]
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"{name} is not a mapping", actual=type(value).__name__)
    return value


def _layer(value: object, name: str) -> LayerFigures:
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"{name} is not a mapping", actual=type(value).__name__)
    time_us = _number_or_none(value["time_us"], f"time_us of {name}")
    return LayerFigures(str(value["operator"]), str(value["backend"]), time_us)


def _listed(data: Mapping[str, object], name: str, length: int) -> Sequence[object]:
    value = data[name]
    if not isinstance(value, list) or len(value) != length:
        raise InvalidArgumentError(f"{name} is not a list of {length}", actual=repr(value)[:40])
    return value


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgumentError(f"{name} is not a number", actual=repr(value)[:40])
    return value


def _number_or_none(value: object, name: str) -> float | None:
    return None if value is None else _number(value, name)


def side_by_side(new: ReportFigures, old: ReportFigures, old_name: str) -> list[Part]:
    """Parts of a page that compare two reports.

    Parameters
    ----------
    new, old : ReportFigures
        Of this page, and of another page or model.
    old_name : str
        File name of the other one.
    """
    times = ["this page>", f"{old_name}>"]
    columns = ["layer", "operator", "backend", f"backend in {old_name}", *times, "difference>"]
    notes: list[Part] = [
        Text(f"The {noun} differ: {first} and {other}.", "note")
        for noun, first, other in (
            ("models", new.model, old.model),
            ("machines", new.machine, old.machine),
            ("choices of runs", new.basis, old.basis),
        )
        if first != other
    ]
    bars = [
        Bar(name, figures.run_us, time_text(figures.run_us))
        for name, figures in (("this page", new), (old_name, old))
    ]
    parts = [
        Text(_verdict(new, old, old_name), "lead"),
        *notes,
        Bars("Time of a run", bars, "report", "time"),
        Table("Two reports side by side", ["", *times, "this by other>"], _whole_rows(new, old)),
        Table(
            "Kinds of layers side by side in microseconds, the largest differences first",
            ["kind", *times, "difference>"],
            _kind_rows(new, old),
        ),
    ]
    if new.layers.keys() & old.layers.keys():
        rows = _layer_rows(new, old)
        shown = "" if len(rows) <= _MOST_LAYERS else f" ({_MOST_LAYERS} of {len(rows)})"
        caption = f"Layers side by side in microseconds, the largest differences first{shown}"
        parts.append(Table(caption, columns, rows[:_MOST_LAYERS]))
    return parts


def _verdict(new: ReportFigures, old: ReportFigures, old_name: str) -> str:
    """Say in a sentence which of two reports has the quicker run."""
    if not (new.run_us and old.run_us):
        return "There are no times to compare."
    ratio = new.run_us / old.run_us
    text = f"{time_text(new.run_us)} a run, {time_text(old.run_us)} in {old_name}"
    if ratio <= 1:
        return f"{text}: {1 / ratio:.3g} times as fast."
    return f"{text}: {ratio:.3g} times as slow."


def _whole_rows(new: ReportFigures, old: ReportFigures) -> list[tuple[object, ...]]:
    """One line for each figure of the whole model."""
    lines = [
        ("a run, µs", new.run_us, old.run_us),
        ("first quartile of the runs, µs", new.quartiles_us[0], old.quartiles_us[0]),
        ("third quartile of the runs, µs", new.quartiles_us[1], old.quartiles_us[1]),
        ("peak memory, KiB", new.peak_bytes / 1024, old.peak_bytes / 1024),
        ("file, KiB", new.file_bytes / 1024, old.file_bytes / 1024),
        ("parameters, thousands", new.parameters / 1000, old.parameters / 1000),
    ]
    rows: list[tuple[object, ...]] = [
        (name, f"{first:,.1f}", f"{other:,.1f}", f"{first / other:.3f}" if other else "")
        for name, first, other in lines
    ]
    if new.largest_error is not None or old.largest_error is not None:
        errors = [
            "not measured" if error is None else f"{error:.2g}"
            for error in (new.largest_error, old.largest_error)
        ]
        rows.append(("largest error of a layer", *errors, ""))
    return [*rows, ("date", new.date, old.date, "")]


def _kind_rows(new: ReportFigures, old: ReportFigures) -> list[tuple[object, ...]]:
    """One line for each kind of layer in either report, the largest difference first."""
    kinds = dict.fromkeys((*new.kinds, *old.kinds))
    pairs = [(kind, new.kinds.get(kind), old.kinds.get(kind)) for kind in kinds]
    pairs.sort(key=lambda pair: -abs((pair[1] or 0.0) - (pair[2] or 0.0)))
    return [
        (
            kind,
            "" if first is None else f"{first:,.2f}",
            "" if other is None else f"{other:,.2f}",
            _difference((first or 0.0) - (other or 0.0)),
        )
        for kind, first, other in pairs
    ]


def _difference(us: float) -> Mark:
    """A difference of times, coloured by its sign."""
    kind = "dim"
    if us < 0:
        kind = "good"
    elif us > 0:
        kind = "bad"
    return Mark(f"{us:+,.2f}", kind)


def _layer_rows(new: ReportFigures, old: ReportFigures) -> list[tuple[object, ...]]:
    """One line for each layer, matched by name."""
    missing = LayerFigures("", "not there", None)
    rows = []
    for name in dict.fromkeys((*new.layers, *old.layers)):
        first, other = new.layers.get(name, missing), old.layers.get(name, missing)
        difference_us = (first.time_us or 0.0) - (other.time_us or 0.0)
        row = (
            name,
            first.operator or other.operator,
            first.backend,
            other.backend if first.backend == other.backend else Mark(other.backend, "bad"),
            _layer_time(first),
            _layer_time(other),
            _difference(difference_us),
        )
        rows.append((abs(difference_us), row))
    rows.sort(key=lambda pair: -pair[0])
    return [row for _, row in rows]


def _layer_time(layer: LayerFigures) -> str:
    return "" if layer.time_us is None else f"{layer.time_us:,.2f}"
