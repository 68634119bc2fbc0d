"""Vectors of bytes: taken apart into 32-bit lanes for arithmetic, and put together again.

Notes
-----
`V` bytes become four vectors of ``V / 4`` lanes in the order of `byte_order.lane_order`: nothing
crosses 128 bits, which would be dear.
"""

from __future__ import annotations

from collections.abc import Sequence

from armpy_numba_acc.llvm.values import I8, I16, I32, CodeValue, element_bytes, vector


def interleave(one: CodeValue, other: CodeValue, half: int) -> CodeValue:
    """Elements of two vectors in turn, of the lower or the upper half of every 128 bits."""
    per_half = 8 // element_bytes(one.kind)
    lanes = [
        lane + source * one.count
        for block in range(half * per_half, one.count, 2 * per_half)
        for lane in range(block, block + per_half)
        for source in range(2)
    ]
    return one.shuffled(lanes, other)


def groups_of_four(rows: Sequence[CodeValue], half: int) -> list[CodeValue]:
    """Two of the four vectors of int32 that hold one byte of each of four rows per lane."""
    size = rows[0].count
    words = vector(I16, size // 2)
    pairs = [interleave(rows[k], rows[k + 1], half).bitcast(words) for k in (0, 2)]
    four = vector(I32, size // 4)
    return [interleave(pairs[0], pairs[1], part).bitcast(four) for part in range(2)]


def pack_words(parts: Sequence[CodeValue], zero_point: CodeValue) -> CodeValue:
    """Two of the four vectors of int32 as one of int16, with a zero point added; saturates."""
    size = 4 * parts[0].count
    words = vector(I16, size // 2)
    if size == 16:
        whole = _concatenated(*parts)
        whole = whole.call("smax", whole.like(-0x8000))
        packed = whole.call("smin", whole.like(0x7FFF)).narrowed(I16)
    else:
        name = {32: "llvm.x86.avx2.packssdw", 64: "llvm.x86.avx512.packssdw.512"}[size]
        packed = parts[0].code.call(name, words, *parts)
    return packed.call("sadd.sat", zero_point.narrowed(I16).splat(words.count))


def pack_bytes(halves: Sequence[CodeValue], low: CodeValue, high: CodeValue) -> CodeValue:
    """Two vectors of `pack_words` as one of bytes, clamped."""
    size = 2 * halves[0].count
    if size == 16:
        whole = _concatenated(*halves)
        whole = whole.call("smax", whole.like(0))
        result = whole.call("smin", whole.like(255)).narrowed(I8)
    else:
        name = {32: "llvm.x86.avx2.packuswb", 64: "llvm.x86.avx512.packuswb.512"}[size]
        result = halves[0].code.call(name, vector(I8, size), *halves)
    lowest, highest = (bound.narrowed(I8).splat(size) for bound in (low, high))
    return result.call("umax", lowest).call("umin", highest)


def _concatenated(left: CodeValue, other: CodeValue) -> CodeValue:
    """Two vectors as one."""
    return left.shuffled(range(2 * left.count), other)


def store_bytes(value: CodeValue, address: CodeValue, count: int) -> None:
    """Store the first `count` bytes, a number known when the kernel is made."""
    if count >= value.count:
        address.store(value)
        return
    done = 0
    for width in (32, 16, 8, 4, 2, 1):
        if count - done >= width:
            (address + done).store(value.shuffled(range(done, done + width)))
            done += width
