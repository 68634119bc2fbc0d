"""Ranges that leave out rare values, for a finer scale of all the rest.

References
----------
Migacz, "8-bit Inference with TensorRT", 2017 (entropy); Nagel et al., "A White Paper on Neural
Network Quantization", 2021, section 3.1 (mean squared error).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armpy_tools.quantize.options import QuantizeOptions
from armpy_tools.quantize.scales import Range

_Numbers = npt.NDArray[np.float64]

_SHARES = tuple(np.linspace(0.1, 1.0, 61).tolist())
"""Candidates for either end."""

_ROUNDS = 2
"""How often either end is moved in turn."""


def narrowed(found: Range, counts: _Numbers, options: QuantizeOptions) -> Range:
    """The range that an option's method chooses.

    Parameters
    ----------
    found : Range
        The range of all elements.
    counts : ndarray, float64, shape (bins)
        Number of elements in each of as many equal parts of the range.
    """
    total = counts.sum()
    if not total or not found.low < found.high:
        return found
    width = (found.high - found.low) / len(counts)
    centres = np.add(found.low, width * (np.arange(len(counts)) + 0.5), dtype=np.float64)
    if options.method == "percentile":
        return _percentile(found, counts, options.percentile)
    steps = 65535 if options.scheme == "int16x8" else 255
    whole = Range(min(found.low, 0.0), max(found.high, 0.0))
    cost = _divergence if options.method == "entropy" else _squared_error

    def best(tried: list[Range]) -> Range:
        costs = [cost(candidate, centres, counts, steps) for candidate in tried]
        # Of equal ones the widest: nothing is gained by cutting more off.
        return tried[len(costs) - 1 - int(np.argmin(costs[::-1]))]

    for _ in range(_ROUNDS):
        if whole.high > 0:
            whole = best([Range(whole.low, whole.high * share) for share in _SHARES])
        if whole.low < 0:
            whole = best([Range(whole.low * share, whole.high) for share in _SHARES])
    return whole


def _percentile(extent: Range, counts: _Numbers, percentile: float) -> Range:
    """The range without the outermost elements, half of them on either side.

    Notes
    -----
    On a side where the elements end at 0, as after a RELU, nothing is cut off.
    """
    width = (extent.high - extent.low) / len(counts)
    below = np.cumsum(counts) / counts.sum()
    rest = (1 - percentile / 100) / 2
    low, high = extent.low, extent.high
    if low < 0:
        low = extent.low + width * int(np.searchsorted(below, rest, "right"))
    if high > 0:
        high = extent.low + width * (int(np.searchsorted(below, 1 - rest)) + 1)
    return Range(min(low, 0.0), min(max(high, low + width), extent.high))


def _squared_error(tried: Range, centres: _Numbers, counts: _Numbers, steps: int) -> float:
    """Sum of the squares of what clamping and rounding move elements by."""
    step = (tried.high - tried.low) / steps
    clamped = np.clip(centres, tried.low, tried.high)
    inside = clamped == centres
    rounding = step * step / 12
    return float(((centres - clamped) ** 2 * counts).sum() + rounding * counts[inside].sum())


def _divergence(tried: Range, centres: _Numbers, counts: _Numbers, steps: int) -> float:
    """Return how far the distribution of quantised elements is from that of the real ones.

    Notes
    -----
    Clamped values count at the ends of the real distribution, and not at all in the other. The
    part that holds 0 is left out: after a RELU it is most of all, and exact in any case.
    """
    counts = counts.copy()
    counts[np.argmin(np.abs(centres))] = 0
    inside = (centres >= tried.low) & (centres <= tried.high)
    counts_inside = counts[inside]
    if not counts_inside.sum():
        return float("inf")
    real = counts_inside.copy()
    real[0] += counts[centres < tried.low].sum()
    real[-1] += counts[centres > tried.high].sum()
    levels = np.rint((centres[inside] - tried.low) * steps / (tried.high - tried.low)).astype(int)
    is_there = counts_inside > 0
    mass = np.bincount(levels, counts_inside, steps + 1)
    shared_by = np.bincount(levels, is_there, steps + 1)
    spread = np.where(is_there, (mass / np.maximum(shared_by, 1))[levels], 0.0)
    is_there &= real > 0
    p, q = real / real.sum(), spread / spread.sum()
    missing = p[(real > 0) & (spread == 0)].sum()
    return float((p[is_there] * np.log(p[is_there] / q[is_there])).sum() + missing * 20)
