"""Softmax and log-softmax of rows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.llvm.values import Value, element_bytes, larger
from armpy_numba_acc.machine.calls.rows import Softmax
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import functions as f
from armpy_numba_acc.tiles.elements import stored_kind
from armpy_numba_acc.tiles.row_pass import make_row_pass

_BOUNDS = {"u8": (0.0, 255.0), "i16": (-32768.0, 32767.0)}
"""Lowest and highest stored integer."""

Pair = tuple[Value | None, Value | None]


def make(isa: Isa, kind: str, function: str, written: str) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the rows."""
    is_float = kind == "f32"
    is_log = function == "log_softmax"
    keeps = is_float and not is_log
    zero = np.float32(0)
    kinds = (kind, written)
    low, high = _BOUNDS.get(kinds[1], (0.0, 0.0))

    def real(x: Value) -> Value:
        return x if is_float else x.to_float()

    def stored(x: Value, zero_point: Value) -> Value:
        if is_float:
            return x
        return f.to_stored(x, zero_point, low - zero_point, high - zero_point)

    def take(x: Value, *_: Value) -> Pair:
        return None, real(x)

    def exponential(x: Value, largest: Value, factor: Value, *_: Value) -> Pair:
        result = f.exp_within((real(x) - largest) * factor)
        return (result if keeps else None), result

    def scaled(x: Value, _: Value, __: Value, total: Value, *___: Value) -> Pair:
        return x * (1.0 / total), None

    def quotient(
        x: Value, largest: Value, factor: Value, total: Value, per_scale: Value, zero_point: Value
    ) -> Pair:
        result = f.exp_within((real(x) - largest) * factor) * (per_scale / total)
        return stored(result, zero_point), None

    def logarithm(
        x: Value, largest: Value, factor: Value, total: Value, per_scale: Value, zero_point: Value
    ) -> Pair:
        result = (real(x) - largest) * factor - f.log(total)
        return stored(result * per_scale, zero_point), None

    find_largest = make_row_pass(isa, kinds, take, larger, -math.inf)
    add_up = make_row_pass(isa, kinds, exponential, Value.__add__, 0.0)
    last = scaled if keeps else logarithm if is_log else quotient
    write = make_row_pass(isa, kinds, last, Value.__add__, 0.0)
    size, out_size = (element_bytes(stored_kind(each)) for each in kinds)

    read = reader(Softmax)

    def softmax(args: int, thread: int, num_threads: int) -> None:
        call = read(args)
        length, factor = call.length, call.factor
        first, last = share_items(call.rows, thread, num_threads)
        for row in range(first, last):
            here = call.source + row * length * size
            there = call.target + row * length * out_size
            largest = find_largest(here, there, length, zero, zero, zero, zero, zero)
            total = add_up(here, there, length, largest, factor, zero, zero, zero)
            if keeps:
                here = there
            write(here, there, length, largest, factor, total, call.per_scale, call.zero_point)

    return softmax
