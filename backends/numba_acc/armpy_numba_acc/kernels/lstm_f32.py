"""Runs a long short-term memory over sequences."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

import math

import numpy as np
from numba import njit

from armpy_numba_acc.llvm.pointers import bits_to_f32, load_f32, load_i64, store_f32
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.activate import make_activate
from armpy_numba_acc.tiles.reductions import add_in_any_order

ARGUMENTS = (
    "share",
    "output_state_in",
    "cell_state_in",
    "output_state_out",
    "cell_state_out",
    "output",
    "recurrent",
    "peephole",
    "norm_weights",
    "norm_bias",
    "projection",
    "projection_bias",
    "scratch",
    "scratch_pitch",
    "num_gates",
    "batches",
    "times",
    "batch_rows",
    "time_rows",
    "cells",
    "width",
    "outputs",
    "out_width",
    "cell_clip",
    "projection_clip",
)
"""`width` and `out_width` are `cells` and `outputs` filled up to whole vectors. `share` has a row
for each batch and time, of `width` elements for every gate: input (if there are four), forget,
cell, output. `recurrent` has such a row per output, `peephole` and the two of the normalisation are
one (the cell gate has no peephole). `projection` has `out_width` elements per cell. `peephole`,
`norm_weights` and `projection` may be 0. Rows of a batch are `batch_rows` apart, those of a time
`time_rows`."""

_VARIANCE_OFFSET = np.float32(1e-8)


@njit(error_model="numpy")
def _add_product(target, matrix, vector, count, width):
    """Add a vector of `count` elements times a matrix with rows of `width`."""
    fours = count // 4
    for number in range(fours):
        a, b = load_f32(vector, 4 * number), load_f32(vector, 4 * number + 1)
        c, d = load_f32(vector, 4 * number + 2), load_f32(vector, 4 * number + 3)
        row = matrix + number * 16 * width
        for j in range(width):
            total = load_f32(target, j) + a * load_f32(row, j) + b * load_f32(row, width + j)
            total += c * load_f32(row, 2 * width + j) + d * load_f32(row, 3 * width + j)
            store_f32(target, j, total)
    for number in range(4 * fours, count):
        a, row = load_f32(vector, number), matrix + number * 4 * width
        for j in range(width):
            store_f32(target, j, load_f32(target, j) + a * load_f32(row, j))


@njit(error_model="numpy")
def _add_weighted(target, weights, values, count):
    """Add values times weights, element by element."""
    for j in range(count):
        store_f32(target, j, load_f32(target, j) + load_f32(weights, j) * load_f32(values, j))


@njit(error_model="numpy")
def _normalize(gate, weights, bias, count):
    """Give a gate mean 0 and variance 1, weigh it and add the bias."""
    total = np.float32(0)
    for j in range(count):
        total = add_in_any_order(total, load_f32(gate, j))
    mean = total / np.float32(count)
    squares = np.float32(0)
    for j in range(count):
        centred = load_f32(gate, j) - mean
        squares = add_in_any_order(squares, centred * centred)
    scale = np.float32(1) / np.float32(math.sqrt(squares / np.float32(count) + _VARIANCE_OFFSET))
    for j in range(count):
        value = (load_f32(gate, j) - mean) * scale * load_f32(weights, j) + load_f32(bias, j)
        store_f32(gate, j, value)


@njit(error_model="numpy")
def _copy(target, source, count):
    """Copy elements."""
    for j in range(count):
        store_f32(target, j, load_f32(source, j))


@njit(error_model="numpy")
def _limited(value, limit):
    """A float32 whose absolute value is limited."""
    value = limit if value > limit else value
    return -limit if value < -limit else value


@njit(error_model="numpy")
def _update_cell(cell, forget, taken, candidate, limit, width):
    """The cell state after a step; without an input gate (0) what is forgotten is replaced."""
    if taken != 0:
        for j in range(width):
            kept = load_f32(forget, j) * load_f32(cell, j)
            value = kept + load_f32(taken, j) * load_f32(candidate, j)
            store_f32(cell, j, _limited(value, limit))
    else:
        for j in range(width):
            share = load_f32(forget, j)
            value = share * load_f32(cell, j) + (np.float32(1) - share) * load_f32(candidate, j)
            store_f32(cell, j, _limited(value, limit))


@njit(error_model="numpy")
def _let_out(hidden, passed, gate, projection, bias, limit, cells, width, out_width):
    """The output state: what the gate lets through, projected if there is a projection."""
    for j in range(width):
        store_f32(passed, j, load_f32(passed, j) * load_f32(gate, j))
    if projection == 0:
        _copy(hidden, passed, width)
        return
    _copy(hidden, bias, out_width)
    _add_product(hidden, projection, passed, cells, out_width)
    for j in range(out_width):
        store_f32(hidden, j, _limited(load_f32(hidden, j), limit))


def _make_step(lanes: int, activation: str):
    """Make the functions that activate a row, and that make a step of the gates' sums."""
    activate_vector = make_activate(lanes, activation)
    sigmoid_vector = make_activate(lanes, "SIGMOID")

    @njit(error_model="numpy")
    def activate(target, source, width):
        for j in range(0, width, lanes):
            activate_vector(target + j * 4, source + j * 4)

    @njit(error_model="numpy")
    def sigmoid(gate, width):
        for j in range(0, width, lanes):
            sigmoid_vector(gate + j * 4, gate + j * 4)

    @njit(error_model="numpy")
    def step(gates, cell, args):
        """From sums for the gates to the cell state and what the output gate lets through."""
        peephole, norm_weights = load_i64(args, 7), load_i64(args, 8)
        norm_bias, num_gates = load_i64(args, 9), load_i64(args, 14)
        cells, width = load_i64(args, 19), load_i64(args, 20)
        pitch = width * 4
        forget = (num_gates - 3) * pitch
        candidate, last = forget + pitch, forget + 2 * pitch
        if peephole != 0:
            for at in range(0, forget + 1, pitch):
                _add_weighted(gates + at, peephole + at, cell, cells)
        if norm_weights != 0:
            for at in range(0, last, pitch):
                _normalize(gates + at, norm_weights + at, norm_bias + at, cells)
        sigmoid(gates, candidate // 4)
        activate(gates + candidate, gates + candidate, width)
        taken = gates if num_gates == 4 else 0
        limit = bits_to_f32(load_i64(args, 23))
        _update_cell(cell, gates + forget, taken, gates + candidate, limit, width)
        if peephole != 0:
            _add_weighted(gates + last, peephole + last, cell, cells)
        if norm_weights != 0:
            _normalize(gates + last, norm_weights + last, norm_bias + last, cells)
        sigmoid(gates + last, width)

    return activate, step


def make(isa: Isa, activation: str):
    """Make the kernel; threads share the batches.

    Parameters
    ----------
    activation : str
        Name of the `armpy.ops.RecurrentActivation`.
    """
    activate, step = _make_step(isa.lanes, activation)

    def lstm_f32(args, thread, num_threads):
        share, output, recurrent = load_i64(args, 0), load_i64(args, 5), load_i64(args, 6)
        projection, projection_bias = load_i64(args, 10), load_i64(args, 11)
        gates = load_i64(args, 12) + thread * load_i64(args, 13)
        num_gates, batches, times = load_i64(args, 14), load_i64(args, 15), load_i64(args, 16)
        batch_rows, time_rows = load_i64(args, 17), load_i64(args, 18)
        cells, width = load_i64(args, 19), load_i64(args, 20)
        outputs, out_width = load_i64(args, 21), load_i64(args, 22)
        limit = bits_to_f32(load_i64(args, 24))
        line = num_gates * width
        cell = gates + line * 4
        passed = cell + width * 4
        hidden = passed + width * 4
        first, last = share_items(batches, thread, num_threads)
        for batch in range(first, last):
            for j in range(width):
                store_f32(cell, j, np.float32(0))
            _copy(cell, load_i64(args, 2) + batch * cells * 4, cells)
            _copy(hidden, load_i64(args, 1) + batch * outputs * 4, outputs)
            for time in range(times):
                row = batch * batch_rows + time * time_rows
                _copy(gates, share + row * line * 4, line)
                _add_product(gates, recurrent, hidden, outputs, line)
                step(gates, cell, args)
                activate(passed, cell, width)
                gate = gates + (num_gates - 1) * width * 4
                _let_out(
                    hidden,
                    passed,
                    gate,
                    projection,
                    projection_bias,
                    limit,
                    cells,
                    width,
                    out_width,
                )
                _copy(output + row * outputs * 4, hidden, outputs)
            _copy(load_i64(args, 3) + batch * outputs * 4, hidden, outputs)
            _copy(load_i64(args, 4) + batch * cells * 4, cell, cells)

    return lstm_f32
