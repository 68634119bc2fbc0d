"""What reductions do with elements: how they are read, combined, and written in the end."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# What Numba compiles has no types for mypy.

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import int32, int64, njit, types
from numba.extending import intrinsic

from armpy.records import dataclass
from armpy_numba_acc.llvm.fixed_point import limited, rescaled
from armpy_numba_acc.llvm.pointers import (
    load_bf16,
    load_f32,
    load_f64,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    store_f32,
    store_i16,
    store_i32,
    store_u8,
)

_SCALE, _OFFSET, _SHIFT, _ZERO_POINT = 13, 14, 15, 16
"""Which of a reduction's arguments say what is done in the end."""


@dataclass(frozen=True, slots=True)
class Accumulation:
    """Functions for code that Numba compiles.

    Parameters
    ----------
    size : int
        Bytes of an element.
    first : float32 or int32
        What an accumulator begins with.
    load : callable
        ``load(base, index)``: an element as an accumulator.
    read, write : callable
        ``read(base, index)``, ``write(base, index, accumulator)``: 4 bytes each.
    combine : callable
    finish : callable
        ``finish(target, first_index, accumulators, count, args)`` writes elements. `args` are
        the kernel's arguments.
    """

    size: int
    first: Any  # Any: a NumPy scalar of either type
    load: Callable[..., Any]  # Any: as above
    read: Callable[..., Any]  # Any: as above
    write: Callable[..., None]
    combine: Callable[..., Any]  # Any: as above
    finish: Callable[..., None]


@intrinsic
def add_in_any_order(typingctx, x, y):
    """A sum of float32 that may be reordered with others, so that loops become vectors."""
    signature = types.float32(types.float32, types.float32)

    def generate(context, builder, signature, args):
        return builder.fadd(*args, flags=("reassoc",))

    return signature, generate


@njit(error_model="numpy")
def _add(x, y):
    return add_in_any_order(x, y)


@njit(error_model="numpy")
def _add_integers(x, y):
    return int32(x + y)


@njit(error_model="numpy")
def _multiply(x, y):
    return x * y


@njit(error_model="numpy")
def _multiply_integers(x, y):
    return int32(x * y)


@njit(error_model="numpy")
def _greater(x, y):
    return x if x > y else y


@njit(error_model="numpy")
def _less(x, y):
    return x if x < y else y


@njit(error_model="numpy")
def _load_byte(base, index):
    return int32(load_u8(base, index))


@njit(error_model="numpy")
def _load_word(base, index):
    return int32(load_i16(base, index))


def _make_load_key(is_max: bool):
    """A loader of float32 as integers of the same order; NaN stands behind everything."""
    nan = int32(-(2**31)) if is_max else int32(2**31 - 1)
    rest, infinity = int32(0x7FFFFFFF), int32(0x7F800000)

    @njit(error_model="numpy")
    def load_key(base, index):
        bits = load_i32(base, index)
        key = bits ^ ((bits >> int32(31)) & rest)
        return nan if (bits & rest) > infinity else key

    return load_key


_COMBINE = {
    ("sum", True): _add,
    ("sum", False): _add_integers,
    ("product", True): _multiply,
    ("product", False): _multiply_integers,
}


@cache
def make_accumulation(operation: str, kind: str) -> Accumulation:
    """Make what a reduction is made of; parameters as for `armpy_numba_acc.kernels.reduce`."""
    is_real = kind in ("f32", "bf16")
    selects = operation in ("max", "min")
    if selects:
        combine = _greater if operation == "max" else _less
    else:
        combine = _COMBINE[operation.removesuffix("_down").replace("mean", "sum"), is_real]
    first = _first(operation, kind)
    if is_real and not selects:
        size, load = (2, load_bf16) if kind == "bf16" else (4, load_f32)
        return Accumulation(size, first, load, load_f32, store_f32, combine, _make_real_finish())
    loads = {"i32": load_i32, "i16": _load_word, "q16": _load_word}
    load = _make_load_key(operation == "max") if kind == "f32" else loads.get(kind, _load_byte)
    size = {"f32": 4, "i32": 4, "i16": 2, "q16": 2}.get(kind, 1)
    finish = _make_integer_finish(operation, kind)
    return Accumulation(size, first, load, load_i32, store_i32, combine, finish)


def _first(operation: str, kind: str) -> np.float32 | np.int32:
    """What changes nothing."""
    if operation in ("max", "min"):
        infinity = 0x7F800000
        lowest = {"f32": infinity ^ -1, "i32": -(2**31), "i16": -(2**15)}.get(kind, 0)
        highest = {"f32": infinity, "i32": 2**31 - 1, "i16": 2**15 - 1}.get(kind, 255)
        return np.int32(lowest if operation == "max" else highest)
    number = 1 if operation == "product" else 0
    return np.float32(number) if kind in ("f32", "bf16") else np.int32(number)


def _make_real_finish():
    """Sums divided by a number; products and plain sums by 1."""

    @njit(error_model="numpy")
    def finish(target, start, accumulators, count, args):
        divisor = np.float32(load_f64(args, _SCALE))
        for j in range(count):
            store_f32(target, start + j, load_f32(accumulators, j) / divisor)

    return finish


def _make_integer_finish(operation: str, kind: str):
    """Accumulators as they are, or requantised, or divided."""
    rest = int32(0x7FFFFFFF)

    @njit(error_model="numpy")
    def finish_key(target, start, accumulators, count, args):
        for j in range(count):
            key = load_i32(accumulators, j)
            store_i32(target, start + j, key ^ ((key >> int32(31)) & rest))

    @njit(error_model="numpy")
    def finish_i32(target, start, accumulators, count, args):
        for j in range(count):
            store_i32(target, start + j, load_i32(accumulators, j))

    @njit(error_model="numpy")
    def finish_byte(target, start, accumulators, count, args):
        for j in range(count):
            store_u8(target, start + j, load_i32(accumulators, j))

    @njit(error_model="numpy")
    def finish_word(target, start, accumulators, count, args):
        for j in range(count):
            store_i16(target, start + j, load_i32(accumulators, j))

    @njit(error_model="numpy")
    def finish_mean_down(target, start, accumulators, count, args):
        divisor = load_i64(args, _OFFSET)
        for j in range(count):
            store_u8(target, start + j, load_i32(accumulators, j) // divisor)

    @njit(error_model="numpy")
    def finish_quantized(target, start, accumulators, count, args):
        multiplier, offset = load_i64(args, _SCALE), load_i64(args, _OFFSET)
        shift, zero_point = load_i64(args, _SHIFT), load_i64(args, _ZERO_POINT)
        for j in range(count):
            total = rescaled(int64(load_i32(accumulators, j)) - offset, multiplier, shift)
            store_u8(target, start + j, limited(total + zero_point, 0, 255))

    @njit(error_model="numpy")
    def finish_quantized_words(target, start, accumulators, count, args):
        multiplier, offset = load_i64(args, _SCALE), load_i64(args, _OFFSET)
        shift, zero_point = load_i64(args, _SHIFT), load_i64(args, _ZERO_POINT)
        for j in range(count):
            total = rescaled(int64(load_i32(accumulators, j)) - offset, multiplier, shift)
            store_i16(target, start + j, limited(total + zero_point, -32768, 32767))

    if kind == "q16":
        return finish_quantized_words
    if kind == "q8":
        return finish_mean_down if operation == "mean_down" else finish_quantized
    return {"f32": finish_key, "i32": finish_i32, "i16": finish_word}.get(kind, finish_byte)
