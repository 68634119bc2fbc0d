"""Runs a long short-term memory in integers over sequences."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import int32, int64, njit

from armpy_numba_acc.llvm.fixed_point import halved, limited, rescaled
from armpy_numba_acc.llvm.pointers import (
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    store_i16,
    store_u8,
)
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = (
    "input",
    "output_state_in",
    "cell_state_in",
    "output_state_out",
    "cell_state_out",
    "output",
    "weights",
    "biases",
    "multipliers",
    "sigmoid",
    "tanh",
    "cell_tanh",
    "scratch",
    "batches",
    "times",
    "batch_rows",
    "time_rows",
    "inputs",
    "cells",
    "cell_shift",
    "cell_clip",
    "to_hidden",
    "to_hidden_shift",
    "zero_point",
)
"""For every gate, input (if there is one), forget, cell, output: `weights` has a row for each cell,
of the input's and then of the output's; `biases` has two int32 of each cell; `multipliers` two
pairs of int64. The tables have an int16 for each int16. Rows of a batch are `batch_rows` apart,
those of a time `time_rows`. `scratch` has the gates' int16."""


def make(isa: Isa, has_input_gate: int):
    """Make the kernel; one thread runs it.

    References
    ----------
    TFLite ``kernels/lstm_eval.cc`` (``EvalInteger8x8_16``).
    """
    num_gates = 4 if has_input_gate else 3
    forget_gate = 1 if has_input_gate else 0

    @njit(error_model="numpy")
    def dot(values, weights, count, bias):
        total = int32(bias)
        for k in range(count):
            total += int32(load_u8(values, k)) * int32(load_i8(weights, k))
        return int64(total)

    @njit(error_model="numpy")
    def saturated(value):
        return limited(value, -32768, 32767)

    @njit(error_model="numpy")
    def find(table, value):
        return int64(load_i16(table, value + 32768))

    def lstm_q8(args, thread, num_threads):
        if thread > 0:
            return
        input_, output = load_i64(args, 0), load_i64(args, 5)
        weights, biases, multipliers = load_i64(args, 6), load_i64(args, 7), load_i64(args, 8)
        sigmoid, tanh, cell_tanh = load_i64(args, 9), load_i64(args, 10), load_i64(args, 11)
        gates, batches, times = load_i64(args, 12), load_i64(args, 13), load_i64(args, 14)
        batch_rows, time_rows = load_i64(args, 15), load_i64(args, 16)
        inputs, cells = load_i64(args, 17), load_i64(args, 18)
        cell_shift, cell_clip = load_i64(args, 19), load_i64(args, 20)
        to_hidden, to_hidden_shift = load_i64(args, 21), load_i64(args, 22)
        zero_point = load_i64(args, 23)
        for batch in range(batches):
            hidden = load_i64(args, 3) + batch * cells
            cell = load_i64(args, 4) + batch * cells * 2
            for j in range(cells):
                store_u8(hidden, j, load_u8(load_i64(args, 1) + batch * cells, j))
                store_i16(cell, j, load_i16(load_i64(args, 2) + batch * cells * 2, j))
            for time in range(times):
                row = batch * batch_rows + time * time_rows
                data = input_ + row * inputs
                line = weights
                for gate in range(num_gates):
                    table = tanh if gate == forget_gate + 1 else sigmoid
                    pair = multipliers + gate * 32
                    from_input, input_shift = load_i64(pair, 0), load_i64(pair, 1)
                    from_output, output_shift = load_i64(pair, 2), load_i64(pair, 3)
                    for j in range(cells):
                        at = gate * cells + j
                        share = dot(data, line, inputs, load_i32(biases, 2 * at))
                        line += inputs
                        total = saturated(rescaled(share, from_input, input_shift))
                        share = dot(hidden, line, cells, load_i32(biases, 2 * at + 1))
                        line += cells
                        total = saturated(total + rescaled(share, from_output, output_shift))
                        store_i16(gates, at, find(table, total))
                for j in range(cells):
                    forget = int64(load_i16(gates, forget_gate * cells + j))
                    candidate = int64(load_i16(gates, (forget_gate + 1) * cells + j))
                    passed = int64(load_i16(gates, (forget_gate + 2) * cells + j))
                    taken = int64(load_i16(gates, j)) if has_input_gate else 32767 - forget
                    value = halved(forget * int64(load_i16(cell, j)), 15)
                    value = saturated(value + halved(taken * candidate, cell_shift))
                    value = limited(value, -cell_clip, cell_clip) if cell_clip > 0 else value
                    store_i16(cell, j, value)
                    value = passed * find(cell_tanh, value)
                    value = rescaled(value, to_hidden, to_hidden_shift) + zero_point
                    store_u8(hidden, j, limited(value, 0, 255))
                for j in range(cells):
                    store_u8(output + row * cells, j, load_u8(hidden, j))

    return lstm_q8
