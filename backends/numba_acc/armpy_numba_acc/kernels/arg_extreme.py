"""Finds the first of the greatest or least elements along an axis."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import int32, njit

from armpy_numba_acc.llvm.pointers import (
    load_i32,
    load_i64,
    load_u8,
    store_i32,
    store_i64,
)
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.positions import make_position_in_short_run
from armpy_numba_acc.tiles.reductions import Accumulation, make_accumulation

ARGUMENTS = ("source", "target", "outer", "axis", "inner", "block", "scratch", "is_wide")
"""Sizes in front of the axis, along it, and behind it; `scratch` has two int32 for each element
of a block of the inner ones, per thread; `is_wide` says that positions are int64, not int32."""


@njit(error_model="numpy")
def _store(target, index, position, is_wide):
    """Write a position."""
    if is_wide:
        store_i64(target, index, position)
    else:
        store_i32(target, index, position)


def make(isa: Isa, operation: str, kind: str, form: str):
    """Make the kernel.

    Parameters
    ----------
    operation : {"max", "min"}
    kind : {"f32", "u8", "i32"}
    form : {"columns", "rows", "short"}
        "rows" needs an inner size of 1, "short" moreover bytes along the axis, no more of them
        than there are in a vector.

    Notes
    -----
    Of floats, NaN counts only where there is nothing else. Threads share rows, or blocks of
    columns.
    """
    is_max = operation == "max"
    if form == "short":
        return _make_short(isa, is_max)
    tools = make_accumulation(operation, kind)
    return _make_columns(tools, is_max) if form == "columns" else _make_rows(tools)


def _make_rows(tools: Accumulation):
    """Make the kernel that looks for the best element, and then for the first like it."""
    size, load, combine = tools.size, tools.load, tools.combine

    def arg_extreme_rows(args, thread, num_threads):
        source, target = load_i64(args, 0), load_i64(args, 1)
        outer, length = load_i64(args, 2), load_i64(args, 3)
        is_wide = load_i64(args, 7) != 0
        begin, end = share_items(outer, thread, num_threads)
        for row in range(begin, end):
            place = source + row * length * size
            best = load(place, 0)
            for i in range(1, length):
                best = combine(best, load(place, i))
            found = 0
            while load(place, found) != best:
                found += 1
            _store(target, row, found, is_wide)

    return arg_extreme_rows


def _make_columns(tools: Accumulation, is_max: bool):
    """Make the kernel that compares a block of elements with the best ones so far."""
    size, load = tools.size, tools.load

    def arg_extreme_columns(args, thread, num_threads):
        source, target, outer = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        length, inner, block = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        best = load_i64(args, 6) + thread * block * 8
        found = best + block * 4
        is_wide = load_i64(args, 7) != 0
        blocks = (inner + block - 1) // block
        begin, end = share_items(outer * blocks, thread, num_threads)
        for number in range(begin, end):
            item = number // blocks
            column = (number - item * blocks) * block
            columns = min(block, inner - column)
            place = source + (item * length * inner + column) * size
            for j in range(columns):
                store_i32(best, j, load(place, j))
                store_i32(found, j, 0)
            for i in range(1, length):
                line = place + i * inner * size
                for j in range(columns):
                    value, old = load(line, j), load_i32(best, j)
                    is_better = value > old if is_max else value < old
                    store_i32(best, j, value if is_better else old)
                    store_i32(found, j, int32(i) if is_better else load_i32(found, j))
            for j in range(columns):
                _store(target, item * inner + column + j, load_i32(found, j), is_wide)

    return arg_extreme_columns


def _make_short(isa: Isa, is_max: bool):
    """Make the kernel for rows that fit a vector."""
    position = make_position_in_short_run(isa, is_max)
    width = isa.vector_bytes

    def arg_extreme_short(args, thread, num_threads):
        source, target = load_i64(args, 0), load_i64(args, 1)
        outer, length = load_i64(args, 2), load_i64(args, 3)
        is_wide = load_i64(args, 7) != 0
        begin, end = share_items(outer, thread, num_threads)
        readable = outer * length - width
        for row in range(begin, end):
            at = row * length
            if at <= readable:
                _store(target, row, position(source + at, length), is_wide)
            else:
                found = 0
                for i in range(1, length):
                    value, best = load_u8(source, at + i), load_u8(source, at + found)
                    if (value > best) if is_max else (value < best):
                        found = i
                _store(target, row, found, is_wide)

    return arg_extreme_short
