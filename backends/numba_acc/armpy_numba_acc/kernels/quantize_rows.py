"""Quantises rows of floats to bytes by the range that each row happens to have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import float64, int32, int64

from armpy_numba_acc.llvm.arithmetic.reals import absolute_f64
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import bits_to_f32, load_i32, store_f32, store_i32
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import BLOCK, share_items
from armpy_numba_acc.llvm.values import CodeValue
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.products import QuantizeRows
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise import functions as f
from armpy_numba_acc.tiles.row_pass import make_row_pass

_PARTS = 4
"""Of each row, where there are fewer rows."""

Scalar = Any  # Any: a float32 or an int32 of Numba's
Parameters = tuple[Scalar, Scalar, Scalar]

_ZERO, _ONE = np.float32(0), np.float32(1)
_HIGHEST = np.float32(127)
_LARGEST = np.float32(3.4028235e38)
_SIGNLESS = int32(0x7FFFFFFF)


@compiled
def _ordered(bits: Scalar) -> Scalar:
    """An integer in the order of floats from the bits of one, and the other way round."""
    return bits ^ ((bits >> int32(31)) & _SIGNLESS)


@compiled
def _extremes(source: Pointer, length: int) -> tuple[Scalar, Scalar]:
    """Lowest and highest of some floats and 0."""
    low, high = int32(0), int32(0)
    for i in range(length):
        key = _ordered(load_i32(source, i))
        low, high = min(low, key), max(high, key)
    return bits_to_f32(int64(_ordered(low))), bits_to_f32(int64(_ordered(high)))


@compiled
def _symmetric(low: Scalar, high: Scalar) -> Parameters:
    """Scale, its reciprocal, and the zero point 0."""
    reach = max(-low, high)
    # Numbers so small that the reciprocal of their scale is infinite count as 0.
    if not _HIGHEST / reach <= _LARGEST:
        reach = _HIGHEST
    return reach / _HIGHEST, _HIGHEST / reach, _ZERO


@compiled
def _asymmetric(low: Scalar, high: Scalar) -> Parameters:
    """Scale, its reciprocal, and the zero point from -128 to 127."""
    scale = (float64(high) - float64(low)) / 255.0
    if not _ONE / np.float32(scale) <= _LARGEST:
        scale = 1.0
    from_low, from_high = float64(low) / scale, float64(high) / scale
    exact = 127.0 - from_high
    if 128.0 - from_low < 127.0 + from_high:
        exact = -128.0 - from_low
    exact = min(max(exact, -128.0), 127.0)
    zero_point = np.float32(int64(absolute_f64(exact) + 0.49999999999999994))
    inverse = _ONE / np.float32(scale)
    return np.float32(scale), inverse, -zero_point if exact < 0 else zero_point


def make(isa: Isa, written: str, is_asymmetric: int) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the rows, or if these are too few, each of them.

    Reference: TFLite ``tensor_utils::SymmetricQuantizeFloats`` and ``AsymmetricQuantizeFloats``.
    """
    has_bytes = written == "u8"
    lowest = -128.0 if is_asymmetric else -127.0

    def convert(
        x: CodeValue, inverse: CodeValue, zero: CodeValue, scale: CodeValue, *_: CodeValue
    ) -> tuple[CodeValue, None]:
        steps = zero + x * inverse if is_asymmetric else x * inverse
        integers = f.to_stored(
            steps, steps.like(128.0) if has_bytes else -zero, steps.like(lowest), steps.like(127.0)
        )
        return (integers if has_bytes else integers.to_float() * scale), None

    read = reader(QuantizeRows)
    write = make_row_pass(isa, ("f32", written), convert, CodeValue.__add__, 0.0)
    parameters_of = _asymmetric if is_asymmetric else _symmetric
    size = 1 if has_bytes else 4
    base = 128 if isa.has_signed_dots else 0  # which multiplies elements less 128

    def quantize_rows(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        rows, length = call.rows, call.length
        first_row, last_row, begin, end = 0, rows, 0, length
        if rows >= min(num_shares, _PARTS):
            first_row, last_row = share_items(rows, shares, num_shares)
        else:
            # Few parts, as each looks through its whole row first.
            first, last = share_items(_PARTS, shares, num_shares)
            blocks = (length + BLOCK - 1) // BLOCK
            begin = min(blocks * first // _PARTS * BLOCK, length)
            end = min(blocks * last // _PARTS * BLOCK, length)
            if first == last:
                last_row = 0
        for row in range(first_row, last_row):
            here = call.source + 4 * row * length
            low, high = _extremes(here, length)
            span = float64(high) - float64(low)
            rest = np.float32(span - span)  # 0, but NaN if the range is infinite or none
            if rest != 0:
                low, high = _ZERO, _ZERO
            scale, inverse, zero = parameters_of(low, high)
            scale += rest  # makes NaN of all that the row is multiplied with
            if begin == 0:
                store_f32(call.ranges, 2 * row, scale)
                store_i32(call.ranges, 2 * row + 1, int32(base - 128 - int64(zero)))
            there = call.target + (row * length + begin) * size
            count = end - begin
            write(here + 4 * begin, there, count, inverse, zero, scale, _ZERO, _ZERO)

    return quantize_rows
