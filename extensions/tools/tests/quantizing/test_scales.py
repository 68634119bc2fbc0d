"""Scales of ranges and weights."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from armpy import DataType
from armpy_tools.quantize.scales import Range, activation_scale, stored, weight_scales

REALS = st.floats(-1e6, 1e6, allow_nan=False, width=32)


def test_a_range_from_zero_takes_every_integer() -> None:
    scale = activation_scale(Range(0.0, 25.5), DataType.QASYMM_S8)
    assert scale.scale == pytest.approx(0.1)
    assert scale.zero_point == -128


def test_sixteen_bits_are_symmetric() -> None:
    scale = activation_scale(Range(-1.0, 32.767), DataType.QSYMM_S16)
    assert scale.scale == pytest.approx(0.001)
    assert scale.zero_point == 0


@given(REALS, REALS)
def test_zero_is_exact_and_the_range_is_held_to_half_a_step(one: float, other: float) -> None:
    extent = Range(min(one, other), max(one, other))
    width = max(extent.high, 0.0) - min(extent.low, 0.0)
    # A scale below float32's smallest normal number has too few bits to hold the range.
    assume(width == 0 or width / 255 >= np.finfo(np.float32).tiny)
    scale = activation_scale(extent, DataType.QASYMM_S8)
    ends = np.array([extent.low, 0.0, extent.high])
    held = scale.dequantize(stored(ends, scale, DataType.QASYMM_S8))
    assert held[1] == 0
    assert np.abs(held - ends).max() <= scale.scale * 1.01


def test_a_channel_of_zeros_has_a_scale_all_the_same() -> None:
    weights = np.array([[0, 0], [1, -2.54]], np.float32)
    scales = weight_scales(weights, 0, None, 1.0)
    np.testing.assert_array_equal(stored(weights, scales, DataType.QSYMM_S8), [[0, 0], [50, -127]])


def test_weights_do_without_the_lowest_integer() -> None:
    weights = np.array([[-1, 1]], np.float32)
    scales = weight_scales(weights, None, None, 1.0)
    np.testing.assert_array_equal(stored(weights, scales, DataType.QSYMM_S8), [[-127, 127]])


def test_a_large_bias_widens_the_scale_of_its_weights() -> None:
    weights, bias = np.array([[1e-7]], np.float32), np.array([1000], np.float32)
    scales = weight_scales(weights, 0, bias, 0.01)
    assert bias[0] / (scales.scales[0] * 0.01) <= 1.001 * 2**30
