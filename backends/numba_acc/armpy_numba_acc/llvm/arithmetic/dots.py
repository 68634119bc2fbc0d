"""Dot products of 8-bit elements, four per lane, and of 16-bit ones, two; added up in int32."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from armpy_numba_acc.llvm.values import I8, I16, I32, CodeValue, vector
from armpy_numba_acc.machine.isa import Isa

_PAIR_PRODUCTS = {
    64: "llvm.x86.avx512.pmaddw.d.512",
    32: "llvm.x86.avx2.pmadd.wd",
    16: "llvm.x86.sse2.pmadd.wd",
}
"""LLVM's names of x86's instruction, by the bytes of a register."""

_EXACT_BYTES = {64: "llvm.x86.avx512.pmaddubs.w.512", 32: "llvm.x86.avx2.pmadd.ub.sw"}
"""Likewise, of the one that adds products of bytes in pairs, in 16 bits that saturate."""

_BYTE_PRODUCTS = {
    "sdot": "llvm.aarch64.neon.sdot.v4i32.v16i8",
    "usdot": "llvm.aarch64.neon.usdot.v4i32.v16i8",
    "vpdpbusd": "llvm.x86.avx512.vpdpbusd.{bits}",
    "vpdpbssd": "llvm.x86.avx2.vpdpbssd.{bits}",
}
"""LLVM's names of instructions."""


class Dots(ABC):
    """Dot products of an instruction set on integers, 4 bytes of them per lane.

    Attributes
    ----------
    bytes_per_vector : int
        Of a line of weights, for each vector of columns.
    steps_at_once : int
        How many lanes of elements are better loaded together than one by one.
    """

    steps_at_once: int = 1

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.bytes_per_vector = isa.vector_bytes

    @abstractmethod
    def weights(self, line: CodeValue, j: int) -> Any:
        """Vector `j` of a line, in whatever form `add` takes."""

    @abstractmethod
    def elements(self, words: CodeValue) -> Any:
        """Elements in lanes of int32, in whatever form `add` takes."""

    def elements_of_each(self, words: CodeValue) -> list[Any]:
        """Elements of each lane, as if all lanes were like it."""
        raise NotImplementedError

    @abstractmethod
    def add(self, total: CodeValue, elements: Any, weights: Any) -> CodeValue:
        """Add the products."""


def dot_products(isa: Isa) -> Dots:
    """Return how an instruction set multiplies bytes."""
    return ByteProducts(isa) if isa.dot else WordProducts(isa)


def spread_products(isa: Isa) -> Dots:
    """Return the products of bytes for elements that are the same in all lanes."""
    return LongProducts(isa, 4) if isa.has_long_products and not isa.dot else dot_products(isa)


def spread_pairs(isa: Isa) -> Dots:
    """Return how it multiplies 16-bit elements where those of all lanes are the same."""
    return LongProducts(isa, 2) if isa.has_long_products else PairProducts(isa)


class ByteProducts(Dots):
    """Products by one instruction: unsigned times signed, or signed times signed.

    Weights: for each column four signed bytes.
    """

    def __init__(self, isa: Isa) -> None:
        super().__init__(isa)
        self._kind = vector(I8, isa.vector_bytes)
        if isa.dot == "sdot":
            # Bits are flipped in one register for four steps, whose instructions choose a lane:
            # flipped one by one, elements would come from the other kind of register, and late.
            self.steps_at_once = isa.lanes

    def weights(self, line: CodeValue, j: int) -> CodeValue:
        return line.load(self._kind, j)

    def elements(self, words: CodeValue) -> CodeValue:
        if self.isa.has_signed_dots:
            words = words ^ -0x7F7F7F80
        return words.bitcast(self._kind)

    def elements_of_each(self, words: CodeValue) -> list[CodeValue]:
        flipped = self.elements(words).bitcast(words.kind)
        return [
            flipped.shuffled([lane] * words.count).bitcast(self._kind)
            for lane in range(words.count)
        ]

    def add(self, total: CodeValue, elements: CodeValue, weights: CodeValue) -> CodeValue:
        if self.isa.dot == "sdot":  # whose second operand may be one lane of a register
            elements, weights = weights, elements
        name = _BYTE_PRODUCTS[self.isa.byte_products].format(bits=self.isa.vector_bytes * 8)
        if name.startswith("llvm.x86"):
            return _x86_dots(name, total, elements, weights)
        return total.code.call(name, total.kind, total, elements, weights)


def _x86_dots(name: str, total: CodeValue, elements: CodeValue, weights: CodeValue) -> CodeValue:
    """Add products by an instruction, whose operands LLVM 20 takes as words, as later ones may."""
    operands = elements.bitcast(total.kind), weights.bitcast(total.kind)
    return total.code.call(name, total.kind, total, *operands)


class WordProducts(Dots):
    """Products of 16-bit integers, added in pairs.

    Weights: a vector of pairs for the elements 0 and 2 of each group of four and all columns
    of a vector, then one for the elements 1 and 3: the elements are taken apart without moving
    them across lanes.
    """

    def __init__(self, isa: Isa) -> None:
        super().__init__(isa)
        self.bytes_per_vector = isa.vector_bytes * 2
        self._words = vector(I16, isa.lanes * 2)

    def weights(self, line: CodeValue, j: int) -> list[CodeValue]:
        return [line.load(self._words, 2 * j + part) for part in range(2)]

    def elements(self, words: CodeValue) -> tuple[CodeValue, CodeValue]:
        pairs = words.bitcast(self._words)
        return pairs & 0xFF, pairs.shifted_right(8)

    def add(
        self, total: CodeValue, elements: tuple[CodeValue, CodeValue], weights: list[CodeValue]
    ) -> CodeValue:
        for element, weight in zip(elements, weights, strict=True):
            total = total + pair_products(self.isa, element, weight)  # which no pair can overflow
        return total


class SignedByteProducts(Dots):
    """Products of signed bytes where an instruction multiplies weights by the signs of elements.

    The magnitudes of elements, at most 128, are multiplied with these weights: two products of
    weights from -127 to 127 are at most 32512 together, so that 16 bits hold them.

    Weights: for each column four signed bytes, none of them -128.
    """

    def __init__(self, isa: Isa) -> None:
        super().__init__(isa)
        self._kind = vector(I8, isa.vector_bytes)

    def weights(self, line: CodeValue, j: int) -> CodeValue:
        return line.load(self._kind, j)

    def elements(self, words: CodeValue) -> tuple[CodeValue, CodeValue]:
        elements = words.bitcast(self._kind)
        return abs(elements), elements

    def add(
        self, total: CodeValue, elements: tuple[CodeValue, CodeValue], weights: CodeValue
    ) -> CodeValue:
        magnitudes, signs = elements
        signed = total.code.call("llvm.x86.avx2.psign.b", self._kind, weights, signs)
        return add_exact_bytes(self.isa, total, [magnitudes], [signed])


class PairProducts(Dots):
    """Products of 16-bit elements by as few instructions as there are.

    Weights: for each column two signed integers of 16 bits.
    """

    def weights(self, line: CodeValue, j: int) -> CodeValue:
        return line.load(vector(I16, self.isa.lanes * 2), j)

    def elements(self, words: CodeValue) -> CodeValue:
        return words.bitcast(vector(I16, self.isa.lanes * 2))

    def add(self, total: CodeValue, elements: CodeValue, weights: CodeValue) -> CodeValue:
        if not self.isa.dot.startswith("vpdp"):
            return total + pair_products(self.isa, elements, weights)
        name = f"llvm.x86.avx512.vpdpwssd.{self.isa.vector_bytes * 8}"
        return _x86_dots(name, total, elements, weights)


class LongProducts(Dots):
    """Products of 16-bit elements by an element that is the same for all lanes.

    Weights: a register for each two elements, the first one's of all columns of a vector before the
    second one's.

    Parameters
    ----------
    depth : {2, 4}
        Elements in each lane of the factors: of 16 bits, or unsigned bytes.
    """

    def __init__(self, isa: Isa, depth: int) -> None:
        super().__init__(isa)
        self._depth = depth
        self.bytes_per_vector = isa.vector_bytes * depth // 2
        self._half = vector(I16, isa.lanes)

    def weights(self, line: CodeValue, j: int) -> list[CodeValue]:
        lanes, parts = self.isa.lanes, self._depth // 2
        loaded = [line.load(vector(I16, 2 * lanes), parts * j + part) for part in range(parts)]
        return [
            register.shuffled(range(first, first + lanes))
            for register in loaded
            for first in (0, lanes)
        ]

    def elements(self, words: CodeValue) -> list[CodeValue]:
        lanes = self.isa.lanes
        elements = words.bitcast(vector(I16, 2 * lanes))
        if self._depth == 4:
            few = words.bitcast(vector(I8, 4 * lanes)).shuffled(range(2 * lanes))
            elements = few.unsigned(I16)
        return [elements.shuffled([number] * lanes) for number in range(self._depth)]

    def add(
        self, total: CodeValue, elements: list[CodeValue], weights: list[CodeValue]
    ) -> CodeValue:
        name = "llvm.aarch64.neon.smull.v4i32"
        for element, weight in zip(elements, weights, strict=True):
            total = total + total.code.call(name, total.kind, weight, element)
        return total


def add_exact_bytes(
    isa: Isa, total: CodeValue, elements: Sequence[CodeValue], weights: Sequence[CodeValue]
) -> CodeValue:
    """Add products of vectors of unsigned and of signed bytes that 16 bits add up exactly."""
    kind, name = vector(I16, isa.lanes * 2), _EXACT_BYTES[isa.vector_bytes]
    products = [
        total.code.call(name, kind, element, weight)
        for element, weight in zip(elements, weights, strict=True)
    ]
    return total + pair_products(isa, reduce(add, products), total.code.constant(kind, 1))


def pair_products(isa: Isa, x: CodeValue, y: CodeValue) -> CodeValue:
    """``x[2i] * y[2i] + x[2i+1] * y[2i+1]`` of vectors of 16-bit integers."""
    kind = vector(I32, isa.lanes)
    name = _PAIR_PRODUCTS.get(isa.vector_bytes) if "avx" in isa.name else None
    if name is not None:
        return x.code.call(name, kind, x, y)
    x, y = x.bitcast(kind), y.bitcast(kind)
    # Written so that no lane moves; LLVM sees that products of 16 bits are enough.
    lower = [(register << 16) >> 16 for register in (x, y)]
    upper = [register >> 16 for register in (x, y)]
    return lower[0] * lower[1] + upper[0] * upper[1]
