"""Vectors of bytes: taken apart into 32-bit lanes for arithmetic, and put together again.

Notes
-----
`V` bytes become four vectors of ``V / 4`` lanes in the order of `byte_order.lane_order`: nothing
crosses 128 bits, which would be dear.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from llvmlite import ir

from armpy_numba_acc.llvm.vectors import (
    I8,
    I16,
    I32,
    extreme,
    intrinsic,
    splat,
    store,
    suffix,
    vector,
)


def interleave(builder, one, other, half):
    """Elements of two vectors in turn, of the lower or the upper half of every 128 bits."""
    count = one.type.count
    per_half = 64 // one.type.element.width
    lanes = [
        lane + source * count
        for block in range(half * per_half, count, 2 * per_half)
        for lane in range(block, block + per_half)
        for source in range(2)
    ]
    return shuffle(builder, one, other, lanes)


def shuffle(builder, one, other, lanes):
    """Lanes of two vectors."""
    numbers = ir.Constant(vector(I32, len(lanes)), lanes)
    return builder.shuffle_vector(one, other, numbers)


def groups_of_four(builder, rows, half):
    """Two of the four vectors of int32 that hold one byte of each of four rows per lane."""
    size = rows[0].type.count
    words = vector(I16, size // 2)
    pairs = [
        builder.bitcast(interleave(builder, rows[k], rows[k + 1], half), words) for k in (0, 2)
    ]
    return [
        builder.bitcast(interleave(builder, pairs[0], pairs[1], part), vector(I32, size // 4))
        for part in range(2)
    ]


def round_to_int(builder, real):
    """The nearest int32 of float32, halves to even."""
    kind = vector(I32, real.type.count)
    name = f"llvm.lrint.{suffix(kind)}.{suffix(real.type)}"
    return builder.call(intrinsic(builder, name, kind, real.type), (real,))


def pack_words(builder, parts, zero_point):
    """Two of the four vectors of int32 as one of int16, with a zero point added; saturates."""
    size = 4 * parts[0].type.count
    words = vector(I16, size // 2)
    if size == 16:
        whole = _concatenate(builder, *parts)
        limits = (("smax", -0x8000), ("smin", 0x7FFF))
        for name, limit in limits:
            whole = extreme(builder, name, whole, ir.Constant(whole.type, [limit] * words.count))
        packed = builder.trunc(whole, words)
    else:
        name = {32: "llvm.x86.avx2.packssdw", 64: "llvm.x86.avx512.packssdw.512"}[size]
        packed = builder.call(intrinsic(builder, name, words, *(p.type for p in parts)), parts)
    add = intrinsic(builder, f"llvm.sadd.sat.{suffix(words)}", words, words, words)
    offset = splat(builder, builder.trunc(zero_point, I16), words.count)
    return builder.call(add, (packed, offset))


def pack_bytes(builder, halves, low, high):
    """Two vectors of `pack_words` as one of bytes, clamped."""
    size = 2 * halves[0].type.count
    octets = vector(I8, size)
    if size == 16:
        whole = _concatenate(builder, *halves)
        for name, limit in (("smax", 0), ("smin", 255)):
            whole = extreme(builder, name, whole, ir.Constant(whole.type, [limit] * size))
        result = builder.trunc(whole, octets)
    else:
        name = {32: "llvm.x86.avx2.packuswb", 64: "llvm.x86.avx512.packuswb.512"}[size]
        result = builder.call(intrinsic(builder, name, octets, *(h.type for h in halves)), halves)
    lowest, highest = (splat(builder, builder.trunc(v, I8), size) for v in (low, high))
    return extreme(builder, "umin", extreme(builder, "umax", result, lowest), highest)


def _concatenate(builder, one, other):
    """Two vectors as one."""
    return shuffle(builder, one, other, list(range(2 * one.type.count)))


def store_bytes(builder, value, address, count):
    """Store the first `count` bytes, a number known when the kernel is made."""
    size = value.type.count
    if count >= size:
        store(builder, value, address)
        return
    done = 0
    for width in (32, 16, 8, 4, 2, 1):
        if count - done >= width:
            undefined = ir.Constant(value.type, ir.Undefined)
            part = shuffle(builder, value, undefined, list(range(done, done + width)))
            store(builder, part, builder.add(address, ir.Constant(address.type, done)))
            done += width
