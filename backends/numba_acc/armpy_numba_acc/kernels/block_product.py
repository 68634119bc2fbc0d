"""Products of float32 with numbers of few bits in blocks."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.vectors import UNITS_AT_ONCE, BlockProduct
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.block_weights import (
    BlockFormat,
    byte_row,
    several_rows,
    single_row,
    unpack_units,
)

Compute = Callable[[Pointer, int, Pointer], None]


def _make_single(multiply: Callable[[Pointer, int], None]) -> Compute:
    """Make ``compute(args, unit, room)`` for one row, which needs no room."""

    @compiled
    def compute(args: Pointer, unit: int, room: Pointer) -> None:
        multiply(args, unit)

    return compute


def _make_several(form: BlockFormat, units: int) -> Compute:
    """Make ``compute(args, unit, room)`` for any number of rows."""
    at_once = 6 if form.isa.num_registers >= 32 else 3
    unpack = unpack_units(form, units)
    multiply, multiply_one = (several_rows(form, rows, units) for rows in (at_once, 1))
    read = reader(BlockProduct)

    @compiled
    def compute(args: Pointer, unit: int, room: Pointer) -> None:
        rows = read(args).rows
        unpack(args, unit, room)
        whole = rows // at_once * at_once
        for row in range(0, whole, at_once):
            multiply(args, row, unit, room)
        for row in range(whole, rows):
            multiply_one(args, row, unit, room)

    return compute


def make(
    isa: Isa, bits: int, block: int, has_points: int, has_bias: int, source: str
) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the units."""
    form = BlockFormat(isa, bits, block, has_points, has_bias)
    if source == "rows":
        some, single = (_make_several(form, units) for units in (UNITS_AT_ONCE, 1))
    else:
        make_row = byte_row if source == "bytes" else single_row
        some, single = (_make_single(make_row(form, units)) for units in (UNITS_AT_ONCE, 1))
    read = reader(BlockProduct)

    def block_product(args: int, thread: int, num_threads: int) -> None:
        call = read(args)
        room = call.scratch + thread_of(thread) * call.scratch_pitch
        groups = (call.units + UNITS_AT_ONCE - 1) // UNITS_AT_ONCE
        first, last = share_items(groups, thread, num_threads)
        end = min(last * UNITS_AT_ONCE, call.units)
        whole = min(last, call.units // UNITS_AT_ONCE) * UNITS_AT_ONCE
        for unit in range(first * UNITS_AT_ONCE, whole, UNITS_AT_ONCE):
            some(args, unit, room)
        for unit in range(max(whole, first * UNITS_AT_ONCE), end):
            single(args, unit, room)

    return block_product
