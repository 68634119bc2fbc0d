"""Neighbours of resizing, against TFLite's published examples and exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest

from armpy.core.numerics.resize import (
    FRACTION_BITS,
    Samples,
    integer_samples,
    nearest_positions,
    real_samples,
)

RULES = [(False, False), (True, False), (False, True)]
"""Whether corners are aligned, and whether elements lie in the middle of pixels."""

SIZES = [(2, 3), (3, 2), (4, 4), (1, 5), (5, 1), (7, 16), (16, 7), (100, 33)]


def exact_position(i: int, size: int, out_size: int, *, corners: bool, middles: bool) -> Fraction:
    aligned = corners and out_size > 1
    scale = Fraction(size - 1, out_size - 1) if aligned else Fraction(size, out_size)
    return (i + Fraction(1, 2)) * scale - Fraction(1, 2) if middles else i * scale


def interpolated(samples: Samples, line: list[float]) -> list[float]:
    values = np.array(line)
    both = values[samples.lower] * samples.lower_weights
    total: list[float] = (both + values[samples.upper] * samples.upper_weights).tolist()
    return total


def test_the_examples_of_tflite() -> None:
    # resize_bilinear_test: HorizontalResize, and the same with 3, 6, 9, 12 for 2 by 2.
    legacy = real_samples(2, 3, align_corners=False, half_pixel_centers=False)
    assert interpolated(legacy, [3, 6]) == pytest.approx([3, 5, 6])
    assert interpolated(legacy, [3, 9]) == pytest.approx([3, 7, 9])
    # Half pixels: the middle of three lies between both, the others are past the ends.
    middles = real_samples(2, 3, align_corners=False, half_pixel_centers=True)
    assert interpolated(middles, [1, 2]) == pytest.approx([1, 1.5, 2])
    corners = real_samples(2, 3, align_corners=True, half_pixel_centers=False)
    assert interpolated(corners, [1, 2]) == pytest.approx([1, 1.5, 2])


@pytest.mark.parametrize(("corners", "middles"), RULES)
@pytest.mark.parametrize(("size", "out_size"), SIZES)
def test_what_is_interpolated_lies_where_it_should(
    size: int, out_size: int, corners: bool, middles: bool
) -> None:
    # A ramp returns the positions themselves, within the image.
    ramp = list(map(float, range(size)))
    rule = {"align_corners": corners, "half_pixel_centers": middles}
    positions = [
        exact_position(i, size, out_size, corners=corners, middles=middles) for i in range(out_size)
    ]
    expected = np.clip(np.array(positions, float), 0, size - 1).tolist()
    real = interpolated(real_samples(size, out_size, **rule), ramp)
    assert real == pytest.approx(expected, abs=2e-5)
    samples = integer_samples(size, out_size, **rule)
    stored = [value / (1 << FRACTION_BITS) for value in interpolated(samples, ramp)]
    # The scale is rounded to 10 bits once, and multiplied by the position.
    assert stored == pytest.approx(expected, abs=(out_size + 1) * 2.0**-FRACTION_BITS)


@pytest.mark.parametrize(("corners", "middles"), RULES)
@pytest.mark.parametrize(("size", "out_size"), SIZES)
def test_integer_weights_are_shares_of_one(
    size: int, out_size: int, corners: bool, middles: bool
) -> None:
    samples = integer_samples(size, out_size, align_corners=corners, half_pixel_centers=middles)
    total = samples.lower_weights + samples.upper_weights
    assert total.tolist() == [1 << FRACTION_BITS] * out_size
    assert samples.lower.min() >= 0
    assert samples.upper.max() <= size - 1


@pytest.mark.parametrize("middles", [False, True])
@pytest.mark.parametrize(("size", "out_size"), [(2, 4), (4, 2), (8, 4), (4, 16), (3, 6), (1, 8)])
def test_the_nearest_element_is_the_one_a_position_falls_upon(
    size: int, out_size: int, middles: bool
) -> None:
    # Sizes for which float32 is exact.
    positions = nearest_positions(size, out_size, align_corners=False, half_pixel_centers=middles)
    offset = Fraction(1, 2) if middles else Fraction(0)
    expected = [floor((i + offset) * Fraction(size, out_size)) for i in range(out_size)]
    assert positions.tolist() == [min(position, size - 1) for position in expected]


def test_the_nearest_element_with_aligned_corners_rounds_halves_up() -> None:
    positions = nearest_positions(4, 7, align_corners=True, half_pixel_centers=False)
    assert positions.tolist() == [ceil(Fraction(i, 2)) for i in range(7)]
    assert nearest_positions(4, 1, align_corners=True, half_pixel_centers=False).tolist() == [0]
