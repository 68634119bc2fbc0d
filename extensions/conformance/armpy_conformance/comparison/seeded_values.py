"""Seeded elements of input tensors, by what a case needs of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance.comparison.small_floats import nearest_bits

Values: TypeAlias = Callable[[np.random.Generator, TensorInfo], Array]
"""Makes a tensor's stored elements."""

Reals: TypeAlias = npt.NDArray[Any]  # Any: reals of any width, still to be stored


HOSTILE: npt.NDArray[np.float32] = np.array(
    [
        *(np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-39, -1e-39, 2.0**-126, 1e-8, -1e-8),
        *(0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, -3.0, 6.0, 20.0, -20.0, 88.5, -88.5, -87.5),
        *(-104.0, -128.5, 255.5, 65504.0, 65520.0, 1e5, -1e5, 8388607.5, 16777217.0, 2.0**31),
        *(-(2.0**31), 2147483520.0, 9.3e18, -9.3e18, 1e20, -1e20, 1e38, -1e38, 3.4e38, -3.4e38),
    ],
    np.float32,
)
"""What functions of floats are wrong at if anywhere: no number, infinities, zeros of both signs,
subnormals, ties of rounding, and the ends of exponentials, of float16, of integers, of float32."""


def stored(reals: Reals, info: TensorInfo) -> Array:
    """Reals as a tensor's plain numbers (small floats as their bit patterns)."""
    with np.errstate(over="ignore", invalid="ignore"):  # beyond a type's numbers are infinities
        if info.data_type.is_bit_pattern:
            return nearest_bits(np.asarray(reals), info.data_type)
        return np.asarray(reals).astype(info.data_type.dtype)


def _integers(rng: np.random.Generator, info: TensorInfo, low: int, high: int) -> Array:
    """Integers from `low` to `high`, both included, both there if there is room."""
    if info.data_type.is_narrow:
        low, high = (
            max(low, info.data_type.integer_range[0]),
            min(high, info.data_type.integer_range[1]),
        )
    array = rng.integers(low, high, info.known_shape, endpoint=True, dtype=np.int64)
    if array.size > 2:
        array.flat[0], array.flat[array.size - 1] = low, high
    return array.astype(info.data_type.dtype)


def _plain_integers(rng: np.random.Generator, info: TensorInfo, span: int, least: int) -> Array:
    """Small integers around 0, or from 0 where there is no sign."""
    low = -span if info.data_type.integer_range[0] < 0 else 0
    return _integers(rng, info, max(low, least), span)


def _like(
    rng: np.random.Generator, info: TensorInfo, step: float, span: int, least: int = -(2**31)
) -> Array:
    """Floats that are multiples of a step, quantised elements of the whole range, integers."""
    data_type = info.data_type
    if data_type is DataType.BOOLEAN:
        return rng.integers(0, 2, info.known_shape).astype(np.bool_)
    if data_type.is_float:
        low = max(-span, least)
        return stored(rng.integers(low, span, info.known_shape, endpoint=True) * step, info)
    if data_type.is_quantized:
        low, high = data_type.integer_range
        if least > 0:
            low = min(info.zero_point + least, high)
        if data_type.is_symmetric:
            low = max(low, -high)
        return _integers(rng, info, low, high)
    return _plain_integers(rng, info, min(span, 100), least)


def anything(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Floats in [-4, 4] in steps of 1/8; quantised elements of the whole range."""
    return _like(rng, info, 0.125, 32)


def grid(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Floats in [-2, 2] in steps of 1/2: their products add up exactly in any order."""
    return _like(rng, info, 0.5, 4)


def eighths(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Floats in [-1/2, 1/2] in steps of 1/8: as `grid`, and long sums of products stay near 1.

    Winograd's algorithm errs by millionths of the largest sum, tolerances are for numbers near 1.
    """
    return _like(rng, info, 0.125, 4)


def powers(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Numbers whose products are exact: 1/2, 1 and 2 with either sign; integers 1 to 3."""
    if info.data_type.is_float:
        signs = rng.choice([-1.0, 1.0], info.known_shape)
        return stored(signs * rng.choice([0.5, 1.0, 2.0], info.known_shape), info)
    if info.data_type.is_quantized:
        return _like(rng, info, 1, 1)
    return _plain_integers(rng, info, 3, 1)


def positive(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Floats in [1/8, 4]; quantised elements above the zero point; integers from 1."""
    return _like(rng, info, 0.125, 32, 1)


def far(rng: np.random.Generator, info: TensorInfo) -> Array:
    """As `anything`, but quantised elements are 32 and more from the zero point."""
    drawn = anything(rng, info)
    if not info.data_type.is_quantized:
        return drawn
    low, high = info.data_type.integer_range
    other = info.zero_point + (100 if info.zero_point < (low + high) // 2 else -100)
    return np.where(np.abs(drawn.astype(np.int64) - info.zero_point) < 32, other, drawn).astype(
        drawn.dtype
    )


def zeros(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Elements that stand for 0."""
    zero = info.zero_point if info.data_type.is_quantized else 0
    return np.full(info.known_shape, zero, info.data_type.dtype)


def few(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Numbers of which many are equal: -1, 0 and 1; quantised elements 0 to 2."""
    if info.data_type.is_quantized:
        return _integers(rng, info, 0, 2)
    return _like(rng, info, 1, 1)


def small(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Floats in [-1, 1] in steps of 1/64, for operands that are multiplied again and again."""
    return _like(rng, info, 2.0**-6, 64)


def distinct(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Elements that differ as far as the type can represent them, in random order."""
    data_type, count = info.data_type, info.num_elements
    if data_type is DataType.BOOLEAN:
        return anything(rng, info)
    order = rng.permutation(count).reshape(info.known_shape)
    if data_type.is_float:
        return stored((order % 256) / 4 - 16, info)
    low, high = data_type.integer_range
    low, high = max(low, -1000), min(high, 1000)
    return (low + order % (high - low + 1)).astype(data_type.dtype)


def below(limit: int) -> Values:
    """Make indices from 0 up to, not including, a limit."""
    return lambda rng, info: _integers(rng, info, 0, limit - 1)


def between(low: float, high: float) -> Values:
    """Make numbers of an interval, whatever the type."""

    def make(rng: np.random.Generator, info: TensorInfo) -> Array:
        if info.data_type.is_float:
            return stored(rng.uniform(low, high, info.known_shape), info)
        if info.data_type is DataType.BOOLEAN:
            return anything(rng, info)
        return _integers(rng, info, int(low), int(high))

    return make


def exactly(values: object) -> Values:
    """Make the given stored elements."""
    return lambda rng, info: np.asarray(values, info.data_type.dtype).reshape(info.known_shape)


def rows(low: int, high: int, step: float = 1.0) -> Values:
    """Make floats that are multiples of a step, with both limits in every batch item.

    Notes
    -----
    Operations that quantise floats per batch item then find a scale of exactly 1 with
    the limits -127 and 127 (no zero point) or -128 and 127 (with one), so that rounding
    does not depend on how a backend does it; of exactly `step`, if that is a power of two.
    """

    def make(rng: np.random.Generator, info: TensorInfo) -> Array:
        array = rng.integers(low, high, info.known_shape, endpoint=True)
        flat = array.reshape(array.shape[0], -1)
        flat[:, 0], flat[:, -1] = low, high
        return stored(array * step, info)

    return make


def reals(numbers: object) -> Values:
    """Make the given real numbers, whatever the type; the nearest ones if it is quantised."""

    def make(rng: np.random.Generator, info: TensorInfo) -> Array:
        reals = np.asarray(numbers, np.float64).reshape(info.known_shape)
        if info.data_type.is_quantized:
            reals = np.rint(reals / info.scale) + info.zero_point
            reals = np.clip(reals, *info.data_type.integer_range)
        return reals.astype(info.data_type.dtype)

    return make


_LANDMARKS = (0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 6.0, 1e-20, 1e-6, 11.0, 1e4)
"""Floats where functions bend, halves, and numbers near the ends of what most can take."""

_SMALLEST_SPAN = 20
"""Integers without a scale are small ones half of the time."""


def thorough(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Elements of the whole range, each if there is room; floats where functions bend."""
    return _thorough(rng, info, signed=True)


def thorough_positive(rng: np.random.Generator, info: TensorInfo) -> Array:
    """As `thorough`, with numbers above 0 only."""
    return _thorough(rng, info, signed=False)


def _thorough(rng: np.random.Generator, info: TensorInfo, signed: bool) -> Array:
    """Elements of the whole range, or of what of it is above 0, in an order made of chance."""
    data_type, count = info.data_type, info.num_elements
    if data_type is DataType.BOOLEAN:
        return anything(rng, info)
    if data_type.is_float:
        bends = np.array(_LANDMARKS if signed else _LANDMARKS[1:])
        low = -8.0 if signed else 1 / 64
        numbers = np.concatenate([bends, -bends if signed else [], np.linspace(low, 8.0, count)])
    else:
        low, high = data_type.integer_range
        if data_type.is_symmetric:
            low = max(low, -high)
        if not signed:
            low = min(info.zero_point + 1, high) if data_type.is_quantized else 1
        numbers = np.rint(np.linspace(low, high, count))
        if not data_type.is_quantized:
            least = max(low, -_SMALLEST_SPAN)
            small_ones = rng.integers(least, _SMALLEST_SPAN, count // 2, endpoint=True)
            numbers = np.concatenate([small_ones, np.linspace(low, high, count)])
            numbers = np.clip(numbers, max(low, -(2**31)), min(high, 2**31 - 1))
    return stored(rng.permutation(numbers[:count]).reshape(info.known_shape), info)


def halves(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Floats that are multiples of 1/2 or next to one, so that rounding decides."""
    count = info.num_elements
    numbers = (rng.integers(-300, 300, count) * 0.5).astype(np.float32)
    numbers = np.nextafter(numbers, numbers + rng.integers(-1, 2, count).astype(np.float32))
    return stored(numbers.reshape(info.known_shape), info)


def from_zero(rng: np.random.Generator, info: TensorInfo) -> Array:
    """As `thorough_positive`, with real 0 in a few places."""
    elements = thorough_positive(rng, info)
    elements[rng.random(elements.shape) < 1 / 8] = info.zero_point if info.quantization else 0
    return elements
