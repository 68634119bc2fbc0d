"""Dot products of 8-bit elements, four per lane, and of 16-bit ones, two; added up in int32."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from llvmlite import ir

from armpy_numba_acc.llvm.vectors import I8, I16, I32, I64, intrinsic, load, splat, vector
from armpy_numba_acc.machine.isa import Isa

_PAIR_PRODUCTS = {
    64: "llvm.x86.avx512.pmaddw.d.512",
    32: "llvm.x86.avx2.pmadd.wd",
    16: "llvm.x86.sse2.pmadd.wd",
}
"""LLVM's names of x86's instruction, by the bytes of a register."""


def dot_products(isa: Isa):
    """How an instruction set multiplies bytes."""
    return ByteProducts(isa) if isa.dot else WordProducts(isa)


def step_of_dots(dots, vectors):
    """What adds four lines of weights times four elements of every row: see `walk`."""

    def step(builder, pointers, at_line, totals):
        lines = [dots.weights(builder, at_line, j) for j in range(vectors)]
        result = []
        for row, pointer in enumerate(pointers):
            word = splat(builder, load(builder, pointer, I32, align=1), dots.isa.lanes)
            elements = dots.elements(builder, word)
            some = totals[row * vectors : (row + 1) * vectors]
            result += [
                dots.add(builder, total, elements, line)
                for total, line in zip(some, lines, strict=True)
            ]
        return result

    return step


class ByteProducts:
    """Products by one instruction: unsigned times signed, or signed times signed.

    Notes
    -----
    Weights: for each column four signed bytes.
    """

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.bytes_per_vector = isa.vector_bytes
        self._bytes = vector(I8, isa.vector_bytes)

    def weights(self, builder, line, j):
        """Vector `j` of a line."""
        return load(builder, line, self._bytes, I64(j))

    def elements(self, builder, word):
        """Four elements that are the same in every lane, as they are multiplied."""
        if self.isa.dot == "sdot":
            word = builder.xor(word, splat(builder, I32(-0x7F7F7F80), self.isa.lanes))
        return builder.bitcast(word, self._bytes)

    def add(self, builder, total, elements, weights):
        """Add the products."""
        if self.isa.dot == "sdot":
            name = "llvm.aarch64.neon.sdot.v4i32.v16i8"
        else:
            name = f"llvm.x86.avx512.vpdpbusd.{self.isa.vector_bytes * 8}"
        kinds = (total.type, total.type, self._bytes, self._bytes)
        return builder.call(intrinsic(builder, name, *kinds), (total, elements, weights))


class WordProducts:
    """Products of 16-bit integers, added in pairs.

    Notes
    -----
    Weights: a vector of pairs for the elements 0 and 2 of each group of four and all columns
    of a vector, then one for the elements 1 and 3: the elements are taken apart without moving
    them across lanes.
    """

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.bytes_per_vector = 2 * isa.vector_bytes
        self._words = vector(I16, isa.lanes * 2)

    def weights(self, builder, line, j):
        """Both vectors of pairs."""
        return [load(builder, line, self._words, I64(2 * j + half)) for half in range(2)]

    def elements(self, builder, word):
        """Elements 0 and 2, and elements 1 and 3, as 16-bit integers."""
        words = builder.bitcast(word, self._words)
        even = builder.and_(words, ir.Constant(self._words, [0xFF] * self._words.count))
        odd = builder.lshr(words, ir.Constant(self._words, [8] * self._words.count))
        return even, odd

    def add(self, builder, total, elements, weights):
        """Add the products, which no pair's sum can overflow."""
        for element, weight in zip(elements, weights, strict=True):
            total = builder.add(total, _pairs(builder, self.isa, element, weight))
        return total


class PairProducts:
    """Products of 16-bit elements by as few instructions as there are.

    Notes
    -----
    Weights: for each column two signed integers of 16 bits.
    """

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.bytes_per_vector = isa.vector_bytes
        self._words = vector(I16, isa.lanes * 2)

    def weights(self, builder, line, j):
        """Vector `j` of a line."""
        return load(builder, line, self._words, I64(j))

    def elements(self, builder, word):
        """Two elements that are the same in every lane."""
        return builder.bitcast(word, self._words)

    def add(self, builder, total, elements, weights):
        """Add the products."""
        if not self.isa.dot.startswith("vpdp"):
            return builder.add(total, _pairs(builder, self.isa, elements, weights))
        name = f"llvm.x86.avx512.vpdpwssd.{self.isa.vector_bytes * 8}"
        kinds = (total.type, total.type, self._words, self._words)
        return builder.call(intrinsic(builder, name, *kinds), (total, elements, weights))


def step_of_channels(isa: Isa, vectors):
    """What adds a line of weights times one element of every channel of every row: see `walk`.

    Notes
    -----
    Elements have 16 bits; weights are as wide as sums.
    """
    pairs, narrow = PairProducts(isa), vector(I16, isa.lanes)
    wide = vector(I32, isa.lanes)
    has_pairs = "avx" in isa.name

    def product(builder, total, elements, weights):
        """The sum with one product more in every lane."""
        if not has_pairs:
            return builder.add(total, builder.mul(builder.sext(elements, wide), weights))
        # The upper half of each lane is 0, whatever its weight is there.
        given = pairs.elements(builder, builder.zext(elements, wide))
        return pairs.add(builder, total, given, pairs.elements(builder, weights))

    def step(builder, pointers, at_line, totals):
        lines = [load(builder, at_line, wide, I64(j)) for j in range(vectors)]
        result = []
        for row, pointer in enumerate(pointers):
            for j, line in enumerate(lines):
                elements = load(builder, pointer, narrow, I64(j))
                result.append(product(builder, totals[row * vectors + j], elements, line))
        return result

    return step


def _pairs(builder, isa, x, y):
    """``x[2i] * y[2i] + x[2i+1] * y[2i+1]`` of vectors of 16-bit integers."""
    kind = vector(I32, isa.lanes)
    name = _PAIR_PRODUCTS.get(isa.vector_bytes) if "avx" in isa.name else None
    if name is not None:
        return builder.call(intrinsic(builder, name, kind, x.type, x.type), (x, y))
    x, y = builder.bitcast(x, kind), builder.bitcast(y, kind)
    half = ir.Constant(kind, [16] * kind.count)
    # Written so that no lane moves; LLVM sees that products of 16 bits are enough.
    lower = (builder.ashr(builder.shl(v, half), half) for v in (x, y))
    upper = (builder.ashr(v, half) for v in (x, y))
    sums = [builder.mul(*lower), builder.mul(*upper)]
    return builder.add(*sums)
