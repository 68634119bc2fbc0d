"""Reductions: how elements are read, combined, and written in the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numba import int32, int64

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.arithmetic.fixed_point import limited, rescaled
from armpy_numba_acc.llvm.pointers import (
    bits_to_f64,
    load_bf16,
    load_f32,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    store_f32,
    store_i16,
    store_i32,
    store_i64,
    store_u8,
)
from armpy_numba_acc.llvm.primitives import FLOAT, compiled, primitive
from armpy_numba_acc.llvm.values import Code, CodeValue
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.rows import Rescaling

Element: TypeAlias = Any  # Any: a float32, an int32 or an int64 of Numba's
Finish: TypeAlias = Callable[[Pointer, int, Pointer, int, Rescaling], None]


@dataclass(frozen=True, slots=True)
class Accumulation:
    """Functions for code that Numba compiles."""

    size: int  # bytes of an element
    first: Element  # what an accumulator begins with
    load: Callable[..., Element]  # ``load(base, index)``: an element as an accumulator
    width: (
        int  # bytes of an accumulator: ``read(base, index)``, ``write(base, index, accumulator)``
    )
    read: Callable[..., Element]
    write: Callable[..., None]
    combine: Callable[..., Element]
    # ``finish(target, first_index, accumulators, count, rescaling)`` writes elements.
    finish: Finish


@primitive(FLOAT, FLOAT, FLOAT)
def add_in_any_order(code: Code, x: CodeValue, y: CodeValue) -> CodeValue:
    """A sum of float32 that may be reordered with others, so that loops become vectors."""
    return code.of(code.builder.fadd(x.value, y.value, flags=("reassoc",)))


@compiled
def _add(x: Element, y: Element) -> Element:
    return add_in_any_order(x, y)


@compiled
def _add_integers(x: Element, y: Element) -> Element:
    return int32(x + y)


@compiled
def _multiply(x: Element, y: Element) -> Element:
    return x * y


@compiled
def _multiply_integers(x: Element, y: Element) -> Element:
    return int32(x * y)


@compiled
def _add_wide(x: Element, y: Element) -> Element:
    return x + y


@compiled
def _greater(x: Element, y: Element) -> Element:
    return x if x > y else y


@compiled
def _less(x: Element, y: Element) -> Element:
    return x if x < y else y


@compiled
def _load_wide(base: Pointer, index: int) -> Element:
    return int64(load_i32(base, index))


@compiled
def _load_byte(base: Pointer, index: int) -> Element:
    return int32(load_u8(base, index))


@compiled
def _load_word(base: Pointer, index: int) -> Element:
    return int32(load_i16(base, index))


def make_load_order(is_max: bool) -> Callable[[Pointer, int], Element]:
    """A loader of float32 as `_make_load_key` has them, but with both zeros alike."""
    nan = _nan_key(is_max)
    rest, infinity = int32(0x7FFFFFFF), int32(0x7F800000)

    @compiled
    def load_order(base: Pointer, index: int) -> Element:
        bits = load_i32(base, index)
        magnitude, sign = bits & rest, bits >> int32(31)
        return nan if magnitude > infinity else (magnitude ^ sign) - sign

    return load_order


def _nan_key(is_max: bool) -> Element:
    """Return the key before all others: the bits of a NaN."""
    return int32(2**31 - 1) if is_max else int32(-(2**31))


def _make_load_key(is_max: bool) -> Callable[[Pointer, int], Element]:
    """A loader of float32 as integers of the same order; NaN stands in front of everything."""
    nan = _nan_key(is_max)
    rest, infinity = int32(0x7FFFFFFF), int32(0x7F800000)

    @compiled
    def load_key(base: Pointer, index: int) -> Element:
        bits = load_i32(base, index)
        key = bits ^ ((bits >> int32(31)) & rest)
        return nan if (bits & rest) > infinity else key

    return load_key


_COMBINE = {
    ("sum", "real"): _add,
    ("sum", "wide"): _add_wide,
    ("sum", "narrow"): _add_integers,
    ("product", "real"): _multiply,
    ("product", "wide"): _multiply,
    ("product", "narrow"): _multiply_integers,
}
"""By what accumulators are: float32, int64, int32."""


@cache
def make_accumulation(operation: str, kind: str) -> Accumulation:
    """Make what a reduction is made of; parameters as for `armpy_numba_acc.kernels.reduce`."""
    selects = operation in ("max", "min")
    is_wide = kind == "i64" or (kind == "i32" and operation.startswith("mean"))
    is_real = kind in ("f32", "bf16") and not selects
    if selects:
        combine = _greater if operation == "max" else _less
    else:
        name = operation.removesuffix("_down").replace("mean", "sum")
        combine = _COMBINE[name, "real" if is_real else "wide" if is_wide else "narrow"]
    first = _first(operation, "i64" if is_wide else kind)
    if is_real:
        size, load = (2, load_bf16) if kind == "bf16" else (4, load_f32)
        return Accumulation(size, first, load, 4, load_f32, store_f32, combine, _make_real_finish())
    size = {"f32": 4, "i32": 4, "i64": 8, "i16": 2, "q16": 2}.get(kind, 1)
    if is_wide:
        load = load_i64 if kind == "i64" else _load_wide
        finish = _make_integer_finish(operation, kind, load_i64)
        return Accumulation(size, first, load, 8, load_i64, store_i64, combine, finish)
    if kind in ("u8", "i8"):  # as bytes, of which a vector holds most
        load, limits = (
            (load_u8, np.iinfo(np.uint8)) if kind == "u8" else (load_i8, np.iinfo(np.int8))
        )
        finish = _make_integer_finish(operation, kind, load)
        least = limits.dtype.type(limits.min if operation == "max" else limits.max)
        return Accumulation(1, least, load, 1, load, store_u8, combine, finish)
    loads = {"i32": load_i32, "i16": _load_word, "q16": _load_word}
    load = _make_load_key(operation == "max") if kind == "f32" else loads.get(kind, _load_byte)
    finish = _make_integer_finish(operation, kind, load_i32)
    return Accumulation(size, first, load, 4, load_i32, store_i32, combine, finish)


def _first(operation: str, kind: str) -> np.float32 | np.int32 | np.int64:
    """Return the neutral element."""
    if kind == "i64":
        limits = np.iinfo(np.int64)
        firsts = {"max": limits.min, "min": limits.max, "product": 1}
        return np.int64(firsts.get(operation, 0))
    if operation in ("max", "min"):
        infinity = 0x7F800000
        lowest = {"f32": infinity ^ -1, "i32": -(2**31), "i16": -(2**15)}.get(kind, 0)
        highest = {"f32": infinity, "i32": 2**31 - 1, "i16": 2**15 - 1}.get(kind, 255)
        return np.int32(lowest if operation == "max" else highest)
    number = 1 if operation == "product" else 0
    return np.float32(number) if kind in ("f32", "bf16") else np.int32(number)


def _make_real_finish() -> Finish:
    """Sums divided by a number; products and plain sums by 1."""

    @compiled
    def finish(
        target: Pointer, start: int, accumulators: Pointer, count: int, rescaling: Rescaling
    ) -> None:
        divisor = np.float32(bits_to_f64(rescaling.scale))
        for j in range(count):
            store_f32(target, start + j, load_f32(accumulators, j) / divisor)

    return finish


@compiled
def _float_of_key(key: Element, rescaling: Rescaling) -> Element:
    return key ^ ((key >> int32(31)) & int32(0x7FFFFFFF))


@compiled
def _as_it_is(total: Element, rescaling: Rescaling) -> Element:
    return total


@compiled
def _truncated(total: Element, rescaling: Rescaling) -> Element:
    quotient = abs(total) // rescaling.offset
    return quotient if total > 0 else -quotient


@compiled
def _divided(total: Element, rescaling: Rescaling) -> Element:
    return total // rescaling.offset


@compiled
def _requantized(total: Element, rescaling: Rescaling) -> Element:
    moved = int64(total) - rescaling.offset
    return rescaled(moved, rescaling.scale, rescaling.shift) + rescaling.zero_point


@compiled
def _requantized_byte(total: Element, rescaling: Rescaling) -> Element:
    return limited(_requantized(total, rescaling), 0, 255)


@compiled
def _requantized_word(total: Element, rescaling: Rescaling) -> Element:
    return limited(_requantized(total, rescaling), -32768, 32767)


_FINISHES = {
    "f32": (store_i32, _float_of_key),
    "i32": (store_i32, _as_it_is),
    "i64": (store_i64, _as_it_is),
    "i16": (store_i16, _as_it_is),
    "u8": (store_u8, _as_it_is),
    "i8": (store_u8, _as_it_is),
    "q8": (store_u8, _requantized_byte),
    "q16": (store_i16, _requantized_word),
}
"""Stores of integers, and their conversions before."""


def _make_integer_finish(operation: str, kind: str, read: Callable[..., Element]) -> Finish:
    """Accumulators as they are, or requantised, or divided."""
    store, changed = _FINISHES[kind]
    changed = {"mean": _truncated, "mean_down": _divided}.get(operation, changed)

    @compiled
    def finish(
        target: Pointer, start: int, accumulators: Pointer, count: int, rescaling: Rescaling
    ) -> None:
        for j in range(count):
            store(target, start + j, changed(read(accumulators, j), rescaling))

    return finish
