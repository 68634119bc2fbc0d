"""Moves blocks of bytes: vectors, short runs, and square tiles that are transposed."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from functools import cache

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.vectors import I8, I32, I64, load, splat, store, vector
from armpy_numba_acc.machine.isa import Isa


@cache
def make_copy_vector(width: int):
    """Make ``copy(target, source)``, which moves `width` bytes in one go."""
    kind = vector(I8, width)

    @intrinsic
    def copy(typingctx, target, source):
        signature = types.void(types.int64, types.int64)

        def generate(context, builder, signature, args):
            store(builder, load(builder, args[1], kind), args[0])
            return context.get_dummy_value()

        return signature, generate

    return copy


@cache
def make_copy_run(isa: Isa):
    """Make ``copy(target, source, size)``, which moves any number of bytes.

    Notes
    -----
    The last vector overlaps the one in front of it: nothing behind the run is touched.
    """
    width = isa.vector_bytes
    copy_widest, copy_16 = make_copy_vector(width), make_copy_vector(16)
    copy_8, copy_4 = make_copy_vector(8), make_copy_vector(4)
    copy_2, copy_1 = make_copy_vector(2), make_copy_vector(1)

    @njit(error_model="numpy")
    def copy(target, source, size):
        if size >= width:
            last = size - width
            for at in range(0, last, width):
                copy_widest(target + at, source + at)
            copy_widest(target + last, source + last)
        elif size >= 16:
            last = size - 16
            for at in range(0, last, 16):
                copy_16(target + at, source + at)
            copy_16(target + last, source + last)
        elif size >= 8:
            copy_8(target, source)
            copy_8(target + size - 8, source + size - 8)
        elif size >= 4:
            copy_4(target, source)
            copy_4(target + size - 4, source + size - 4)
        elif size >= 2:
            copy_2(target, source)
            copy_2(target + size - 2, source + size - 2)
        else:
            copy_1(target, source)

    return copy


@cache
def _make_fill_vector(width: int):
    """Make ``fill(target, byte)``, which sets `width` bytes in one go."""

    @intrinsic
    def fill(typingctx, target, byte):
        signature = types.void(types.int64, types.int64)

        def generate(context, builder, signature, args):
            store(builder, splat(builder, builder.trunc(args[1], I8), width), args[0])
            return context.get_dummy_value()

        return signature, generate

    return fill


@cache
def make_fill_run(isa: Isa):
    """Make ``fill(target, size, byte)``, which sets any number of bytes; see `make_copy_run`."""
    width = isa.vector_bytes
    fill_widest, fill_16, fill_8 = (_make_fill_vector(size) for size in (width, 16, 8))
    fill_4, fill_2, fill_1 = (_make_fill_vector(size) for size in (4, 2, 1))

    @njit(error_model="numpy")
    def fill(target, size, byte):
        if size >= width:
            last = size - width
            for at in range(0, last, width):
                fill_widest(target + at, byte)
            fill_widest(target + last, byte)
        elif size >= 16:
            last = size - 16
            for at in range(0, last, 16):
                fill_16(target + at, byte)
            fill_16(target + last, byte)
        elif size >= 8:
            fill_8(target, byte)
            fill_8(target + size - 8, byte)
        elif size >= 4:
            fill_4(target, byte)
            fill_4(target + size - 4, byte)
        elif size >= 2:
            fill_2(target, byte)
            fill_2(target + size - 2, byte)
        elif size == 1:
            fill_1(target, byte)

    return fill


@cache
def make_transpose_tile(size: int, length: int):
    """Make ``transpose(target, source, target_pitch, source_pitch)`` for a square tile.

    Parameters
    ----------
    size : int
        Bytes of an element.
    length : int
        Elements of a row; a power of two.

    Notes
    -----
    Interleaving the first half of the rows with the second one, as often as the length can be
    halved, transposes them.
    """
    kind = vector(ir.IntType(8 * size), length)
    order = [half + number for number in range(length // 2) for half in (0, length)]
    low = ir.Constant(vector(I32, length), order)
    high = ir.Constant(vector(I32, length), [number + length // 2 for number in order])

    @intrinsic
    def transpose(typingctx, target, source, target_pitch, source_pitch):
        signature = types.void(*(types.int64,) * 4)

        def generate(context, builder, signature, args):
            target, source, target_pitch, source_pitch = args
            rows = []
            for number in range(length):
                place = builder.add(source, builder.mul(source_pitch, I64(number)))
                rows.append(load(builder, place, kind))
            for _ in range(length.bit_length() - 1):
                pairs = zip(rows[: length // 2], rows[length // 2 :], strict=True)
                rows = [
                    builder.shuffle_vector(*pair, mask) for pair in pairs for mask in (low, high)
                ]
            for number, row in enumerate(rows):
                place = builder.add(target, builder.mul(target_pitch, I64(number)))
                store(builder, row, place)
            return context.get_dummy_value()

        return signature, generate

    return transpose


@njit(error_model="numpy")
def nested_offsets(number, table, num_dims):
    """Offsets into source and target of item `number` of nested loops.

    Notes
    -----
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
