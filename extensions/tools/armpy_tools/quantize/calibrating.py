"""Finds the ranges of tensors from their values while data are run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.graph import Value
from armpy.ops.operation import Array
from armpy_tools.comparison.trace import TensorTrace
from armpy_tools.quantize.histograms import narrowed
from armpy_tools.quantize.options import QuantizeOptions
from armpy_tools.quantize.scales import Range

NUM_BINS = 2048
"""Of a tensor's histogram."""

_Counts = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibration of tensors by data: ranges and means.

    Parameters
    ----------
    means : mapping of Value to ndarray, float64, shape (channels)
        Mean of each index of the last axis (of axis 1 for those of `channels_first`).
    """

    ranges: Mapping[Value, Range]
    means: Mapping[Value, npt.NDArray[np.float64]]


def calibrate(
    trace: TensorTrace,
    samples: Sequence[Sequence[Array]],
    values: Sequence[Value],
    options: QuantizeOptions,
) -> Calibration:
    """Run data and find the ranges of tensors.

    Parameters
    ----------
    trace : TensorTrace
        The float graph.
    samples : sequence of sequence of ndarray
        Arrays for the graph's inputs, in order; one at least.
    values : sequence of Value
        Among those that are shown.
    options : QuantizeOptions
        Its method.

    Raises
    ------
    InvalidArgumentError
        If there are no data, or a tensor becomes infinite or no number.
    """
    if not samples:
        raise InvalidArgumentError(
            "there are no data to find ranges in", where="data", fix="Give one sample at least"
        )
    extremes = [Range(np.inf, -np.inf)] * len(values)
    sums: list[npt.NDArray[np.float64]] = [np.zeros(1)] * len(values)
    for number, arrays in enumerate(trace.run(samples, values), 1):
        for index, array in enumerate(arrays):
            if array.size:
                low, high = float(array.min()), float(array.max())
                if not math.isfinite(low) or not math.isfinite(high):
                    raise _not_finite(values[index], low, high, f"{number} of {len(samples)}")
                extremes[index] = extremes[index].joined(Range(low, high))
                sums[index] = sums[index] + _channel_means(array)
    ranges = [extreme if extreme.low <= extreme.high else Range(0.0, 0.0) for extreme in extremes]
    means = {value: total / len(samples) for value, total in zip(values, sums, strict=True)}
    if options.method != "minmax":
        counts = _histograms(trace, samples, values, ranges)
        ranges = [
            narrowed(extent, count, options) for extent, count in zip(ranges, counts, strict=True)
        ]
    return Calibration(dict(zip(values, ranges, strict=True)), means)


def _channel_means(array: Array) -> npt.NDArray[np.float64]:
    """Mean of each index of the last axis."""
    if array.ndim < 2:
        return np.asarray(array.mean(dtype=np.float64)).reshape(1)
    rows = array.reshape(-1, array.shape[-1])
    return np.asarray(rows.mean(axis=0, dtype=np.float64))


def _not_finite(value: Value, low: float, high: float, sample: str) -> InvalidArgumentError:
    """Describe a tensor whose elements are not all numbers."""
    return InvalidArgumentError(
        f"the tensor holds infinity, or no number, on sample {sample} of the data",
        where=f"tensor '{value.name}'",
        expected="finite numbers",
        actual=f"{low:g} to {high:g}",
        fix="Check whether the data are like those that the model was trained with",
    )


def _histograms(
    trace: TensorTrace,
    samples: Sequence[Sequence[Array]],
    values: Sequence[Value],
    ranges: Sequence[Range],
) -> list[_Counts]:
    """Count each tensor's elements in each of `NUM_BINS` equal parts of its range."""
    counts = [np.zeros(NUM_BINS) for _ in values]
    for arrays in trace.run(samples, values):
        for array, extent, count in zip(arrays, ranges, counts, strict=True):
            width = (extent.high - extent.low) / NUM_BINS
            if width > 0:
                bins = ((array.ravel() - np.float32(extent.low)) / np.float32(width)).astype(
                    np.intp
                )
                np.clip(bins, 0, NUM_BINS - 1, out=bins)
                np.add(count, np.bincount(bins, minlength=NUM_BINS), out=count)
    return counts
