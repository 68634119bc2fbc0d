"""Functions of stored integers, worked by hand or within a step of the real function."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from armpy.core.numerics import integer_functions as functions
from armpy.core.numerics import softmax
from armpy.core.numerics.elementary import ROUNDED
from armpy.core.numerics.lookup_table import (
    StoredFunction,
    by_interpolation,
    by_table,
    interpolate,
    interpolation_table,
    total_functions,
)
from armpy.core.numerics.quantization import QuantizationParameters

EVERY_INT8 = np.arange(-128, 128)
EVERY_INT16 = np.arange(-32768, 32768)
INT8 = QuantizationParameters.of(0.05, -7, np.int8)
FINER = QuantizationParameters.of(0.03, 11, np.int8)
UINT8 = QuantizationParameters.of(0.05, 128 - 7, np.uint8)


def real(stored: np.ndarray, info: QuantizationParameters) -> np.ndarray:
    values: np.ndarray = (stored - info.zero_point) * float(info.scale)
    return values


def steps_off(found: np.ndarray, values: np.ndarray, info: QuantizationParameters) -> float:
    """How far stored integers are from the exact ones, which are saturated."""
    exact = np.clip(values / float(info.scale) + info.zero_point, info.lowest, info.highest)
    return float(np.abs(found - exact).max())


def test_requantisation_rounds_halves_as_gemmlowp() -> None:
    half = QuantizationParameters.of(1.0, 0, np.int8)
    whole = QuantizationParameters.of(2.0, 0, np.int8)
    results = functions.requantized(half, whole)(np.array([-128, -3, -1, 0, 1, 3, 127], np.int8))
    # Halves go up: with a ratio of exactly 1/2 nothing is left for the second rounding.
    assert results.tolist() == [-64, -1, 0, 0, 1, 2, 64]
    assert functions.requantized(whole, half)(np.array([-100, 63, 64])).tolist() == [
        -128,
        126,
        127,
    ]


def test_requantisation_is_within_half_a_step() -> None:
    results = functions.requantized(INT8, FINER)(EVERY_INT8)
    assert steps_off(results, real(EVERY_INT8, INT8), FINER) <= 0.5 + 1e-6
    concatenated = functions.concatenated(INT8, FINER)(EVERY_INT8)
    assert steps_off(concatenated, real(EVERY_INT8, INT8), FINER) <= 0.5 + 1e-4


@pytest.mark.parametrize(
    "make",
    [
        functions.requantized,
        functions.absolute,
        functions.hard_swish,
        functions.concatenated,
        functions.reciprocal_square_root,
        functions.square_root,
        lambda source, target: functions.leaky_relu(source, target, 0.3),
        lambda source, target: functions.clamped_rescaling(source, target, (0.0, 6.0)),
        lambda source, target: by_table(np.tanh, source, target),
    ],
)
def test_unsigned_integers_give_what_signed_ones_do(
    make: Callable[[QuantizationParameters, QuantizationParameters], StoredFunction],
) -> None:
    wanted = make(INT8, INT8)(EVERY_INT8.astype(np.int8)) + 128
    assert make(UINT8, UINT8)(np.arange(256, dtype=np.uint8)).tolist() == wanted.tolist()


def test_a_rescaling_before_a_sum_keeps_more_bits() -> None:
    info = QuantizationParameters.of(1.0, 3, np.int8)
    rescale = functions.shifted_rescaling(0.75, info, 8)
    assert rescale(np.array([3, 4, -128], np.int8)).tolist() == [0, 192, -131 * 192]


def test_rectifiers_clamp_at_stored_bounds() -> None:
    info = QuantizationParameters.of(0.5, 10, np.int8)
    stored = np.array([-128, 9, 10, 11, 22, 23, 127])
    relu6 = functions.clamped_rescaling(info, info, (0.0, 6.0))(stored)
    assert relu6.tolist() == [10, 10, 10, 11, 22, 22, 22]
    relu = functions.clamped_rescaling(info, info, (0.0, None))(stored)
    assert relu.tolist() == [10, 10, 10, 11, 22, 23, 127]


def test_a_clamp_beside_the_range_saturates() -> None:
    info = QuantizationParameters.of(1.0, 0, np.int8)
    for bounds, end in (((200.0, 300.0), 127), ((-300.0, -200.0), -128)):
        assert set(functions.clamped_rescaling(info, info, bounds)(EVERY_INT8)) == {end}


@pytest.mark.parametrize("alpha", [0.1, 1.5, -0.5, 0.0])
def test_leaky_relu_multiplies_what_is_negative(alpha: float) -> None:
    values = real(EVERY_INT8, INT8)
    results = functions.leaky_relu(INT8, FINER, alpha)(EVERY_INT8)
    assert steps_off(results, np.where(values >= 0, values, alpha * values), FINER) <= 0.5 + 1e-4


def test_magnitudes_have_no_sign() -> None:
    results = functions.absolute(INT8, FINER)(EVERY_INT8)
    assert steps_off(results, np.abs(real(EVERY_INT8, INT8)), FINER) <= 0.5 + 1e-4
    same = QuantizationParameters.of(1.0, 0, np.int8)
    assert functions.absolute(same, same)(np.array([-128, -1, 5])).tolist() == [127, 1, 5]


def test_hard_swish_is_within_a_step() -> None:
    values = real(EVERY_INT8, INT8)
    results = functions.hard_swish(INT8, FINER)(EVERY_INT8)
    assert steps_off(results, values * np.clip(values + 3, 0, 6) / 6, FINER) < 1


def test_a_reciprocal_root_is_within_a_step_and_saturates_where_there_is_none() -> None:
    source = QuantizationParameters.of(0.1, -100, np.int8)
    target = QuantizationParameters.of(0.02, -128, np.int8)
    results = functions.reciprocal_square_root(source, target)(EVERY_INT8)
    positive = source.zero_point < EVERY_INT8
    assert set(results[~positive].tolist()) == {127}
    values = real(EVERY_INT8[positive], source)
    assert steps_off(results[positive], 1 / np.sqrt(values), target) < 1


def test_a_square_root_is_rounded_down() -> None:
    """By hand, of TFLite's arithmetic: the root of 3 is 17.3 tenths, of 8 28.2."""
    source = QuantizationParameters.of(1, 0, np.int8)
    target = QuantizationParameters.of(0.1, -5, np.int8)
    assert functions.square_root(source, target)(np.array([3, 8, 0, -1])).tolist() == [
        12,
        23,
        -5,
        -5,
    ]


def test_samples_of_the_sigmoid_are_tflites() -> None:
    # The first of sigmoid_table_uint16 in TFLite's common.h, and its end.
    samples = functions._sigmoid_samples().tolist()
    assert samples[:8] == [32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513]
    assert samples[-1] == 65535
    assert len(samples) == 256


@pytest.mark.parametrize("scale", [2.0**-12, 2.0**-11, 0.0003, 1e-6, 1.0])
def test_16_bit_sigmoid_and_tanh_are_within_two_steps(scale: float) -> None:
    source = QuantizationParameters.of(scale, 0, np.int16)
    target = QuantizationParameters.of(2.0**-15, 0, np.int16)
    values = np.clip(real(EVERY_INT16, source), -700, 700)
    stored = EVERY_INT16.astype(np.int16)
    sigmoid = functions.logistic16(source)(stored)
    assert steps_off(sigmoid, 1 / (1 + np.exp(-values)), target) < 4
    tanh = functions.tanh16(source)(stored)
    assert steps_off(tanh, np.tanh(values), target) < 6
    assert (sigmoid[32768], tanh[32768]) == (1 << 14, 0)


def test_a_table_rounds_once_and_takes_nan_for_zero() -> None:
    source = QuantizationParameters.of(0.25, 0, np.int8)
    target = QuantizationParameters.of(0.5, -3, np.int8)
    table = by_table(lambda x: x, source, target)
    # Quarters divided by halves: halves away from zero.
    assert table(np.array([-3, -1, 0, 1, 2, 3])).tolist() == [-5, -4, -3, -2, -2, -1]
    holes = by_table(lambda x: np.where(x > 0, np.inf, np.nan), source, target)
    assert holes(np.array([-1, 1])).tolist() == [-3, 127]


def test_functions_of_tables_are_defined_everywhere() -> None:
    target = QuantizationParameters.of(0.1, 5, np.int8)
    defined = total_functions(target)
    for name, end in (("LOG", target.lowest), ("RSQRT", target.highest)):
        table = by_table(defined[name], QuantizationParameters.of(1, 0, np.int8), target)
        assert table(np.array([-128, -1, 0])).tolist() == [end] * 3
    assert by_table(defined["EXP"], target, target)(np.array([5])).tolist() == [15]


def test_interpolation_is_exact_at_samples_and_rounds_halves_up_between() -> None:
    table = np.zeros(513, np.int16)
    table[256:259] = [10, 11, -7]
    assert interpolate(table, np.array([0, 63, 64, 127, 128])).tolist() == [10, 10, 11, 11, 11]
    assert interpolate(table, 256) == -7
    slope = Fraction(-18, 128)
    wanted = [math.floor(11 + slope * i + Fraction(1, 2)) for i in (1, 64, 127)]
    assert interpolate(table, np.array([129, 192, 255])).tolist() == wanted


def test_the_ends_of_16_bits_are_looked_up() -> None:
    table = np.arange(513, dtype=np.int16)
    assert interpolate(table, np.array([-32768, 32767])).tolist() == [0, 512]


def test_an_interpolated_function_is_near_the_real_one() -> None:
    source = QuantizationParameters.of(2.0**-13, 0, np.int16)
    target = QuantizationParameters.of(2.0**-9, 0, np.int16)
    results = by_interpolation(ROUNDED.exp, source, target)(EVERY_INT16)
    # Samples lie 65535 / 512 apart and are looked up every 128: an argument off by one at the end.
    slope = math.exp(4) * float(source.scale / target.scale)
    assert steps_off(results, np.exp(real(EVERY_INT16, source)), target) < 1.5 + slope


def test_a_straight_line_has_an_exact_table() -> None:
    table = interpolation_table(lambda x: x, (1.0, 0), (1.0, 0), np.float64)
    # 512 steps from -32768 to 32767, each of 65535 / 512.
    exact = [Fraction(-32768) + Fraction(65535, 512) * i for i in range(513)]
    assert np.abs(table - np.array(exact, float)).max() <= 1
    assert (table[0], table[-1]) == (-32768, 32767)


def test_an_unbounded_function_is_clamped() -> None:
    steep = interpolation_table(np.exp, (1.0, 0), (1.0, 0))
    assert (steep[0], steep[-1]) == (0, 32767)


@pytest.mark.parametrize(
    ("shift", "integer_bits", "radius"), [(27, 4, 15), (27, 3, 14), (28, 3, 7), (2, 4, 503316480)]
)
def test_radii_of_softmax_are_those_of_tflites_test(
    shift: int, integer_bits: int, radius: int
) -> None:
    assert softmax.input_radius(shift, integer_bits) == radius


def test_arguments_of_softmax_have_five_integer_bits() -> None:
    multiplier, shift = softmax.argument_multiplier(0.25, 2.0)
    assert multiplier * 2.0 ** (shift - 31) == 0.5 * 2**26


def test_tables_of_softmax_follow_the_functions() -> None:
    exponentials, reciprocals = softmax.softmax16_tables()
    x = np.linspace(0, 1, 513)
    np.testing.assert_allclose(exponentials * 2.0**-15, np.exp(10 * (x - 1)), atol=1.1e-4)
    np.testing.assert_allclose(reciprocals * 2.0**-15, 1 / (1 + x), atol=4e-5)
