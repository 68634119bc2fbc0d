"""Products with numbers of few bits in blocks, which become floats or bytes in registers.

Notes
-----
Units lie side by side in vectors. The products of a block are added up, and the sum, times the
block's scale, is added to those of the blocks before it. Every row is computed in this order, so
that it has the same bits alone and among others.
"""

from __future__ import annotations

from collections.abc import Sequence

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.arithmetic.dots import ByteProducts, add_exact_bytes, pair_products
from armpy_numba_acc.llvm.calls import CallFields
from armpy_numba_acc.llvm.control import loop, when
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import (
    F32,
    I8,
    I16,
    I32,
    Code,
    CodeValue,
    Kind,
    first_lanes,
    vector,
)
from armpy_numba_acc.machine.calls.vectors import BlockProduct
from armpy_numba_acc.machine.isa import Isa

_NUMBERS_AT_ONCE = 32
"""Numbers of a unit that are unpacked by code without a loop."""

_FRACTION_BITS, _BIAS = 23, 127
"""Of float32."""


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """Format of stored weights and of the source; see `BlockProduct`."""

    isa: Isa
    bits: int
    block: int
    has_points: int
    has_bias: int
    has_bytes: bool

    @property
    def words_at_once(self) -> int:
        """32-bit words of a unit that are unpacked by code without a loop."""
        return min(self.block, _NUMBERS_AT_ONCE) * self.bits // 32

    @property
    def words(self) -> int:
        """32-bit words of a block."""
        return self.block * self.bits // 32


@dataclass(frozen=True, slots=True)
class _PanelBlock:
    """Weights of as many units as a vector has lanes, at one block."""

    form: BlockFormat
    line: CodeValue
    points: CodeValue

    @classmethod
    def of(
        cls, form: BlockFormat, call: CallFields, panel: CodeValue, block: CodeValue
    ) -> _PanelBlock:
        """The block of a panel."""
        number, lanes = panel * call.blocks + block, form.isa.lanes
        size = (1 + form.words) * form.isa.vector_bytes
        return cls(form, call.weights + number * size, call.points + number * lanes)

    def scales(self) -> CodeValue:
        """The units' scales."""
        return self.line.load(vector(F32, self.form.isa.lanes))

    def words(self, number: CodeValue) -> list[CodeValue]:
        """Some words of each unit, which those of a number are the first of."""
        kind, first = vector(I32, self.form.isa.lanes), number + 1
        return [self.line.load(kind, first + at) for at in range(self.form.words_at_once)]

    def zero_points(self) -> CodeValue:
        """The units' zero points, as int32."""
        lanes = self.form.isa.lanes
        if self.form.has_points:
            return self.points.load(vector(I8, lanes)).unsigned(I32)
        return self.line.code.constant(vector(I32, lanes), 1 << (self.form.bits - 1))


class _BlockFloats:
    """Products of float32 with numbers that become floats.

    Bits of a number in the fraction of a power of 2 stand for as much more as the number says, if
    the power is right for their place: no shift and no conversion is needed. Places in the upper
    half of a word are moved to the lower one, as the fraction is not longer.
    """

    def __init__(self, form: BlockFormat, panels: Sequence[_PanelBlock]) -> None:
        self.form = form
        places = range(0, 16, form.bits)
        self.powers = [float(1 << (_FRACTION_BITS - place)) for place in places]
        points = [panel.zero_points().to_float() for panel in panels]
        self.offsets = [[point + power for power in self.powers] for point in points]
        self.kind: Kind = vector(F32, form.isa.lanes)

    def begin(self, code: Code, row: CodeValue, block: CodeValue) -> list[CodeValue]:
        """Sums before the first product of a row, one per panel."""
        return [code.constant(self.kind)] * len(self.offsets)

    def add(
        self,
        sums: list[list[CodeValue]],
        words: list[list[CodeValue]],
        sources: list[CodeValue],
    ) -> list[list[CodeValue]]:
        """Add products of words of each panel with the elements of rows that follow an address."""
        bits, lanes, number = self.form.bits, self.form.isa.lanes, 0
        sums = [list(row) for row in sums]
        for at in range(self.form.words_at_once):
            for half in (0, 16):
                for place, power in enumerate(self.powers):
                    factors = [
                        self._unpacked(panel[at], half, place, power) - offsets[place]
                        for panel, offsets in zip(words, self.offsets, strict=True)
                    ]
                    for row, source in zip(sums, sources, strict=True):
                        element = source.load(F32, number).splat(lanes)
                        row[:] = [
                            element.times_plus(factor, total)
                            for factor, total in zip(factors, row, strict=True)
                        ]
                    number += 1
        assert number * bits == self.form.words_at_once * 32
        return sums

    def _unpacked(self, word: CodeValue, half: int, place: int, power: float) -> CodeValue:
        """The numbers at a place, more by a power of 2."""
        bits = self.form.bits
        moved = word.shifted_right(half) if half else word
        mask = ((1 << bits) - 1) << (place * bits)
        exponent = _FRACTION_BITS - place * bits + _BIAS
        return ((moved & mask) | exponent << _FRACTION_BITS).as_float()

    def end(self, sums: list[CodeValue], row: CodeValue, block: CodeValue) -> list[CodeValue]:
        """The sums of a row's products in the end."""
        return sums


class _BlockBytes:
    """Products of signed bytes with numbers of 4 bits, added up exactly."""

    def __init__(self, form: BlockFormat, call: CallFields, panels: Sequence[_PanelBlock]) -> None:
        self.form, self.call = form, call
        self.points = [panel.zero_points() for panel in panels]

    def _range(self, row: CodeValue, block: CodeValue) -> CodeValue:
        place: CodeValue = self.call.ranges + (row * self.call.blocks + block) * 8
        return place

    def begin(self, code: Code, row: CodeValue, block: CodeValue) -> list[CodeValue]:
        """The elements' sum, negated, times the zero points, one vector per panel."""
        total = self._range(row, block).load(I16, 2).signed(I32).splat(self.form.isa.lanes)
        return [point * total for point in self.points]

    def add(
        self,
        sums: list[list[CodeValue]],
        words: list[list[CodeValue]],
        sources: list[CodeValue],
    ) -> list[list[CodeValue]]:
        """As `_BlockFloats.add`."""
        isa, kind = self.form.isa, vector(I8, self.form.isa.vector_bytes)
        numbers = [
            [
                half.bitcast(kind)
                for word in panel
                for half in (word & 0x0F0F0F0F, word.shifted_right(4) & 0x0F0F0F0F)
            ]
            for panel in words
        ]
        result = []
        for row, source in zip(sums, sources, strict=True):
            elements = [
                source.load(I32, at).splat(isa.lanes).bitcast(kind) for at in range(len(numbers[0]))
            ]
            result.append(
                [
                    self._added(total, factors, elements)
                    for total, factors in zip(row, numbers, strict=True)
                ]
            )
        return result

    def _added(
        self, total: CodeValue, factors: list[CodeValue], elements: list[CodeValue]
    ) -> CodeValue:
        isa = self.form.isa
        if isa.has_saturating_bytes:  # 8 products of at most 15 * 127, twice, fit 16 bits
            return add_exact_bytes(isa, total, factors, elements)
        kind, products = vector(I16, 2 * isa.lanes), ByteProducts(isa)
        for factor, element in zip(factors, elements, strict=True):
            if isa.dot:
                total = products.add(total, factor, element)
                continue
            pairs, signed = factor.bitcast(kind), element.bitcast(kind)
            total = total + pair_products(isa, pairs & 0xFF, (signed << 8) >> 8)
            total = total + pair_products(isa, pairs.shifted_right(8), signed >> 8)
        return total

    def end(self, sums: list[CodeValue], row: CodeValue, block: CodeValue) -> list[CodeValue]:
        """The sums as floats."""
        scale = self._range(row, block).load(F32).splat(self.form.isa.lanes)
        return [total.to_float() * scale for total in sums]


def _write(
    form: BlockFormat, call: CallFields, row: CodeValue, panel: CodeValue, totals: list[CodeValue]
) -> None:
    """Write the outputs of a panel's units, of some rows; the last panel may have fewer units."""
    unit, units = panel * form.isa.lanes, call.units

    def write(mask: CodeValue | None) -> list[CodeValue]:
        place = call.target + (row * units + unit) * 4
        for number, total in enumerate(totals):
            value = total
            if form.has_bias:
                value = total + (call.bias + unit * 4).load(total.kind, mask=mask)
            (place + units * (4 * number)).store(value, mask=mask)
        return []

    mask = first_lanes(units - unit, form.isa.lanes)
    when(units - unit >= form.isa.lanes, lambda: write(None), lambda: write(mask))


def tile(form: BlockFormat, rows: int, panels: int) -> Primitive:
    """Make ``multiply(args, row, panel, stride)``: outputs of rows and of panels some apart."""
    kind = vector(F32, form.isa.lanes)
    item = 1 if form.has_bytes else 4

    @primitive(NOTHING, WORD, WORD, WORD, WORD)
    def multiply(
        code: Code, args: CodeValue, row: CodeValue, first_panel: CodeValue, stride: CodeValue
    ) -> None:
        call = CallFields(BlockProduct, args)
        blocks = call.blocks
        pitch = blocks * (form.block * item)
        numbers = [first_panel + stride * number for number in range(panels)]
        lines = [call.source + (row + number) * pitch for number in range(rows)]

        def step(block: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            places = [_PanelBlock.of(form, call, panel, block) for panel in numbers]
            if form.has_bytes:
                products: _BlockBytes | _BlockFloats = _BlockBytes(form, call, places)
            else:
                products = _BlockFloats(form, places)
            sums = [products.begin(code, row + number, block) for number in range(rows)]
            sources = [line + block * (form.block * item) for line in lines]

            def some(number: CodeValue, flat: list[CodeValue]) -> list[CodeValue]:
                words = [place.words(number * form.words_at_once) for place in places]
                first = number * (form.words_at_once * 32 // form.bits * item)
                sums_by_row = [flat[at : at + panels] for at in range(0, len(flat), panels)]
                added = products.add(sums_by_row, words, [source + first for source in sources])
                return [total for row in added for total in row]

            flat = [total for row in sums for total in row]
            if form.words == form.words_at_once:
                flat = some(block.like(0), flat)
            else:
                turns = block.like(form.words // form.words_at_once)
                flat = loop(code, turns, flat, some)
            result = []
            scales = [place.scales() for place in places]
            for number in range(rows):
                first = number * panels
                ends = products.end(flat[first : first + panels], row + number, block)
                for at, (total, scale) in enumerate(zip(ends, scales, strict=True)):
                    result.append(total.times_plus(scale, totals[first + at]))
            return result

        totals = loop(code, blocks, [code.constant(kind)] * (rows * panels), step)
        for at, panel in enumerate(numbers):
            _write(form, call, row, panel, totals[at::panels])

    return multiply
