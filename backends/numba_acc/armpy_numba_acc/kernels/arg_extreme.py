"""Arg-max and arg-min: the first of the greatest or least elements along an axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from numba import int32

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import (
    load_i32,
    load_u8,
    store_i32,
    store_i64,
)
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.rows import ArgExtreme
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.positions import make_position_in_short_run
from armpy_numba_acc.tiles.reductions import Accumulation, make_accumulation, make_load_order

Kernel: TypeAlias = Callable[[int, int, int], None]

_read = reader(ArgExtreme)


@compiled
def _store(target: Pointer, index: int, position: int, is_wide: int) -> None:
    if is_wide != 0:
        store_i64(target, index, position)
    else:
        store_i32(target, index, position)


def make(isa: Isa, operation: str, kind: str, form: str) -> Kernel:
    """Make the kernel for the record's parameters.

    The first NaN counts where there is one. Threads share rows, or blocks of
    columns.
    """
    is_max = operation == "max"
    if form == "short":
        return _make_short(isa, is_max)
    tools = make_accumulation(operation, kind)
    if kind == "f32":
        tools = replace(tools, load=make_load_order(is_max))
    return _make_columns(tools, is_max) if form == "columns" else _make_rows(tools)


def _make_rows(tools: Accumulation) -> Kernel:
    """Make the kernel that looks for the best element, and then for the first like it."""
    size, load, combine = tools.size, tools.load, tools.combine

    def arg_extreme_rows(args: int, shares: int, num_shares: int) -> None:
        call = _read(args)
        source, length = call.source, call.axis
        begin, end = share_items(call.outer, shares, num_shares)
        for row in range(begin, end):
            place = source + row * length * size
            best = load(place, 0)
            for i in range(1, length):
                best = combine(best, load(place, i))
            index = 0
            while load(place, index) != best:
                index += 1
            _store(call.target, row, index, call.is_wide)

    return arg_extreme_rows


def _make_columns(tools: Accumulation, is_max: bool) -> Kernel:
    """Make the kernel that compares a block of elements with the best ones so far."""
    size, load = tools.size, tools.load

    def arg_extreme_columns(args: int, shares: int, num_shares: int) -> None:
        call = _read(args)
        length, inner, block = call.axis, call.inner, call.block
        best = call.scratch + thread_of(shares) * block * 8
        indices = best + block * 4
        blocks = (inner + block - 1) // block
        begin, end = share_items(call.outer * blocks, shares, num_shares)
        for number in range(begin, end):
            item = number // blocks
            column = (number - item * blocks) * block
            columns = min(block, inner - column)
            place = call.source + (item * length * inner + column) * size
            for j in range(columns):
                store_i32(best, j, load(place, j))
                store_i32(indices, j, 0)
            for i in range(1, length):
                line = place + i * inner * size
                for j in range(columns):
                    value, old = int32(load(line, j)), load_i32(best, j)
                    is_better = value > old if is_max else value < old
                    store_i32(best, j, value if is_better else old)
                    store_i32(indices, j, int32(i) if is_better else load_i32(indices, j))
            for j in range(columns):
                at = item * inner + column + j
                _store(call.target, at, load_i32(indices, j), call.is_wide)

    return arg_extreme_columns


def _make_short(isa: Isa, is_max: bool) -> Kernel:
    """Make the kernel for rows that fit a vector."""
    position = make_position_in_short_run(isa, is_max)
    width = isa.vector_bytes

    def arg_extreme_short(args: int, shares: int, num_shares: int) -> None:
        call = _read(args)
        source, length = call.source, call.axis
        begin, end = share_items(call.outer, shares, num_shares)
        readable = call.outer * length - width
        for row in range(begin, end):
            at = row * length
            if at <= readable:
                _store(call.target, row, position(source + at, length), call.is_wide)
            else:
                index = 0
                for i in range(1, length):
                    value, best = load_u8(source, at + i), load_u8(source, at + index)
                    if (value > best) if is_max else (value < best):
                        index = i
                _store(call.target, row, index, call.is_wide)

    return arg_extreme_short
