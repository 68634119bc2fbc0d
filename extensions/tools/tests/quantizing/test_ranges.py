"""Ranges that leave out rare values."""

import numpy as np
import pytest

from armpy_tools.quantize import QuantizeOptions
from armpy_tools.quantize.histograms import narrowed
from armpy_tools.quantize.scales import Range


def histogram(elements: np.ndarray) -> tuple[Range, np.ndarray]:
    counts, edges = np.histogram(elements, 2048)
    return Range(float(edges[0]), float(edges[-1])), counts.astype(np.float64)


def with_outlier() -> np.ndarray:
    return np.append(np.random.default_rng(0).normal(0, 1, 100_000), 100.0)


@pytest.mark.parametrize("method", ["percentile", "entropy"])
def test_an_outlier_is_cut_off(method: str) -> None:
    extent, counts = histogram(with_outlier())
    chosen = narrowed(extent, counts, QuantizeOptions(method=method, percentile=99.9))
    assert chosen.high < 30


@pytest.mark.parametrize("method", ["entropy", "mse"])
def test_a_flat_distribution_keeps_its_range(method: str) -> None:
    extent, counts = histogram(np.linspace(-1, 1, 200_001))
    chosen = narrowed(extent, counts, QuantizeOptions(method=method))
    assert chosen.high == pytest.approx(1, abs=0.03)
    assert chosen.low == pytest.approx(-1, abs=0.03)


def test_the_least_squared_error_is_the_one_that_trying_finds() -> None:
    elements = np.random.default_rng(2).laplace(0, 1, 200_000)
    extent, counts = histogram(elements)
    chosen = narrowed(extent, counts, QuantizeOptions(method="mse"))

    def error(share: float) -> float:
        return error_of(Range(extent.low * share, extent.high * share))

    def error_of(tried: Range) -> float:
        low, high = tried.low, tried.high
        step = (high - low) / 255
        rounded = np.clip(np.rint((elements - low) / step), 0, 255) * step + low
        return float(((rounded - elements) ** 2).mean())

    best = min(error(share) for share in np.linspace(0.2, 1, 81))
    assert error_of(chosen) <= 1.05 * best


def test_a_percentile_counts_both_ends_and_spares_an_end_at_zero() -> None:
    extent, counts = histogram(np.linspace(0, 1, 100_001))
    chosen = narrowed(extent, counts, QuantizeOptions(method="percentile", percentile=90))
    assert chosen.low == 0
    assert chosen.high == pytest.approx(0.95, abs=0.002)
