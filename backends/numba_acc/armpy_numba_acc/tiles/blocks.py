"""Copies, fills and transposes blocks of bytes: vectors, runs of any length, square tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from llvmlite import ir

from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, compiled, inlined, primitive
from armpy_numba_acc.llvm.values import I8, Code, CodeValue, vector
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.isa import Isa

CopyRun = Callable[[Pointer, Pointer, int], None]
FillRun = Callable[[Pointer, int, int], None]


def _make_copy_part(width: int) -> Primitive:
    """Make ``copy(target, source, at)``, which moves `width` bytes after two addresses."""

    @primitive(NOTHING, WORD, WORD, WORD)
    def copy(code: Code, target: CodeValue, source: CodeValue, at: CodeValue) -> None:
        (target + at).store((source + at).load(vector(I8, width)))

    return copy


def _make_fill_part(width: int) -> Primitive:
    """Make ``fill(target, byte, at)``, which sets `width` bytes after an address."""

    @primitive(NOTHING, WORD, WORD, WORD)
    def fill(code: Code, target: CodeValue, byte: CodeValue, at: CodeValue) -> None:
        (target + at).store(byte.narrowed(I8).splat(width))

    return fill


def _make_run(
    isa: Isa, make_part: Callable[[int], Primitive]
) -> Callable[[Pointer, Pointer, int], None]:
    """Make ``run(target, given, size)``, which writes any number of bytes by parts.

    The last part overlaps the one in front of it: nothing after the run is touched.
    """
    width = isa.vector_bytes
    widest, part_16, part_8 = make_part(width), make_part(16), make_part(8)
    part_4, part_2, part_1 = make_part(4), make_part(2), make_part(1)

    def run(target: Pointer, source: Pointer, size: int) -> None:
        if size >= width:
            for at in range(0, size - width, width):
                widest(target, source, at)
            widest(target, source, size - width)
        elif size >= 16:
            for at in range(0, size - 16, 16):
                part_16(target, source, at)
            part_16(target, source, size - 16)
        elif size >= 8:
            part_8(target, source, 0)
            part_8(target, source, size - 8)
        elif size >= 4:
            part_4(target, source, 0)
            part_4(target, source, size - 4)
        elif size >= 2:
            part_2(target, source, 0)
            part_2(target, source, size - 2)
        elif size == 1:
            part_1(target, source, 0)

    return compiled(run)


@cache
def make_copy_run(isa: Isa) -> CopyRun:
    """Make ``copy(target, source, size)``, which moves any number of bytes, and no other."""
    return _make_run(isa, _make_copy_part)


@cache
def make_copy_size(size: int) -> CopyRun:
    """Make a `make_copy_run` for one size, whatever the last argument is."""
    part = _make_copy_part(size)

    def copy(target: Pointer, source: Pointer, _: int) -> None:
        part(target, source, 0)

    return inlined(copy)


@cache
def make_fill_run(isa: Isa) -> FillRun:
    """Make ``fill(target, size, byte)``, which sets any number of bytes, and no other."""
    run = _make_run(isa, _make_fill_part)

    def fill(target: Pointer, size: int, byte: int) -> None:
        run(target, byte, size)

    return compiled(fill)


@cache
def make_transpose_tile(size: int, length: int) -> Primitive:
    """Make ``transpose(target, source, target_pitch, source_pitch)`` for a square tile.

    Interleaving the first half of the rows with the second one, as often as the length can be
    halved, transposes them.

    Parameters
    ----------
    size
        Bytes of an element.
    length
        Elements of a row; a power of two.
    """
    kind = vector(ir.IntType(8 * size), length)
    low = [half + number for number in range(length // 2) for half in (0, length)]
    high = [number + length // 2 for number in low]

    @primitive(NOTHING, WORD, WORD, WORD, WORD)
    def transpose(
        code: Code,
        target: CodeValue,
        source: CodeValue,
        target_pitch: CodeValue,
        source_pitch: CodeValue,
    ) -> None:
        rows = [(source + source_pitch * number).load(kind) for number in range(length)]
        for _ in range(length.bit_length() - 1):
            pairs = zip(rows[: length // 2], rows[length // 2 :], strict=True)
            rows = [row.shuffled(lanes, other) for row, other in pairs for lanes in (low, high)]
        for number, row in enumerate(rows):
            (target + target_pitch * number).store(row)

    return transpose


@compiled
def nested_offsets(number: int, table: Pointer, num_dims: int) -> tuple[int, int]:
    """Offsets into source and target of item `number` of nested loops.

    `table` is the address of each loop's length and its pitches in source and target, in
    bytes, outermost first.
    """
    source, target = 0, 0
    for dim in range(num_dims - 1, -1, -1):
        length = load_i64(table, 3 * dim)
        rest = number // length
        at = number - rest * length
        source += at * load_i64(table, 3 * dim + 1)
        target += at * load_i64(table, 3 * dim + 2)
        number = rest
    return source, target
