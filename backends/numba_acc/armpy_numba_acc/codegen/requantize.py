"""From sums in int32 to 8-bit elements, for micro-kernels."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from llvmlite import ir

from armpy_numba_acc.codegen.bytes import round_to_int
from armpy_numba_acc.codegen.exact_scaling import ExactScaling
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.codegen.vectors import (
    F32,
    I8,
    I16,
    I32,
    I64,
    extreme,
    fma,
    intrinsic,
    load,
    masked_store,
    splat,
    store,
    vector,
)

_ROUNDING = 12582912.0
"""1.5 * 2**23: float32 numbers near it have steps of 1, so adding it rounds to nearest even."""

_LARGEST = 2.0**30
"""What an int32 holds, with room for a zero point."""


class Requantizer:
    """Scales sums, rounds them to integers, adds a zero point and clamps.

    Parameters
    ----------
    isa : Isa
    builder : ir.IRBuilder
    exact : ExactScaling
        For as many vectors as each row has.
    zero_point, low, high : ir.Value, int64
        Of the unsigned output.
    has_negatives : bool
        Whether results below the zero point are not all clamped to it; if they are, the
        zero point is part of the nudges.
    has_bounds : bool
        Whether `low` is above 0 or `high` below 255.
    has_large_scales : bool
        Whether scaled sums may be 2**31 or more.

    Notes
    -----
    Every sum is scaled and moved away from zero by a nudge in one float32 operation, then
    rounded to the nearest integer. With the nudges of `armpy_numba_acc.packing.factors` these are
    the results of TFLite's arithmetic but for sums that are close to where it rounds the other
    way, which are computed exactly instead.
    """

    def __init__(
        self,
        isa: Isa,
        builder,
        exact: ExactScaling,
        zero_point,
        low,
        high,
        *,
        has_negatives,
        has_bounds,
        has_large_scales,
    ):
        self._isa, self._builder, self._exact = isa, builder, exact
        self._has_negatives, self._has_bounds = has_negatives, has_bounds
        self._has_packs = isa.vector_bytes > 16
        self._has_large_scales = has_large_scales
        offset = builder.trunc(zero_point, I32)
        self._offset = None if has_negatives else splat(builder, offset, isa.lanes)
        if self._has_packs:
            self._zero_point = splat(builder, builder.trunc(zero_point, I16), 2 * isa.lanes)
            self._low, self._high = (
                splat(builder, builder.trunc(limit, I8), isa.vector_bytes) for limit in (low, high)
            )
            return
        base = ir.Constant(F32, _ROUNDING).bitcast(I32)
        self._zero_point = splat(builder, offset, isa.lanes)
        moved = base if has_negatives else builder.add(base, offset)
        self._offset = splat(builder, moved, isa.lanes)
        if has_negatives:
            base = builder.sub(base, offset)
        self._low, self._high = (
            splat(builder, builder.add(builder.trunc(limit, I32), base), isa.lanes)
            for limit in (low, high)
        )

    def elements(self, totals, scales, nudges):
        """Elements of up to four vectors of sums, one behind the other in one vector of bytes.

        Parameters
        ----------
        totals : list of ir.Value, int32 vectors of one register
        scales, nudges : list of ir.Value, float32 vectors
            One for each of `totals`.

        Returns
        -------
        ir.Value
            Bytes of four registers' lanes, of which those of `totals` are the first.
        """
        reals = [
            self._scaled(total, scale, nudge)
            for total, scale, nudge in zip(totals, scales, nudges, strict=True)
        ]
        finish = self._packed if self._has_packs else self._truncated
        return finish(totals, reals)

    def _scaled(self, total, scale, nudge):
        """A vector of sums in steps of the output, nudged away from zero."""
        builder = self._builder
        real = builder.sitofp(total, scale.type)
        if not self._has_negatives:
            return fma(builder, real, scale, nudge)
        sign = builder.and_(total, ir.Constant(total.type, [-(1 << 31)] * total.type.count))
        nudge = builder.or_(sign, builder.bitcast(nudge, total.type))
        return fma(builder, real, scale, builder.bitcast(nudge, scale.type))

    def _packed(self, totals, reals):
        """By instructions that saturate; these work on 128 bits at a time."""
        builder, isa = self._builder, self._isa
        reals = [self._bounded(real) for real in reals]
        integers = [round_to_int(builder, real) for real in reals]
        integers = self._exact.checked(totals, reals, integers, self._offset)
        integers += [integers[-1]] * (4 - len(integers))
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
        """16-bit integers plus the zero point, saturated."""
        if not self._has_negatives:
            return words
        kind = words.type
        function = intrinsic(self._builder, f"llvm.sadd.sat.v{kind.count}i16", kind, kind, kind)
        return self._builder.call(function, (words, self._zero_point))

    def _bounded(self, real):
        """Scaled sums that an int32 holds."""
        if not self._has_large_scales:
            return real
        return extreme(
            self._builder, "minnum", real, ir.Constant(real.type, [_LARGEST] * self._isa.lanes)
        )

    def _truncated(self, totals, reals):
        """By the lowest bits of rounded numbers, whose bits are ordered as integers, too."""
        builder, lanes = self._builder, self._isa.lanes
        rounding = ir.Constant(reals[0].type, [_ROUNDING] * lanes)
        sums = [builder.fadd(real, rounding) for real in reals]
        integers = [builder.bitcast(total, vector(I32, lanes)) for total in sums]
        parts = []
        for bits in self._exact.checked(totals, reals, integers, self._offset):
            part = extreme(builder, "smin", extreme(builder, "smax", bits, self._low), self._high)
            parts.append(builder.add(part, self._zero_point) if self._has_negatives else part)
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
