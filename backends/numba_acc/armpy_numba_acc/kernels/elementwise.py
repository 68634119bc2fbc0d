"""Functions of one element of every input, with broadcasting."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import Linked
from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.sharing import share
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.span import call_span, span_definition

ARGUMENTS = (
    "first",
    "second",
    "third",
    "output",
    "inner",
    "rows",
    "planes",
    "first_row",
    "second_row",
    "third_row",
    "num_outer",
    "outer",
    "first_step",
    "second_step",
    "third_step",
    "output_step",
)
"""Addresses (those that are not needed are 0), then how many elements lie next to each other,
how many rows of them, how many planes of rows; bytes from an input's row to its next; how many
axes the planes run over, and the address of these axes' sizes, followed by the inputs' pitches
in bytes; bytes from an element to its next in a row. The expression's parameters follow."""

NUM_ARGUMENTS = len(ARGUMENTS)


def make(isa: Isa, expression: str, kinds: str, patterns: str):
    """Make the kernel for one expression.

    Parameters
    ----------
    isa : Isa
    expression : str
        See `armpy_numba_acc.tiles.expressions`.
    kinds : str
        How inputs and output are stored, with ``x`` in between.
    patterns : str
        A letter per input: ``v`` if it has an element per output's along the innermost axis,
        ``s`` if it has one for all.

    Notes
    -----
    Threads share the elements.
    """
    return Linked(_elementwise, span_definition(isa, expression, kinds.split("x"), patterns))


def _elementwise(args, thread, num_threads):
    """Walk over rows, and parts of rows at both ends of a thread's share."""
    inner, rows, planes = load_i64(args, 4), load_i64(args, 5), load_i64(args, 6)
    first_row, second_row, third_row = load_i64(args, 7), load_i64(args, 8), load_i64(args, 9)
    num_outer, outer = load_i64(args, 10), load_i64(args, 11)
    first_step, second_step = load_i64(args, 12), load_i64(args, 13)
    third_step, output_step = load_i64(args, 14), load_i64(args, 15)
    begin, end = share(inner * rows * planes, thread, num_threads)
    row = begin // inner
    start = begin - row * inner
    output = load_i64(args, 3) + begin * output_step
    plane = row // rows
    row -= plane * rows
    while begin < end:
        first, second, third = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        rest = plane
        for axis in range(num_outer - 1, -1, -1):
            size = load_i64(outer, axis)
            index = rest % size
            rest //= size
            first += index * load_i64(outer, num_outer + axis)
            second += index * load_i64(outer, 2 * num_outer + axis)
            third += index * load_i64(outer, 3 * num_outer + axis)
        first += row * first_row + start * first_step
        second += row * second_row + start * second_step
        third += row * third_row + start * third_step
        while row < rows and begin < end:
            count = min(inner - start, end - begin)
            call_span(first, second, third, output, count, args + 8 * NUM_ARGUMENTS)
            first += first_row - start * first_step
            second += second_row - start * second_step
            third += third_row - start * third_step
            output += count * output_step
            begin += count
            start = 0
            row += 1
        row = 0
        plane += 1
