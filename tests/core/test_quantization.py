"""Parameters of affine quantisation, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armpy.core.numerics.quantization import QuantizationParameters

INT8 = QuantizationParameters.of(0.5, 10, np.int8)


def test_integers_take_the_range_of_their_type() -> None:
    assert (INT8.lowest, INT8.highest) == (-128, 127)
    assert QuantizationParameters.of(1.0, 0, np.uint8).highest == 255
    assert [float(bound) for bound in INT8.real_range] == [-69.0, 58.5]


def test_the_scale_is_that_of_the_file() -> None:
    scale = QuantizationParameters.of(0.1, 0, np.int8).scale
    assert scale.dtype == np.float32
    assert float(scale) == pytest.approx(0.1, rel=1e-7)
    assert float(scale) != 0.1


def test_differences_from_the_zero_point_leave_the_type() -> None:
    differences = INT8.centred(np.array([-128, 127], np.int8))
    assert differences.dtype == np.int64
    assert differences.tolist() == [-138, 117]
    assert INT8.centred(11) == 1


def test_steps_are_moved_to_the_zero_point_and_saturated() -> None:
    steps = np.array([-1000, -138, 0, 117, 118])
    assert INT8.saturated(steps).tolist() == [-128, -128, 10, 127, 127]
    assert INT8.clamped(steps, 0, 20).tolist() == [0, 0, 10, 20, 20]
    assert steps[0] == -1000


@pytest.mark.parametrize(
    ("real", "stored"),
    [(0.0, 10), (6.0, 22), (0.25, 11), (-0.25, 9), (0.2499, 10), (-200.0, -390)],
)
def test_a_real_number_is_stored_as_the_next_integer_halves_away(real: float, stored: int) -> None:
    assert INT8.nearest(real) == stored


def test_numbers_beyond_all_integers_stay_finite() -> None:
    assert INT8.nearest(math.inf) > 1 << 30
    assert INT8.nearest(-1e38) < -(1 << 30)


@pytest.mark.parametrize(
    ("bounds", "clamp"),
    [
        ((None, None), (-128, 127)),
        ((0.0, None), (10, 127)),
        ((0.0, 6.0), (10, 22)),
        ((-1.0, 1.0), (8, 12)),
        ((-1000.0, 1000.0), (-128, 127)),
    ],
)
def test_an_activation_clamps_within_the_range(
    bounds: tuple[float | None, float | None], clamp: tuple[int, int]
) -> None:
    assert INT8.clamp_of(bounds) == clamp
