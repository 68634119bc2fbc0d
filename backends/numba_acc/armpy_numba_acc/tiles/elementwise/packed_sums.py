"""Sums and differences of bytes by x86's products of 16-bit pairs, in order within 128 bits.

Notes
-----
Weights of 30 bits are multiplied in two halves by ``pmaddwd``, which adds both terms. The total has
20 bits of a fraction. Where that is so near a tie that TFLite's own roundings may decide otherwise,
all bytes of the vector are computed again in its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, sub

from armpy_numba_acc.llvm.arithmetic.bytes import interleave, pack_bytes, pack_words
from armpy_numba_acc.llvm.arithmetic.dots import pair_products
from armpy_numba_acc.llvm.control import loop, when
from armpy_numba_acc.llvm.primitives import Definition, defined
from armpy_numba_acc.llvm.values import (
    F32,
    I8,
    I16,
    I32,
    I64,
    Code,
    CodeValue,
    Kind,
    choose,
    vector,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.fixed_expressions import exact_byte_sum, stored
from armpy_numba_acc.tiles.elementwise.loop import NUM_ROWS_ARGUMENTS, ROWS_NAME, for_each_row

OPERATIONS = {"packed_add": add, "packed_sub": sub}
"""Functions by the names of their expressions."""

_NUM_PARAMETERS = 18
_FRACTION_BITS, _LOW_BITS, _DROPPED_BITS = 20, 15, 9

_MARGIN = 16
"""In units of the fraction: TFLite's roundings are less than 9 away from real numbers where inputs
have less than twice the output's scale, and those in this module less than 3."""

_FLIPPED = 128


def packed_sum_definition(isa: Isa, name: str, formats: Sequence[str], patterns: str) -> str:
    """Write the function that computes rows of neighbouring bytes.

    Parameters
    ----------
    name
        A key of `OPERATIONS`.
    formats, patterns
        As for `elementwise_definition`; formats are ``u8`` or ``i8``.

    Returns
    -------
    str
        In LLVM's language, with the arguments of `elementwise_definition`'s. The parameters are
        three zero points, the lowest and the highest element, for each input the upper bits of its
        weight and the lower 15, with 29 bits of a fraction in all, and nine numbers of
        `exact_byte_sum`.
    """

    def write(code: Code, *arguments: CodeValue) -> None:
        numbers = [arguments[5].load(F32, 2 * n) for n in range(_NUM_PARAMETERS)]
        sums = _PackedSums(isa, name, formats, numbers)
        size = isa.vector_bytes
        rooms = [code.stack(vector(I8, size)) for _ in range(3)]
        for room in rooms:
            room.store(code.constant(vector(I8, size)))

        def row(inputs: Sequence[CodeValue], output: CodeValue, count: CodeValue) -> None:
            whole = count & -size
            left = count - whole

            def part(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
                """The whole vectors, or the rest in memory that is as large as a vector."""
                is_rest = number.equals(1)
                places = [
                    choose(is_rest, room, place)
                    for room, place in zip(rooms, (*inputs, output), strict=True)
                ]

                def copy_inputs() -> list[CodeValue]:
                    for place, room, pattern in zip(inputs, rooms, patterns, strict=False):
                        if pattern == "v":
                            _copy(place + whole, room, left, size)
                    return []

                def step(index: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
                    x, y = (
                        (place + index).load(vector(I8, size), align=1)
                        if pattern == "v"
                        else address.load(I8).splat(size)
                        for place, address, pattern in zip(places, inputs, patterns, strict=False)
                    )
                    (places[2] + index).store(sums.of(x, y))
                    return []

                def copy_output() -> list[CodeValue]:
                    _copy(rooms[2], output + whole, left, size)
                    return []

                when(is_rest, copy_inputs)
                loop(code, choose(is_rest, whole.like(size), whole), [], step, by=size)
                when(is_rest, copy_output)
                return []

            loop(code, choose(left > 0, left.like(2), left.like(1)), [], part)

        for_each_row(arguments, len(patterns), row)

    return defined(Definition(ROWS_NAME, NUM_ROWS_ARGUMENTS, write))


def _copy(source: CodeValue, target: CodeValue, count: CodeValue, size: int) -> None:
    """Copy fewer bytes than `size`, a power of two."""
    width = size // 2
    while width:
        done = count & -2 * width
        kind = vector(I8, width)

        def piece(done: CodeValue = done, kind: Kind = kind) -> list[CodeValue]:
            (target + done).store((source + done).load(kind))
            return []

        when((count & width).differs(0), piece)
        width //= 2


class _PackedSums:
    """The numbers that all vectors of a call share."""

    def __init__(
        self, isa: Isa, name: str, formats: Sequence[str], numbers: Sequence[CodeValue]
    ) -> None:
        self._isa, self._combine = isa, OPERATIONS[name]
        self._is_flipped = [format_ == "i8" for format_ in formats]
        zeros = zip(numbers, self._is_flipped, strict=False)
        # Bytes are unsigned in here.
        self._zeros = [zero + float(_FLIPPED * flipped) for zero, flipped in zeros]
        moved = float(_FLIPPED * self._is_flipped[2])
        self._bounds = [bound + moved for bound in numbers[3:5]]
        integers = [number.to_integer() for number in numbers[5:9]]
        self._weights = [
            ((integers[k] & 0xFFFF) | (integers[k + 2] << 16))
            .splat(isa.lanes)
            .bitcast(vector(I16, 2 * isa.lanes))
            for k in range(2)
        ]
        a_zero, b_zero, zero = (zero.to_integer().signed(I64) for zero in self._zeros)
        a, b = (
            (integers[k].signed(I64) << _LOW_BITS) + integers[k + 1].signed(I64) for k in (0, 2)
        )
        offset = (zero << _FRACTION_BITS) - ((a_zero * a + b_zero * b) >> _DROPPED_BITS)
        offset = offset + ((1 << (_FRACTION_BITS - 1)) + _MARGIN)
        self._offset = offset.narrowed(I32).splat(isa.lanes)
        self._multipliers = numbers[9:]
        code = offset.code
        self._room = code.stack(vector(I8, isa.vector_bytes), 3)

    def of(self, x: CodeValue, y: CodeValue) -> CodeValue:
        """A vector of bytes of two others."""
        x, y = (self._flipped(value, number) for number, value in enumerate((x, y)))
        totals = [
            self._total(interleave(both, both.like(0), part).bitcast(self._weights[0].kind))
            for half in range(2)
            for both in [interleave(x, y, half)]
            for part in range(2)
        ]
        fraction = (1 << _FRACTION_BITS) - 2 * _MARGIN
        nearest = reduce(lambda one, other: one.call("umin", other), [t & fraction for t in totals])

        def quick() -> list[CodeValue]:
            steps = [total >> _FRACTION_BITS for total in totals]
            words = [pack_words(steps[k : k + 2], steps[k].code.constant(I32)) for k in (0, 2)]
            low, high = (bound.to_integer() for bound in self._bounds)
            return [pack_bytes(words, low, high)]

        is_near = nearest.equals(0).any()
        (result,) = when(is_near, lambda: [self._exact(x, y)], quick, likely=False)
        return self._flipped(result, 2)

    def _flipped(self, value: CodeValue, number: int) -> CodeValue:
        """Signed bytes as unsigned ones, and back."""
        return value ^ -_FLIPPED if self._is_flipped[number] else value

    def _total(self, words: CodeValue) -> CodeValue:
        """Sums of pairs, with a fraction."""
        upper, lower = (pair_products(self._isa, words, weights) for weights in self._weights)
        shift = _LOW_BITS - _DROPPED_BITS
        return (upper << shift) + (lower >> _DROPPED_BITS) + self._offset

    def _exact(self, x: CodeValue, y: CodeValue) -> CodeValue:
        """The same in TFLite's steps, part by part."""
        lanes, code = self._isa.lanes, x.code
        self._room.store(x, 0)
        self._room.store(y, 1)
        a_zero, b_zero, zero = (value.splat(lanes) for value in self._zeros)
        low, high = (bound.splat(lanes) for bound in self._bounds)
        multipliers = [number.splat(lanes) for number in self._multipliers]

        def step(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            kind = vector(I8, lanes)
            a, b = (
                self._room.load(kind, number + 4 * k, align=1).unsigned(I32) - centre.to_integer()
                for k, centre in enumerate((a_zero, b_zero))
            )
            steps = exact_byte_sum(a, b, multipliers, self._combine)
            exact = stored(steps + zero.to_integer().signed(I64), low, high)
            self._room.store(exact.narrowed(I8), number + 8)
            return []

        loop(code, code.integer(4), [], step)
        return self._room.load(x.kind, 2)
