"""From integers to 8-bit elements in memory, for micro-kernels."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from llvmlite import ir

from armpy_numba_acc.llvm.vectors import (
    I8,
    I16,
    I32,
    I64,
    extreme,
    intrinsic,
    load,
    masked_store,
    splat,
    store,
    vector,
)
from armpy_numba_acc.machine.isa import Isa


class BytePacker:
    """Adds what is missing to integers, clamps them and makes bytes of them.

    Parameters
    ----------
    isa : Isa
    builder : ir.IRBuilder
    missing : ir.Value, int32
    low, high : ir.Value, int64
        Of the unsigned output.
    has_bounds : bool
        Whether `low` is above 0 or `high` below 255.
    """

    def __init__(self, isa: Isa, builder, missing, low, high, *, has_bounds):
        self._isa, self._builder = isa, builder
        self._has_bounds = has_bounds
        self._has_packs = isa.vector_bytes > 16
        if self._has_packs:
            self._missing = splat(builder, builder.trunc(missing, I16), 2 * isa.lanes)
            self._low, self._high = (
                splat(builder, builder.trunc(limit, I8), isa.vector_bytes) for limit in (low, high)
            )
            return
        self._missing = splat(builder, missing, isa.lanes)
        self._low, self._high = (
            splat(builder, builder.sub(builder.trunc(limit, I32), missing), isa.lanes)
            for limit in (low, high)
        )

    def elements(self, steps):
        """Bytes of up to four vectors of int32, one behind the other in one vector.

        Returns
        -------
        ir.Value
            Bytes of four registers' lanes, of which those of `steps` are the first.
        """
        return self._packed(steps) if self._has_packs else self._truncated(steps)

    def _packed(self, integers):
        """By instructions that saturate; these work on 128 bits at a time."""
        builder, isa = self._builder, self._isa
        integers = integers + [integers[-1]] * (4 - len(integers))
        prefix = "llvm.x86.avx512.pack" if isa.vector_bytes == 64 else "llvm.x86.avx2.pack"
        postfix = ".512" if isa.vector_bytes == 64 else ""

        def pack(name, x, y, element):
            kind = vector(element, x.type.count * 2)
            function = intrinsic(builder, prefix + name + postfix, kind, x.type, y.type)
            return builder.call(function, (x, y))

        low, high = (self._moved(pack("ssdw", integers[i], integers[i + 1], I16)) for i in (0, 2))
        packed = pack("uswb", low, high, I8)
        groups = isa.vector_bytes // 16
        order = [4 * group + part for part in range(4) for group in range(groups)]
        words = builder.bitcast(packed, vector(I32, isa.lanes))
        words = builder.shuffle_vector(words, words, ir.Constant(vector(I32, len(order)), order))
        packed = builder.bitcast(words, packed.type)
        if not self._has_bounds:
            return packed
        return extreme(builder, "umin", extreme(builder, "umax", packed, self._low), self._high)

    def _moved(self, words):
        """16-bit integers with what is missing, saturated."""
        kind = words.type
        function = intrinsic(self._builder, f"llvm.sadd.sat.v{kind.count}i16", kind, kind, kind)
        return self._builder.call(function, (words, self._missing))

    def _truncated(self, integers):
        """By clamping, and the lowest bits of what comes of it."""
        builder, lanes = self._builder, self._isa.lanes
        parts = []
        for bits in integers:
            part = extreme(builder, "smin", extreme(builder, "smax", bits, self._low), self._high)
            parts.append(builder.add(part, self._missing))
        parts += [parts[-1]] * (4 - len(parts))
        halves = [joined(builder, *parts[i : i + 2]) for i in (0, 2)]
        whole = joined(builder, *halves)
        return builder.trunc(whole, vector(I8, 4 * lanes))


def joined(builder, x, y):
    """Two vectors of one type as one."""
    count = x.type.count
    return builder.shuffle_vector(x, y, ir.Constant(vector(I32, 2 * count), list(range(2 * count))))


def part_of(builder, value, first, count):
    """Some neighbouring elements of a vector."""
    lanes = ir.Constant(vector(I32, count), list(range(first, first + count)))
    return builder.shuffle_vector(value, value, lanes)


class ByteStore:
    """Stores the first elements of vectors of bytes.

    Parameters
    ----------
    isa : Isa
    builder : ir.IRBuilder
    count : ir.Value, int64
        Elements to store; may be negative or more than there are.
    size : int
        Bytes of a vector.
    """

    def __init__(self, isa: Isa, builder, count, size):
        self._builder, self._size = builder, size
        self._has_masks = isa.vector_bytes == 64
        zero, most = I64(0), I64(size)
        count = builder.select(builder.icmp_signed(">", count, zero), count, zero)
        self._count = builder.select(builder.icmp_signed("<", count, most), count, most)
        if self._has_masks:
            numbers = ir.Constant(vector(I8, size), list(range(size)))
            limit = splat(builder, builder.trunc(self._count, I8), size)
            self._mask = builder.icmp_signed("<", numbers, limit)
        else:
            with builder.goto_entry_block():
                self._room = builder.alloca(vector(I8, 2 * size))

    def store(self, value, address):
        """Store a vector's first elements."""
        builder = self._builder
        if self._has_masks:
            masked_store(builder, value, address, self._mask)
            return
        room = builder.ptrtoint(self._room, I64)
        store(builder, value, room)
        size = 1 << (self._size.bit_length() - 1)
        while size:  # a number of elements is the sum of some powers of two
            has_piece = builder.icmp_signed("!=", builder.and_(self._count, I64(size)), I64(0))
            with builder.if_then(has_piece):
                kind, done = vector(I8, size), builder.and_(self._count, I64(-2 * size))
                piece = load(builder, builder.add(room, done), kind)
                store(builder, piece, builder.add(address, done))
            size //= 2
