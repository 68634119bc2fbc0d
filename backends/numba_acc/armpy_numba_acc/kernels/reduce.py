"""Combines elements along axes."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import nested_offsets
from armpy_numba_acc.tiles.reductions import make_accumulation

ARGUMENTS = (
    "source",
    "target",
    "kept",
    "num_kept",
    "num_items",
    "reduced",
    "num_reduced",
    "num_turns",
    "lines",
    "pitch",
    "inner",
    "block",
    "scratch",
    "scale",
    "offset",
    "shift",
    "zero_point",
)
"""`kept` and `reduced` are tables of loops as for `move_runs`; the innermost loop over what is
reduced is `lines` that are `pitch` bytes apart. `inner` elements lie side by side: those that stay
are taken `block` at a time, with `scratch` for 4 bytes of each per thread. In the end real sums are
divided by `scale`, which is a float64; quantised ones less `offset` are multiplied by
``scale * 2**(shift - 31)``, and `zero_point` is added; means that are rounded down are divided by
`offset`."""


def make(isa: Isa, operation: str, kind: str, form: str):
    """Make the kernel.

    Parameters
    ----------
    operation : {"sum", "product", "max", "min", "mean_down"}
    kind : {"f32", "bf16", "u8", "q8", "i16", "q16", "i32"}
        Of the elements; "q8" and "q16" are requantised, "bf16" is added up and written as float32.
    form : {"columns", "rows"}
        Whether the elements that lie side by side stay, or are reduced.

    Notes
    -----
    Threads share items and blocks of them.
    """
    tools = make_accumulation(operation, kind)
    size, first, load, read, write = tools.size, tools.first, tools.load, tools.read, tools.write
    combine, finish = tools.combine, tools.finish

    @njit(error_model="numpy")
    def add_lines(totals, line, lines, pitch, count):
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

    def reduce_columns(args, thread, num_threads):
        source, target, kept = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        num_kept, num_items = load_i64(args, 3), load_i64(args, 4)
        reduced, num_reduced = load_i64(args, 5), load_i64(args, 6)
        turns, lines, pitch = load_i64(args, 7), load_i64(args, 8), load_i64(args, 9)
        inner, block = load_i64(args, 10), load_i64(args, 11)
        totals = load_i64(args, 12) + thread * block * 4
        blocks = (inner + block - 1) // block
        begin, end = share_items(num_items * blocks, thread, num_threads)
        for number in range(begin, end):
            item = number // blocks
            column = (number - item * blocks) * block
            columns = min(block, inner - column)
            origin = source + nested_offsets(item, kept, num_kept)[0] + column * size
            for j in range(columns):
                write(totals, j, first)
            for turn in range(turns):
                line = origin + nested_offsets(turn, reduced, num_reduced)[0]
                add_lines(totals, line, lines, pitch, columns)
            finish(target, item * inner + column, totals, columns, args)

    def reduce_rows(args, thread, num_threads):
        source, target, kept = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        num_kept, num_items = load_i64(args, 3), load_i64(args, 4)
        reduced, num_reduced = load_i64(args, 5), load_i64(args, 6)
        turns, lines, pitch = load_i64(args, 7), load_i64(args, 8), load_i64(args, 9)
        inner, totals = load_i64(args, 10), load_i64(args, 12) + thread * 64
        begin, end = share_items(num_items, thread, num_threads)
        for item in range(begin, end):
            origin = source + nested_offsets(item, kept, num_kept)[0]
            total = first
            for turn in range(turns):
                line = origin + nested_offsets(turn, reduced, num_reduced)[0]
                for _ in range(lines):
                    part = first
                    for j in range(inner):
                        part = combine(part, load(line, j))
                    total = combine(total, part)
                    line += pitch
            write(totals, 0, total)
            finish(target, item, totals, 1, args)

    return reduce_columns if form == "columns" else reduce_rows
