"""A chart of lines, and where its lines, points and ticks lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy_tools.pages.colours import NUM_COLOURS
from armpy_tools.pages.scales import NUM_TICKS, number_text, round_numbers

WIDTH, HEIGHT = 900, 300
LEFT, RIGHT, TOP, BOTTOM = 76, 12, 12, 44
MAX_DECADES = 18
"""Values further below the largest one of a logarithmic axis lie at its lower end."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart.

    Parameters
    ----------
    name : str
    xs, ys : sequence of float
        Points in order of x; of the same length.
    labels : sequence of str
        Text of each point, shown under the pointer; may be empty.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class Lines:
    """A chart of lines, or of points.

    Parameters
    ----------
    caption : str
    series : sequence of Series
    x_label, y_label : str
    is_step : bool
        Whether a value holds until the next one.
    is_log : bool
        Whether the y-axis is logarithmic; values that are not positive lie at its lower end.
    has_points : bool
        Whether to draw points in the place of lines.
    limits : sequence of (str, float)
        Lines across the chart, such as a tolerance.
    y_from : float
        Where a linear y-axis begins, unless a value is lower.
    """

    template: ClassVar[str] = "lines"
    caption: str
    series: Sequence[Series]
    x_label: str = ""
    y_label: str = ""
    is_step: bool = False
    is_log: bool = False
    has_points: bool = False
    limits: Sequence[tuple[str, float]] = ()
    y_from: float = 0.0

    @cached_property
    def chart(self) -> LineChart:
        """Return where everything lies."""
        return LineChart(self)


@dataclass(frozen=True, slots=True)
class Tick:
    """A number at an axis: where it stands, and as text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line, with what it is of and its value in words."""

    x: float
    y: float
    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is drawn."""

    name: str
    colour: int
    path: str
    points: Sequence[Point]


class LineChart:
    """A chart in units of its picture.

    Parameters
    ----------
    lines : Lines
        The data; points of numbers that are not finite are left out.
    """

    width, height = WIDTH, HEIGHT
    left, right, top, bottom = LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        xs = [x for series in lines.series for x in series.xs if math.isfinite(x)]
        ys = [y for series in lines.series for y in series.ys if math.isfinite(y)]
        ys += [limit for _, limit in lines.limits]
        self._xs = (min(xs, default=0.0), max(xs, default=1.0))
        low = min((lines.y_from, *ys))
        self._ys = _log_range(ys) if lines.is_log else (low, _top(ys, low))
        self.lines = [self._line(number, series) for number, series in enumerate(lines.series)]

    @property
    def data(self) -> dict[str, object]:
        """Return the data of the page's program: the points of each line, and each label once."""
        labels = dict.fromkeys(point.label for line in self.lines for point in line.points)
        order = {label: number for number, label in enumerate(labels)}
        return {
            "labels": list(labels),
            "unit": self._lines.y_label,
            "lines": [
                {
                    "name": line.name,
                    "colour": line.colour,
                    "points": [[p.x, p.y, order[p.label], p.value] for p in line.points],
                }
                for line in self.lines
            ],
        }

    @property
    def x_ticks(self) -> list[Tick]:
        """Numbers below the chart."""
        return [Tick(self._x(x), number_text(x)) for x in round_numbers(*self._xs)]

    @property
    def y_ticks(self) -> list[Tick]:
        """Numbers at its left."""
        low, high = self._ys
        if not self._lines.is_log:
            return [Tick(self._y(y), number_text(y)) for y in round_numbers(low, high)]
        every = max(1, math.ceil((high - low) / NUM_TICKS))
        decades = range(round(low), round(high) + 1, every)
        in_full = all(-4 < decade < 7 for decade in decades)
        return [
            Tick(self._y(10.0**decade), number_text(10.0**decade) if in_full else f"1e{decade}")
            for decade in decades
        ]

    @property
    def limits(self) -> list[Tick]:
        """Lines across."""
        return [Tick(self._y(limit), name) for name, limit in self._lines.limits]

    def _x(self, x: float) -> float:
        low, high = self._xs
        part = (x - low) / (high - low) if high > low else 0.5
        return round(self.left + part * (self.right - self.left), 2)

    def _y(self, y: float) -> float:
        low, high = self._ys
        if self._lines.is_log:
            y = max(math.log10(y), low) if y > 0 else low
        part = (y - low) / (high - low) if high > low else 0.5
        return round(self.bottom - part * (self.bottom - self.top), 2)

    def _line(self, number: int, series: Series) -> Line:
        """A line in units of the picture."""
        points = [
            Point(
                self._x(x),
                self._y(y),
                series.labels[index] if series.labels else f"{self._lines.x_label} {x:g}",
                number_text(float(f"{y:.4g}")),
            )
            for index, (x, y) in enumerate(zip(series.xs, series.ys, strict=True))
            if math.isfinite(x) and math.isfinite(y)
        ]
        words = []
        for index, point in enumerate(points):
            if self._lines.has_points:
                words.append(f"M{point.x} {point.y}h0")
            elif not index:
                words.append(f"M{point.x} {point.y}")
            elif self._lines.is_step:
                words.append(f"H{point.x}V{point.y}")
            else:
                words.append(f"L{point.x} {point.y}")
        return Line(series.name, number % NUM_COLOURS, "".join(words), points)


def _top(ys: Sequence[float], low: float) -> float:
    """The upper end of a linear axis."""
    highest = max(ys, default=low)
    return low + 1.05 * (highest - low) if highest > low else low + 1.0


def _log_range(ys: Sequence[float]) -> tuple[float, float]:
    """The ends of a logarithmic axis, as powers of ten."""
    positive = [math.log10(y) for y in ys if y > 0]
    if not positive:
        return -1.0, 0.0
    high = math.ceil(max(positive))
    low = max(math.floor(min(positive)), high - MAX_DECADES)
    return (float(low - 1 if low == high else low), float(high))
