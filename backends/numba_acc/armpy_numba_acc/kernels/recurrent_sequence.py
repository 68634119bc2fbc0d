"""Recurrent networks, gated recurrent units and LSTMs of float32, over sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_f32, load_i32, store_f32
from armpy_numba_acc.llvm.primitives import compiled, inlined
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.recurrent import RecurrentSequence
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.recurrent import PANEL, ROWS
from armpy_numba_acc.tiles.recurrent import make_product, make_reset, make_update

Begin: TypeAlias = Callable[[int, Pointer, Pointer, int], None]

_read = reader(RecurrentSequence)


@compiled
def _copy(target: Pointer, source: Pointer, count: int) -> None:
    for j in range(count):
        store_f32(target, j, load_f32(source, j))


@compiled
def _clear(target: Pointer, count: int) -> None:
    """Set elements to 0."""
    for j in range(count):
        store_f32(target, j, np.float32(0))


@inlined
def _length(lengths: Pointer, batch: int, times: int) -> int:
    """Steps of a batch's sequence."""
    if lengths == 0:
        return times
    return min(max(load_i32(lengths, batch), 0), times)


@inlined
def _row_of(args: int, batch: int, step: int) -> int:
    """Number of a batch's row at a step; -1 after the sequence's end."""
    call = _read(args)
    length = _length(call.lengths, batch, call.times)
    if step >= length:
        return -1
    time = length - 1 - step if call.is_reversed else step
    return batch * call.batch_rows + time * call.time_rows


def _make_ends(has_cell: bool) -> tuple[Begin, Begin]:
    """Make the functions that begin a batch, and that end it."""

    @compiled
    def begin(args: int, hidden: Pointer, state: Pointer, batch: int) -> None:
        """Set the states of a batch to their initial values."""
        call = _read(args)
        _clear(hidden, call.width)
        _clear(state, call.candidate_line)
        _copy(hidden, call.hidden_in + batch * call.units * 4, call.units)
        if has_cell:
            _copy(state, call.cell_in + batch * call.units * 4, call.units)

    @compiled
    def finish(args: int, hidden: Pointer, state: Pointer, batch: int) -> None:
        """Write the last states of a batch, and zeros after a short sequence."""
        call = _read(args)
        units = call.units
        for time in range(_length(call.lengths, batch, call.times), call.times):
            row = batch * call.batch_rows + time * call.time_rows
            _clear(call.output + row * units * 4, units)
        _copy(call.hidden_out + batch * units * 4, hidden, units)
        if has_cell:
            _copy(call.cell_out + batch * units * 4, state, units)

    return begin, finish


def make(isa: Isa, cell: str, functions: str) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the batches."""
    names = tuple(functions.split())
    single, some, many = (make_product(isa, rows) for rows in (1, ROWS // 2, ROWS))
    reset, update = make_reset(isa, names[0]), make_update(isa, cell, names)
    begin, finish = _make_ends(cell.startswith("LSTM"))
    panel, resets_first = PANEL * isa.lanes, cell == "GRU"

    @compiled
    def multiply(
        target: Pointer,
        first: Pointer,
        weights: Pointer,
        state: Pointer,
        sizes: tuple[int, int, int, int],
    ) -> None:
        """Products of states; sizes are their elements, panels, bytes apart, and how many."""
        count, line, pitch, rows = sizes
        if rows == 1:
            single(target, first, weights, state, count, line // panel, pitch)
        elif rows <= ROWS // 2:
            some(target, first, weights, state, count, line // panel, pitch)
        else:
            many(target, first, weights, state, count, line // panel, pitch)

    def recurrent_sequence(args: int, shares: int, num_shares: int) -> None:
        call = _read(args)
        units, width, pitch = call.units, call.width, call.row_pitch
        line = call.num_gates * width * 4
        hidden = call.scratch + thread_of(shares) * call.scratch_pitch
        state = hidden + width * 4
        sums = state + call.candidate_line * 4
        passed = sums + call.line * 4
        start, end = share_items(call.batches, shares, num_shares)
        for batch in range(start, end, ROWS):
            rows = min(ROWS, end - batch)
            for row in range(rows):
                begin(args, hidden + row * pitch, state + row * pitch, batch + row)
            for step in range(call.times):
                sizes = (units, call.line, pitch, rows)
                multiply(sums, call.first, call.recurrent, hidden, sizes)
                if resets_first:
                    for row in range(rows):
                        at, place = row * pitch, _row_of(args, batch + row, step)
                        if place >= 0:
                            share = call.share + place * line + width * 4
                            gate = sums + at + width * 4
                            reset(passed + at, gate, share, hidden + at, width, call.limit)
                    first = call.first + call.line * 4
                    sizes = (units, call.candidate_line, pitch, rows)
                    multiply(state, first, call.candidate, passed, sizes)
                for row in range(rows):
                    at, place = row * pitch, _row_of(args, batch + row, step)
                    if place >= 0:
                        share, here = call.share + place * line, hidden + at
                        peephole, limit = call.peephole, call.limit
                        update(sums + at, share, here, state + at, peephole, width, limit)
                        _copy(call.output + place * units * 4, here, units)
            for row in range(rows):
                finish(args, hidden + row * pitch, state + row * pitch, batch + row)

    return recurrent_sequence
