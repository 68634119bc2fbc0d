"""Loops of a vector times a matrix, whose weights are read once, as one stream or as a few.

Notes
-----
Weights are laid out by columns, a vector's lanes side by side for each step (an element of the
input, or four bytes, that is the same in every lane), or by rows: one output's weights behind each
other, and every lane adds up products of its own until they are summed in the end. The second way
suits few outputs.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from llvmlite import ir

from armpy_numba_acc.llvm.dots import dot_products
from armpy_numba_acc.llvm.values import Code
from armpy_numba_acc.llvm.vectors import (
    F32,
    I32,
    I64,
    fma,
    intrinsic,
    lane_mask,
    load,
    masked_load,
    splat,
    store,
    suffix,
    vector,
)
from armpy_numba_acc.machine.isa import Isa

TOGETHER = 4
"""Rows of weights that are read side by side; also, steps of a column's vector, so that sums do
not wait for each other."""


class RealProducts:
    """Products of float32; the same methods as `ByteProducts` of this module has."""

    step_bytes = 4

    def __init__(self, isa: Isa) -> None:
        self.bytes_per_vector = isa.vector_bytes
        self.kind = vector(F32, isa.lanes)

    def spread(self, builder, address):
        """One element in every lane."""
        return splat(builder, load(builder, address, F32), self.kind.count)

    def elements(self, builder, address):
        """Neighbouring elements."""
        return load(builder, address, self.kind)

    def last_elements(self, builder, address, count):
        """The first of neighbouring elements; zeros behind them, as NaN times 0 is NaN."""
        mask = lane_mask(builder, count, self.kind.count)
        return masked_load(builder, address, self.kind, mask)

    def weights(self, builder, line, j):
        """Vector `j` of a line."""
        return load(builder, line, self.kind, I64(j))

    def add(self, builder, total, elements, weights):
        """Add products."""
        return fma(builder, elements, weights, total)

    def join(self, builder, x, y):
        """Add sums."""
        return builder.fadd(x, y)

    def total(self, builder, sums):
        """Sum of all lanes."""
        name = f"llvm.vector.reduce.fadd.{suffix(self.kind)}"
        function = intrinsic(builder, name, F32, F32, self.kind)
        return builder.call(function, (F32(-0.0), sums), fastmath=("reassoc",))


class ByteProducts:
    """Products of bytes in groups of four.

    Parameters
    ----------
    isa : Isa
    builder : ir.IRBuilder
    flip : ir.Value, int64
        Address of a vector that the input's elements are changed by. It is in memory because
        LLVM would change groups before it spreads them if it knew that all are changed alike:
        from another kind of register they are spread slowly.
    """

    step_bytes = 4

    def __init__(self, isa: Isa, builder, flip) -> None:
        self._dots = dot_products(isa)
        self.bytes_per_vector = self._dots.bytes_per_vector
        self.kind = vector(I32, isa.lanes)
        self._flip = load(builder, flip, self.kind)

    def spread(self, builder, address):
        """One group in every lane."""
        word = splat(builder, load(builder, address, I32, align=1), self.kind.count)
        return self._dots.elements(Code(builder).of(builder.xor(word, self._flip)))

    def elements(self, builder, address):
        """Neighbouring groups."""
        words = load(builder, address, self.kind, align=1)
        return self._dots.elements(Code(builder).of(builder.xor(words, self._flip)))

    def last_elements(self, builder, address, count):
        """The same, as what is behind them meets weights of 0."""
        return self.elements(builder, address)

    def weights(self, builder, line, j):
        """Vector `j` of a line."""
        return self._dots.weights(Code(builder).of(line), j)

    def add(self, builder, total, elements, weights):
        """Add products."""
        return self._dots.add(Code(builder).of(total), elements, weights).value

    def join(self, builder, x, y):
        """Add sums."""
        return builder.add(x, y)

    def total(self, builder, sums):
        """Sum of all lanes."""
        name = f"llvm.vector.reduce.add.{suffix(self.kind)}"
        return builder.call(intrinsic(builder, name, I32, self.kind), (sums,))


def loop(builder, count, values, step):
    """Loop, maybe never, with values in registers; what they are in the end.

    Parameters
    ----------
    count
        How often the loop turns.
    values : list
        What they are at first.
    step : callable
        ``step(number, values)`` gives the values behind turn `number`.
    """
    before = builder.block
    head, body, done = (builder.append_basic_block(name) for name in ("head", "body", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    number = builder.phi(I64)
    phis = [builder.phi(value.type) for value in values]
    builder.cbranch(builder.icmp_signed("<", number, count), body, done)
    builder.position_at_end(body)
    results = step(number, list(phis))
    following = builder.add(number, I64(1))
    last = builder.block
    builder.branch(head)
    for phi, initial, result in zip(
        (number, *phis), (I64(0), *values), (following, *results), strict=True
    ):
        phi.add_incoming(initial, before)
        phi.add_incoming(result, last)
    builder.position_at_end(done)
    return phis


def panel_sums(builder, products, first, source, steps, lines):
    """Sums of the columns of some vectors side by side.

    Parameters
    ----------
    products : RealProducts or ByteProducts
    first : list of ir.Value
        What sums begin with; as many as there are vectors.
    source, steps, lines : ir.Value, int64
        Address of the input; number of steps; address of the weights.
    """
    line = len(first) * products.bytes_per_vector

    def step(number, totals):
        at = builder.add(source, builder.mul(number, I64(products.step_bytes)))
        at_line = builder.add(lines, builder.mul(number, I64(line)))
        elements = products.spread(builder, at)
        return [
            products.add(builder, total, elements, products.weights(builder, at_line, j))
            for j, total in enumerate(totals)
        ]

    return loop(builder, steps, first, step)


def vector_sums(builder, products, first, source, steps, lines):
    """Sums of the columns of one vector; parameters as for `panel_sums`."""
    zero = ir.Constant(products.kind, None)
    rounds = builder.lshr(steps, I64(TOGETHER.bit_length() - 1))

    def step(number, totals):
        at = builder.add(source, builder.mul(number, I64(TOGETHER * products.step_bytes)))
        line = TOGETHER * products.bytes_per_vector
        at_line = builder.add(lines, builder.mul(number, I64(line)))
        result = []
        for k, total in enumerate(totals):
            elements = products.spread(builder, builder.add(at, I64(k * products.step_bytes)))
            weights = products.weights(builder, at_line, k)
            result.append(products.add(builder, total, elements, weights))
        return result

    totals = loop(builder, rounds, [first, *[zero] * (TOGETHER - 1)], step)
    done = builder.mul(rounds, I64(TOGETHER))
    source = builder.add(source, builder.mul(done, I64(products.step_bytes)))
    lines = builder.add(lines, builder.mul(done, I64(products.bytes_per_vector)))
    rest = builder.sub(steps, done)
    totals[:1] = panel_sums(builder, products, totals[:1], source, rest, lines)
    while len(totals) > 1:
        pairs = zip(totals[::2], totals[1::2], strict=True)
        totals = [products.join(builder, x, y) for x, y in pairs]
    return totals[0]


def row_sums(builder, products, source, count, rows, sums):
    """Sums of some outputs whose weights are rows, into memory.

    Parameters
    ----------
    products : RealProducts or ByteProducts
    source : ir.Value, int64
        Address of the input.
    count : ir.Value, int64
        Vectors' lanes, at least one, that the input has: elements, or groups of four.
    rows : list of ir.Value, int64
        Address of each output's weights.
    sums : ir.Value, int64
        Address that the sums are written to.
    """
    lanes = products.kind.count
    whole = builder.sdiv(builder.sub(count, I64(1)), I64(lanes))

    def add(number, totals, elements):
        offset = builder.mul(number, I64(products.bytes_per_vector))
        return [
            products.add(
                builder, total, elements, products.weights(builder, builder.add(row, offset), 0)
            )
            for row, total in zip(rows, totals, strict=True)
        ]

    def address(number):
        return builder.add(source, builder.mul(number, I64(lanes * products.step_bytes)))

    def step(number, totals):
        return add(number, totals, products.elements(builder, address(number)))

    zero = ir.Constant(products.kind, None)
    totals = loop(builder, whole, [zero] * len(rows), step)
    rest = builder.sub(count, builder.mul(whole, I64(lanes)))
    totals = add(whole, totals, products.last_elements(builder, address(whole), rest))
    for number, total in enumerate(totals):
        store(builder, products.total(builder, total), sums, I64(number))
