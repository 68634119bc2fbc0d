"""Exponentials of rows divided by their sums, or the logarithms of that."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,var-annotated"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

import math

import numpy as np

from armpy_numba_acc.llvm.pointers import bits_to_f32, load_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.llvm.values import Value, larger
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import functions as f
from armpy_numba_acc.tiles.row_pass import make_row_pass
from armpy_numba_acc.tiles.span import size_of

ARGUMENTS = ("input", "output", "rows", "length", "factor", "per_scale", "zero_point")
"""`factor` is beta times the input's scale; `per_scale` 1 by the output's scale. Both, and
`zero_point`, are float32; floats have the scale 1."""

_BOUNDS = {"u8": (0.0, 255.0), "i16": (-32768.0, 32767.0)}
"""Lowest and highest stored integer."""

Pair = tuple[Value | None, Value | None]


def make(isa: Isa, kind: str, function: str, written: str = ""):
    """Make the kernel; threads share the rows.

    Parameters
    ----------
    isa : Isa
    kind : str
        ``f32`` or ``u8``.
    function : str
        ``softmax`` or ``log_softmax``.
    written : str, optional
        How the output is stored if not like the input: ``i16``.
    """
    is_float = kind == "f32"
    is_log = function == "log_softmax"
    keeps = is_float and not is_log
    zero = np.float32(0)
    kinds = (kind, written or kind)
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

    def quotient(x, largest, factor, total, per_scale, zero_point) -> Pair:
        result = f.exp_within((real(x) - largest) * factor) * (per_scale / total)
        return stored(result, zero_point), None

    def logarithm(x, largest, factor, total, per_scale, zero_point) -> Pair:
        result = (real(x) - largest) * factor - f.log(total)
        return stored(result * per_scale, zero_point), None

    find_largest = make_row_pass(isa, kinds, take, larger, -math.inf)
    add_up = make_row_pass(isa, kinds, exponential, Value.__add__, 0.0)
    last = scaled if keeps else logarithm if is_log else quotient
    write = make_row_pass(isa, kinds, last, Value.__add__, 0.0)
    size, out_size = map(size_of, kinds)

    def softmax(args, thread, num_threads):
        source, target = load_i64(args, 0), load_i64(args, 1)
        rows, length = load_i64(args, 2), load_i64(args, 3)
        factor, per_scale = bits_to_f32(load_i64(args, 4)), bits_to_f32(load_i64(args, 5))
        zero_point = bits_to_f32(load_i64(args, 6))
        first, last = share_items(rows, thread, num_threads)
        for row in range(first, last):
            here, there = source + row * length * size, target + row * length * out_size
            largest = find_largest(here, there, length, zero, zero, zero, zero, zero)
            total = add_up(here, there, length, largest, factor, zero, zero, zero)
            if keeps:
                here = there
            write(here, there, length, largest, factor, total, per_scale, zero_point)

    return softmax
