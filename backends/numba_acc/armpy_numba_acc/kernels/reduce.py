"""Reduction along axes."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.rows import Reduce
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import nested_offsets
from armpy_numba_acc.tiles.reductions import make_accumulation


def make(isa: Isa, operation: str, kind: str, form: str) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share items and blocks of them."""
    read_call, tools = reader(Reduce), make_accumulation(operation, kind)
    size, first, load, read, write = tools.size, tools.first, tools.load, tools.read, tools.write
    combine, finish, width = tools.combine, tools.finish, tools.width

    @compiled
    def add_lines(totals: Pointer, line: Pointer, lines: int, pitch: int, count: int) -> None:
        """Combine lines of elements into a line of accumulators."""
        fours = lines // 4
        for _ in range(fours):
            second, third, fourth = line + pitch, line + 2 * pitch, line + 3 * pitch
            for j in range(count):
                former = combine(load(line, j), load(second, j))
                latter = combine(load(third, j), load(fourth, j))
                write(totals, j, combine(read(totals, j), combine(former, latter)))
            line += 4 * pitch
        for _ in range(lines - fours * 4):
            for j in range(count):
                write(totals, j, combine(read(totals, j), load(line, j)))
            line += pitch

    def reduce_columns(args: int, shares: int, num_shares: int) -> None:
        call = read_call(args)
        inner, block = call.inner, call.block
        totals = call.scratch + thread_of(shares) * block * width
        blocks = (inner + block - 1) // block
        begin, end = share_items(call.num_items * blocks, shares, num_shares)
        for number in range(begin, end):
            item = number // blocks
            column = (number - item * blocks) * block
            columns = min(block, inner - column)
            origin = call.source + nested_offsets(item, call.kept, call.num_kept)[0]
            origin += column * size
            for j in range(columns):
                write(totals, j, first)
            for turn in range(call.num_turns):
                line = origin + nested_offsets(turn, call.reduced, call.num_reduced)[0]
                add_lines(totals, line, call.lines, call.pitch, columns)
            finish(call.target, item * inner + column, totals, columns, call.rescaling)

    def reduce_rows(args: int, shares: int, num_shares: int) -> None:
        call = read_call(args)
        totals = call.scratch + thread_of(shares) * 64
        begin, end = share_items(call.num_items, shares, num_shares)
        for item in range(begin, end):
            origin = call.source + nested_offsets(item, call.kept, call.num_kept)[0]
            total = first
            for turn in range(call.num_turns):
                line = origin + nested_offsets(turn, call.reduced, call.num_reduced)[0]
                for _ in range(call.lines):
                    part = first
                    for j in range(call.inner):
                        part = combine(part, load(line, j))
                    total = combine(total, part)
                    line += call.pitch
            write(totals, 0, total)
            finish(call.target, item, totals, 1, call.rescaling)

    return reduce_columns if form == "columns" else reduce_rows
