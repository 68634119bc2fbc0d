"""Conversion of integers to 8-bit elements in memory, for micro-kernels."""

from __future__ import annotations

from collections.abc import Sequence

from armpy_numba_acc.llvm.control import when
from armpy_numba_acc.llvm.values import I8, I16, I32, Code, CodeValue, Kind, choose, vector
from armpy_numba_acc.machine.isa import Isa


class BytePacker:
    """Adds the zero point to integers, clamps them and makes bytes of them.

    Parameters
    ----------
    low, high : CodeValue, int64
        Of the unsigned output.
    has_bounds : bool
        Whether `low` is above 0 or `high` below 255.
    """

    def __init__(
        self, isa: Isa, missing: CodeValue, low: CodeValue, high: CodeValue, *, has_bounds: bool
    ) -> None:
        self._isa, self._has_bounds = isa, has_bounds
        self._has_packs = isa.vector_bytes > 16
        if self._has_packs:
            self._missing = missing.narrowed(I16).splat(2 * isa.lanes)
            self._low, self._high = (
                limit.narrowed(I8).splat(isa.vector_bytes) for limit in (low, high)
            )
            return
        self._missing = missing.splat(isa.lanes)
        self._low, self._high = (
            (limit.narrowed(I32) - missing).splat(isa.lanes) for limit in (low, high)
        )

    def elements(self, steps: Sequence[CodeValue]) -> CodeValue:
        """Bytes of up to four vectors of int32, one after the other in one vector.

        Returns
        -------
        CodeValue
            Bytes of four registers' lanes, of which those of `steps` are the first.
        """
        return self._packed(steps) if self._has_packs else self._truncated(steps)

    def _packed(self, integers: Sequence[CodeValue]) -> CodeValue:
        """Pack by instructions that saturate; these work on 128 bits at a time."""
        isa = self._isa
        integers = [*integers, *[integers[-1]] * (4 - len(integers))]
        prefix = "llvm.x86.avx512.pack" if isa.vector_bytes == 64 else "llvm.x86.avx2.pack"
        postfix = ".512" if isa.vector_bytes == 64 else ""

        def pack(name: str, x: CodeValue, y: CodeValue, element: Kind) -> CodeValue:
            return x.code.call(prefix + name + postfix, vector(element, x.count * 2), x, y)

        low, high = (
            pack("ssdw", integers[i], integers[i + 1], I16).call("sadd.sat", self._missing)
            for i in (0, 2)
        )
        packed = pack("uswb", low, high, I8)
        groups = isa.vector_bytes // 16
        order = [4 * group + part for part in range(4) for group in range(groups)]
        words = packed.bitcast(vector(I32, isa.lanes))
        packed = words.shuffled(order, words).bitcast(packed.kind)
        if not self._has_bounds:
            return packed
        return packed.call("umax", self._low).call("umin", self._high)

    def _truncated(self, integers: Sequence[CodeValue]) -> CodeValue:
        """Truncate by clamping, and take the lowest bits."""
        parts = [
            bits.call("smax", self._low).call("smin", self._high) + self._missing
            for bits in integers
        ]
        parts += [parts[-1]] * (4 - len(parts))
        pairs = [joined(*parts[i : i + 2]) for i in (0, 2)]
        return joined(*pairs).narrowed(I8)


def joined(x: CodeValue, y: CodeValue) -> CodeValue:
    """Two vectors of one type as one."""
    return x.shuffled(range(2 * x.count), y)


def part_of(value: CodeValue, first: int, count: int) -> CodeValue:
    """Some neighbouring elements of a vector."""
    return value.shuffled(range(first, first + count), value)


class ByteStore:
    """Stores the first elements of vectors of bytes.

    Parameters
    ----------
    count : CodeValue, int64
        Elements to store; may be negative or more than there are.
    size : int
        Bytes of a vector.
    """

    def __init__(self, isa: Isa, count: CodeValue, size: int) -> None:
        self._size, self._has_masks = size, isa.vector_bytes == 64
        count = choose(count > 0, count, 0)
        self._count = choose(count < size, count, size)
        code: Code = count.code
        if self._has_masks:
            self._mask = code.numbers(I8, range(size)) < self._count.narrowed(I8).splat(size)
        else:
            self._room = code.stack(vector(I8, 2 * size))

    def store(self, value: CodeValue, place: CodeValue) -> None:
        """Store a vector's first elements."""
        if self._has_masks:
            place.store(value, mask=self._mask)
            return
        self._room.store(value)
        size = 1 << (self._size.bit_length() - 1)
        while size:  # a number of elements is the sum of some powers of two
            self._store_piece(place, size)
            size //= 2

    def _store_piece(self, place: CodeValue, size: int) -> None:
        """Store so many bytes, if they are in the sum, after the larger powers of two."""

        def store() -> list[CodeValue]:
            done = self._count & (-2 * size)
            (place + done).store((self._room + done).load(vector(I8, size)))
            return []

        when((self._count & size).differs(0), store)
