from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armpy.core.numerics import float_bits, float_values
from armpy.types import DataType
from armpy_conformance.comparison import small_floats

ml_dtypes = pytest.importorskip("ml_dtypes")

FORMATS = {
    "BFLOAT16": "bfloat16",
    "FLOAT8_E4M3FN": "float8_e4m3fn",
    "FLOAT8_E4M3FNUZ": "float8_e4m3fnuz",
    "FLOAT8_E5M2": "float8_e5m2",
    "FLOAT8_E5M2FNUZ": "float8_e5m2fnuz",
    "FLOAT8_E8M0": "float8_e8m0fnu",
    "FLOAT4_E2M1": "float4_e2m1fn",
}


def patterns(name: str) -> npt.NDArray[Any]:
    """Every bit pattern of a format."""
    bits = {"BFLOAT16": 16, "FLOAT4_E2M1": 4}.get(name, 8)
    return np.arange(1 << bits).astype(np.uint16 if bits == 16 else np.uint8)


def numbers(name: str) -> npt.NDArray[np.float32]:
    """Every number of a format, what lies halfway between two, and numbers next to both."""
    values = float_values(patterns(name), name)
    values = np.sort(values[np.isfinite(values)])
    with np.errstate(over="ignore"):
        halves = (values[1:].astype(np.float64) + values[:-1]) / 2
    all_of_them = np.concatenate([values, halves.astype(np.float32)])
    around = [np.nextafter(all_of_them, np.float32(side)) for side in (-np.inf, np.inf)]
    with np.errstate(over="ignore"):
        beyond = np.array([1.01, 1.03, 1.0625, 1.1, 1.25, 1.3], np.float32) * values[-1]
    if name == "FLOAT8_E8M0":
        return np.concatenate([all_of_them, *around])
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf], np.float32)
    return np.concatenate([all_of_them, *around, beyond, -beyond, special])


def as_library(values: npt.NDArray[np.float32], name: str) -> npt.NDArray[Any]:
    """Bit patterns that ml_dtypes makes."""
    converted = values.astype(getattr(ml_dtypes, FORMATS[name]))
    bits: npt.NDArray[Any] = converted.view(np.uint16 if name == "BFLOAT16" else np.uint8)
    return bits


@pytest.mark.parametrize("name", FORMATS)
def test_every_pattern_stands_for_the_number_that_ml_dtypes_reads(name: str) -> None:
    read = patterns(name).view(getattr(ml_dtypes, FORMATS[name])).astype(np.float32)
    np.testing.assert_array_equal(float_values(patterns(name), name), read)


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_and_ties_and_what_is_next_to_them_round_as_in_ml_dtypes(name: str) -> None:
    values = numbers(name)
    if name == "FLOAT8_E8M0":
        values = values[values >= 2.0**-126]  # the library rounds all subnormals up
    bits, wanted = float_bits(values, name, saturate=False), as_library(values, name)
    is_nan = np.isnan(float_values(wanted, name))
    np.testing.assert_array_equal(np.isnan(float_values(bits, name)), is_nan)
    np.testing.assert_array_equal(bits[~is_nan], wanted[~is_nan])


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("FLOAT8_E4M3FN", 448.0),
        ("FLOAT8_E4M3FNUZ", 240.0),
        ("FLOAT8_E5M2", 57344.0),
        ("FLOAT8_E5M2FNUZ", 57344.0),
        ("FLOAT4_E2M1", 6.0),
    ],
)
def test_what_is_too_large_becomes_the_largest_number(name: str, largest: float) -> None:
    values = np.array([largest, 1e9, np.inf, -np.inf, -1e9], np.float32)
    signs = np.array([1, 1, 1, -1, -1], np.float32)
    np.testing.assert_array_equal(float_values(float_bits(values, name), name), signs * largest)


@pytest.mark.parametrize(
    ("rounding", "exponents"),
    [("down", [127, 127, 127, 128, 126]), ("up", [127, 128, 128, 128, 127]), ("nearest", None)],
)
def test_powers_of_two_round_up_and_down(rounding: str, exponents: list[int] | None) -> None:
    values = np.array([1.0, 1.25, 1.5, 2.0, 0.875], np.float32)
    bits = float_bits(values, "FLOAT8_E8M0", rounding=rounding)
    np.testing.assert_array_equal(bits, exponents or [127, 127, 128, 128, 127])


@pytest.mark.parametrize("name", FORMATS)
def test_the_kit_reads_patterns_as_the_library_does(name: str) -> None:
    data_type = DataType[name]
    bits = patterns(name)
    with np.errstate(invalid="ignore"):  # patterns of NaN
        wanted = bits.view(getattr(ml_dtypes, FORMATS[name])).astype(np.float64)
        read = small_floats.real_numbers(bits, data_type)
    is_finite = np.isfinite(wanted)
    np.testing.assert_array_equal(read[is_finite], wanted[is_finite])
    again = small_floats.nearest_bits(wanted[is_finite], data_type)
    np.testing.assert_array_equal(small_floats.real_numbers(again, data_type), wanted[is_finite])
