"""Round numbers along the axes of charts."""

from __future__ import annotations

import math

NUM_TICKS = 6
"""Numbers along an axis, about."""


def round_numbers(low: float, high: float) -> list[float]:
    """Some round numbers between two others."""
    if high <= low:
        return [low]
    raw = (high - low) / NUM_TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * unit for unit in (1, 2, 5, 10) if power * unit >= raw)
    first = math.ceil(low / step)
    return [float(f"{n * step:.12g}") for n in range(first, math.floor(high / step) + 1)]


def number_text(number: float) -> str:
    """A number at an axis: in full, its thousands apart, unless it is huge or tiny."""
    if number and not 1e-4 <= abs(number) < 1e7:
        return f"{number:g}"
    return f"{number:,.10g}"
