"""Functions of one element of every input, with broadcasting."""

from __future__ import annotations

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.calls.elementwise import Elementwise
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.loop import compute_rows, elementwise_definition
from armpy_numba_acc.tiles.elementwise.packed_sums import OPERATIONS, packed_sum_definition

_read = reader(Elementwise)


def make(isa: Isa, expression: str, formats: str, patterns: str) -> LinkedKernel:
    """Make the kernel for one expression; threads share the elements."""
    write = packed_sum_definition if expression in OPERATIONS else elementwise_definition
    return LinkedKernel(_elementwise, write(isa, expression, formats.split("x"), patterns))


def _elementwise(args: int, shares: int, num_shares: int) -> None:
    """Walk over rows, and parts of rows at both ends of a thread's share."""
    call = _read(args)
    begin, end = share(call.columns * call.rows * call.planes, shares, num_shares)
    row = begin // call.columns
    start = begin - row * call.columns
    output = call.output + begin * call.output_step
    plane = row // call.rows
    row -= plane * call.rows
    while begin < end:
        first, second, third = call.first.address, call.second.address, call.third.address
        rest = plane
        for axis in range(call.num_outer - 1, -1, -1):
            size = load_i64(call.outer, axis)
            index = rest % size
            rest //= size
            first += index * load_i64(call.outer, call.num_outer + axis)
            second += index * load_i64(call.outer, 2 * call.num_outer + axis)
            third += index * load_i64(call.outer, 3 * call.num_outer + axis)
        first += row * call.first.row + start * call.first.step
        second += row * call.second.row + start * call.second.step
        third += row * call.third.row + start * call.third.step
        while row < call.rows and begin < end:
            count = min(call.columns - start, end - begin)
            rows = max(min(call.rows - row, (end - begin) // call.columns), 1) if not start else 1
            compute_rows(
                first,
                second,
                third,
                output,
                count,
                call.numbers,
                rows,
                call.first.row,
                call.second.row,
                call.third.row,
                count * call.output_step,
            )
            first += rows * call.first.row - start * call.first.step
            second += rows * call.second.row - start * call.second.step
            third += rows * call.third.row - start * call.third.step
            output += rows * count * call.output_step
            begin += rows * count
            start = 0
            row += rows
        row = 0
        plane += 1
