"""A chart of speed by model, from the figures of the page about performance.

A row for each processor has a dot for each network: the time of the fastest other engine by
armpy's, on a logarithmic axis with a line at 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PERFORMANCE = Path(__file__).parents[2] / "docs" / "performance.md"
MARK = "<!-- chart of speeds -->"
"""The line of a page below which the chart stands on the site."""

_RATIOS = {"Zen 4": 3, "Sapphire Rapids": 7, "Zen 3": 9}
"""Column of the table of networks with the ratio on one thread, by a word in a processor's name."""

_LOWEST, _HIGHEST = 0.25, 16.0  # of the axis
_TICKS = (0.25, 0.5, 1, 2, 4, 8, 16)
_LEFT, _RIGHT = 3.0, 97.0  # per cent of the width
_NARROW = 520.0  # pixels of the width at which dots touch and do not overlap
_RADIUS, _HEADING, _GAP = 4.5, 24.0, 20.0  # pixels

Dot = tuple[str, float]  # name and ratio of a network


def connect(app: Sphinx) -> None:
    """Connect with Sphinx."""
    app.connect("source-read", add_chart)


def add_chart(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the chart below its mark."""
    if MARK in source[0]:
        below = f"```{{raw}} html\n{draw(read(PERFORMANCE.read_text('utf-8')))}\n```"
        source[0] = source[0].replace(MARK, f"{MARK}\n\n{below}")


def read(text: str) -> dict[str, list[Dot]]:
    """Networks and their ratios by processor, from the page about performance.

    Raises
    ------
    ValueError
        If the page has no table of networks, or its columns are others.
    """
    summary = _table(text, "## Summary")
    heading, *rows = _table(text, "## Networks")
    if [heading[column] for column in _RATIOS.values()] != ["ratio", "ratio", "Zen 3"]:
        raise ValueError(f"docs/performance.md: other columns of networks: {heading}")
    return {
        next(name for name in summary[0] if word in name): [
            (row[0], float(row[column])) for row in rows if row[column]
        ]
        for word, column in _RATIOS.items()
    }


def draw(processors: dict[str, list[Dot]]) -> str:
    """Draw the chart as SVG whose dots keep their size on narrow screens."""
    parts: list[str] = []
    y = 0.0
    for processor, dots in processors.items():
        offsets = _swarm(dots)
        half = max(map(abs, offsets)) + _RADIUS
        faster = sum(ratio > 1 for _, ratio in dots)
        parts.append(
            f'<text x="0" y="{y + 14:.0f}" class="name">{escape(processor)}</text>'
            f'<text x="100%" y="{y + 14:.0f}" class="count">'
            f"{faster} of {len(dots)} faster</text>"
        )
        centre = y + _HEADING + half
        parts += (
            f'<circle cx="{_position(ratio):.2f}%" cy="{centre + offset:.1f}" r="{_RADIUS - 0.5}">'
            f"<title>{escape(name)}: {ratio:g}</title></circle>"
            for (name, ratio), offset in zip(dots, offsets, strict=True)
        )
        y = centre + half + _GAP
    summary = ", ".join(
        f"{processor}: {min(ratios):g} to {max(ratios):g}"
        for processor, dots in processors.items()
        for ratios in [[ratio for _, ratio in dots]]
    )
    return (
        f'<svg class="speeds" role="img" width="100%" height="{y + 40:.0f}"'
        f' aria-label="Ratios of networks by processor: {escape(summary)}">'
        f"{''.join(_axis(y))}{''.join(parts)}</svg>"
    )


def _axis(height: float) -> Iterator[str]:
    """Lines, numbers and words of the axis, below what is drawn."""
    for tick in _TICKS:
        x = _position(tick)
        kind = ' class="one"' if tick == 1 else ""
        yield f'<line x1="{x:.2f}%" x2="{x:.2f}%" y1="{_HEADING}" y2="{height}"{kind}/>'
        yield f'<text x="{x:.2f}%" y="{height + 16:.0f}" class="tick">{tick:g}×</text>'
    words, one = height + 34, _position(1)
    yield f'<text x="{one - 1.5:.2f}%" y="{words:.0f}" class="slower">← armpy is slower</text>'
    yield f'<text x="{one + 1.5:.2f}%" y="{words:.0f}" class="faster">armpy is faster →</text>'


def _position(ratio: float) -> float:
    """Place of a ratio in per cent of the width."""
    part = math.log(ratio / _LOWEST) / math.log(_HIGHEST / _LOWEST)
    return _LEFT + part * (_RIGHT - _LEFT)


def _swarm(dots: Sequence[Dot]) -> list[float]:
    """Offsets from the middle of the row at which no dots overlap, by trying the nearest first."""
    placed: list[tuple[float, float]] = []
    offsets = [0.0] * len(dots)
    for number in sorted(range(len(dots)), key=lambda index: dots[index][1]):
        x = _position(dots[number][1]) * _NARROW / 100
        near = [(x - other, y) for other, y in placed if x - other < 2 * _RADIUS]
        step = 0
        while any(math.hypot(dx, _offset(step) - y) < 2 * _RADIUS for dx, y in near):
            step += 1
        offsets[number] = _offset(step)
        placed.append((x, offsets[number]))
    return offsets


def _offset(step: int) -> float:
    """Offsets in the order in which they are tried: 0, 1, -1, 2, -2 and so on."""
    return float((step + 1) // 2 * (1 if step % 2 else -1))


def _table(text: str, heading: str) -> list[list[str]]:
    """Cells of the first table below a heading, without the line below its first row.

    Raises
    ------
    ValueError
        If there is none.
    """
    match = re.search(rf"^{heading}$.*?^(\|.*?)(?:\n\n|\Z)", text, re.M | re.S)
    if match is None:
        raise ValueError(f"docs/performance.md: no table below {heading!r}")
    lines = [line for line in match[1].splitlines() if not line.startswith("|--")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
