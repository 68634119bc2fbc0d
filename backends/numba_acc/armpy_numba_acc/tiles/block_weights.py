"""Products with numbers of few bits in blocks, which become floats in registers.

Notes
-----
Each unit has one vector of sums per row, to which products are added in the order of unpacking.
So a row has the same bits alone, where weights are unpacked for it, and among others, for which
they are unpacked into memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armpy_numba_acc.llvm.calls import CallFields
from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import F32, I8, I16, I32, Code, CodeValue, Kind, vector
from armpy_numba_acc.machine.calls.vectors import BYTE_STEP, BlockProduct, numbers_at_once
from armpy_numba_acc.machine.isa import Isa


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """Format of stored weights; see `BlockProduct`."""

    isa: Isa
    bits: int
    block: int
    has_points: int
    has_bias: int

    @property
    def chunk(self) -> int:
        """Numbers that are unpacked at once."""
        return numbers_at_once(self.block)


@dataclass(frozen=True, slots=True)
class _Unit:
    """Places of one unit's weights."""

    format: BlockFormat
    weights: CodeValue
    scales: CodeValue
    points: CodeValue

    @classmethod
    def of(cls, form: BlockFormat, call: CallFields, number: CodeValue) -> _Unit:
        """The unit of a number."""
        blocks: CodeValue = call.blocks
        size = form.block * form.bits // 8
        return cls(
            form,
            call.weights + number * blocks * size,
            call.scales + number * blocks * 4,
            call.points + number * blocks,
        )

    def floats(self, block: CodeValue) -> list[CodeValue]:
        """The weights of a block in vectors."""
        form, code = self.format, block.code
        scale = self.scales.load(F32, block).splat(form.isa.lanes)
        kind = vector(I8, form.chunk)
        if form.has_points:
            point = self.points.load(I8, block).splat(form.chunk)
        else:
            point = code.constant(kind, 1 << (form.bits - 1))
        size, count = form.chunk * form.bits // 8, 8 // form.bits
        stored = self.weights + block * (form.block // form.chunk * size)
        elements = []
        for number in range(form.block // form.chunk):
            numbers = _unpacked((stored + number * size).load(vector(I8, size)), form.bits, count)
            is_wide = form.bits == 8
            if not is_wide:  # differences fit a byte
                numbers = numbers - point
            for first in range(0, form.chunk, form.isa.lanes):
                lanes = range(first, first + form.isa.lanes)
                part = numbers.shuffled(lanes)
                if is_wide:
                    wide = part.unsigned(I32) - point.shuffled(lanes).unsigned(I32)
                else:
                    wide = part.signed(I32)
                elements.append(wide.to_float() * scale)
        return elements


def _unpacked(stored: CodeValue, bits: int, count: int) -> CodeValue:
    """Bytes of `count` numbers each: the first numbers of all, then the second ones."""
    parts = [stored]
    if count > 1:
        mask = (1 << bits) - 1
        parts = [stored.shifted_right(number * bits) & mask for number in range(count)]
    while len(parts) > 1:
        lanes, pairs = range(2 * parts[0].count), zip(parts[::2], parts[1::2], strict=True)
        parts = [left.shuffled(lanes, right) for left, right in pairs]
    return parts[0]


def _lane_sum(values: CodeValue) -> CodeValue:
    """Sum of all lanes, always in the same order."""
    while values.count > 1:
        half = values.count // 2
        values = values.shuffled(range(half)) + values.shuffled(range(half, 2 * half))
    return values.at(0)


def _write(
    form: BlockFormat, call: CallFields, row: CodeValue, unit: CodeValue, sums: list[CodeValue]
) -> None:
    """Write the sums of neighbouring units."""
    target = call.target + (row * call.units + unit) * 4
    for number, total in enumerate(sums):
        value = _lane_sum(total)
        if form.has_bias:
            value = value + (call.bias + unit * 4).load(F32, number)
        target.store(value, number)


def single_row(form: BlockFormat, units: int) -> Primitive:
    """Make ``multiply(args, unit)``: outputs of the only row from a unit on."""
    kind = vector(F32, form.isa.lanes)
    per_block = form.block // form.isa.lanes

    @primitive(NOTHING, WORD, WORD)
    def multiply(code: Code, args: CodeValue, unit: CodeValue) -> None:
        call = CallFields(BlockProduct, args)
        source: CodeValue = call.source
        places = [_Unit.of(form, call, unit + number) for number in range(units)]

        def step(block: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            line = source + block * (form.block * 4)
            elements = [line.load(kind, number) for number in range(per_block)]
            result = []
            for place, total in zip(places, totals, strict=True):
                result.append(total)
                for element, weight in zip(elements, place.floats(block), strict=True):
                    result[-1] = element.times_plus(weight, result[-1])
            return result

        totals = loop(code, call.blocks, [code.constant(kind)] * units, step)
        _write(form, call, unit.like(0), unit, totals)

    return multiply


def byte_row(form: BlockFormat, units: int) -> Primitive:
    """Make ``multiply(args, unit)``: outputs of the only row, which has bytes, from a unit on.

    Of each `BYTE_STEP` numbers, the first ones of all bytes lie in front of the second ones.
    """
    few = vector(I8, BYTE_STEP // 2)
    half = form.block < BYTE_STEP

    def in_lanes(base: CodeValue, number: CodeValue, pitch: int, kind: Kind) -> CodeValue:
        """A number of each block in its lanes."""
        if not half:
            block = number.shifted_right((form.block // BYTE_STEP).bit_length() - 1)
            return (base + block * pitch).load(kind).splat(8)
        first, second = ((base + (2 * number + at) * pitch).load(kind).splat(4) for at in (0, 1))
        return first.shuffled(range(8), second)

    @primitive(NOTHING, WORD, WORD)
    def multiply(code: Code, args: CodeValue, unit: CodeValue) -> None:
        call = CallFields(BlockProduct, args)
        source, ranges = call.source, call.ranges
        places = [_Unit.of(form, call, unit + number) for number in range(units)]
        ones = code.constant(vector(I16, 16), 1)

        def dot(one: Sequence[CodeValue], other: Sequence[CodeValue]) -> CodeValue:
            """Sums of the products of unsigned and signed bytes, as floats."""
            pairs = [
                code.call("llvm.x86.avx2.pmadd.ub.sw", ones.kind, x, y)
                for x, y in zip(one, other, strict=True)
            ]
            sums = code.call("llvm.x86.avx2.pmadd.wd", vector(I32, 8), pairs[0] + pairs[1], ones)
            return sums.to_float()

        def step(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            line = source + number * BYTE_STEP
            elements = [line.load(few, at) ^ -128 for at in (0, 1)]
            whole = dot([code.constant(few, 1)] * 2, elements)
            scale = in_lanes(ranges, number, 8, F32)
            result = []
            for place, total in zip(places, totals, strict=True):
                stored = (place.weights + number * (BYTE_STEP // 2)).load(few)
                sums = dot([stored & 15, stored.shifted_right(4)], elements)
                point = whole.like(1 << (form.bits - 1))
                if form.has_points:
                    point = in_lanes(place.points, number, 1, I8).unsigned(I32).to_float()
                factor = in_lanes(place.scales, number, 4, F32) * scale
                result.append((sums - whole * point).times_plus(factor, total))
            return result

        steps = call.blocks * form.block / BYTE_STEP
        totals = loop(code, steps, [code.constant(vector(F32, 8))] * units, step)
        _write(form, call, unit.like(0), unit, totals)

    return multiply


def unpack_units(form: BlockFormat, units: int) -> Primitive:
    """Make ``unpack(args, unit, room)``: weights of some units as rows of floats."""

    @primitive(NOTHING, WORD, WORD, WORD)
    def unpack(code: Code, args: CodeValue, unit: CodeValue, room: CodeValue) -> None:
        call = CallFields(BlockProduct, args)
        blocks: CodeValue = call.blocks
        places = [_Unit.of(form, call, unit + number) for number in range(units)]
        lines = [room + blocks * (number * form.block * 4) for number in range(units)]

        def step(block: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            for place, line in zip(places, lines, strict=True):
                for at, weight in enumerate(place.floats(block)):
                    (line + block * (form.block * 4)).store(weight, at)
            return []

        loop(code, blocks, [], step)

    return unpack


def several_rows(form: BlockFormat, rows: int, units: int) -> Primitive:
    """Make ``multiply(args, row, unit, room)``: outputs of some rows, of unpacked units."""
    kind = vector(F32, form.isa.lanes)

    @primitive(NOTHING, WORD, WORD, WORD, WORD)
    def multiply(
        code: Code, args: CodeValue, row: CodeValue, unit: CodeValue, room: CodeValue
    ) -> None:
        call = CallFields(BlockProduct, args)
        length: CodeValue = call.blocks * (form.block * 4)
        lines = [room + length * number for number in range(units)]
        sources = [call.source + (row + number) * length for number in range(rows)]

        def step(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            weights = [line.load(kind, number) for line in lines]
            result = []
            for at, source in enumerate(sources):
                element = source.load(kind, number)
                for other, weight in enumerate(weights):
                    result.append(element.times_plus(weight, totals[at * units + other]))
            return result

        steps = call.blocks * (form.block // form.isa.lanes)
        totals = loop(code, steps, [code.constant(kind)] * (rows * units), step)
        for number in range(rows):
            _write(form, call, row + number, unit, totals[number * units : (number + 1) * units])

    return multiply
