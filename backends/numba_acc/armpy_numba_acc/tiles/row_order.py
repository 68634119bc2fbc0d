"""Order of elements as integers, and heaps of the foremost ones."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.control import loop_while, when
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import (
    I32,
    I64,
    Code,
    CodeValue,
    choose,
    kind_of_format,
    larger,
    smaller,
    vector,
)

_HIGHEST, _INFINITY = 0x7FFFFFFF, 0x7F800000
LANES = 32
"""Elements that are compared at once."""


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Functions for code that Numba compiles.

    An entry of a heap is one integer: the element's order and, below that, how early it comes
    among equal ones. No two entries are the same, and the least one is on top.
    """

    entry_bytes: int
    put: Primitive  # ``put(heap, place, row, index, mask)``: the entry of an element
    # ``replace(heap, count, row, index, mask)``: put an element on top if it is greater than that.
    replace: Primitive
    sink: Primitive  # ``sink(heap, place, count)``: move an entry to where it belongs
    swap: Primitive  # ``swap(heap, place)``: exchange an entry with the one on top
    index: Primitive  # ``index(heap, place, mask)`` of the element of an entry
    # ``following(heap, row, start, size, mask)``: the first element from `start` on that may be
    # greater than the one on top, or one that is followed by few others.
    following: Primitive
    foremost: Primitive  # ``foremost(row, size)``: the first one's index of `LANES` at least


def _order(values: CodeValue, format_: str, is_rising: bool) -> CodeValue:
    """Signed integers that are larger for what comes earlier; zeros are alike, NaN the largest."""
    bits = 64 if format_.endswith("64") else 32
    if format_ == "f32":
        stored = values.bits()
        magnitude, sign = stored & _HIGHEST, stored >> 31
        order = choose(magnitude > _INFINITY, _HIGHEST, (magnitude ^ sign) - sign)
    elif format_ in ("u32", "u64"):
        order = values ^ -(1 << (bits - 1))
    elif format_.startswith("u"):
        order = values.unsigned(I32)
    else:
        order = values.signed(ir.IntType(bits))
    return order ^ -1 if is_rising else order


def make_row_order(format_: str, is_rising: bool) -> RowOrder:
    """Make what finds the foremost elements of rows.

    Parameters
    ----------
    format_
        Of the elements: ``f32``, or integers of some bits such as ``i16`` and ``u16``.
    is_rising
        Whether the smallest elements come first.
    """
    element = kind_of_format(format_)
    half = 64 if format_.endswith("64") else 32
    kind = ir.IntType(2 * half)

    def entry_of(row: CodeValue, index: CodeValue, mask: CodeValue) -> CodeValue:
        order = _order(row.load(element, index), format_, is_rising)
        place = (index ^ mask).narrowed(I32) if half == 32 else index ^ mask
        return (order.signed(kind) << half) + place.unsigned(kind)

    @primitive(NOTHING, *(WORD,) * 5)
    def put(
        code: Code,
        heap: CodeValue,
        at: CodeValue,
        row: CodeValue,
        index: CodeValue,
        mask: CodeValue,
    ) -> None:
        heap.store(entry_of(row, index, mask), at)

    @primitive(NOTHING, *(WORD,) * 3)
    def sink(code: Code, heap: CodeValue, place: CodeValue, count: CodeValue) -> None:
        _sink(heap, heap.load(kind, place), place, count)

    @primitive(NOTHING, *(WORD,) * 5)
    def replace(
        code: Code,
        heap: CodeValue,
        count: CodeValue,
        row: CodeValue,
        index: CodeValue,
        mask: CodeValue,
    ) -> None:
        entry = entry_of(row, index, mask)

        def on_top() -> Sequence[CodeValue]:
            _sink(heap, entry, code.integer(0), count)
            return []

        when(entry > heap.load(kind), on_top)

    @primitive(NOTHING, WORD, WORD)
    def swap(code: Code, heap: CodeValue, place: CodeValue) -> None:
        top, entry = heap.load(kind), heap.load(kind, place)
        heap.store(entry)
        heap.store(top, place)

    @primitive(WORD, *(WORD,) * 3)
    def index(code: Code, heap: CodeValue, place: CodeValue, mask: CodeValue) -> CodeValue:
        entry = heap.load(kind, place)
        low = entry.narrowed(I32).unsigned(I64) if half == 32 else entry.narrowed(I64)
        return low ^ mask

    following = _make_following(format_, is_rising, half)
    foremost = _make_foremost(format_, is_rising, half)
    return RowOrder(2 * half // 8, put, replace, sink, swap, index, following, foremost)


def _make_following(format_: str, is_rising: bool, half: int) -> Primitive:
    """Make `RowOrder.following`; the order of an entry is its upper half of some bits."""
    element, kind = kind_of_format(format_), ir.IntType(2 * half)

    @primitive(WORD, *(WORD,) * 5)
    def following(
        code: Code,
        heap: CodeValue,
        row: CodeValue,
        start: CodeValue,
        size: CodeValue,
        mask: CodeValue,
    ) -> CodeValue:
        order_kind = ir.IntType(half)
        least = (heap.load(kind) >> half).narrowed(order_kind).splat(LANES)
        # Of equal elements a later one is greater only where the larger index comes first.
        takes_equal = mask.equals(0).splat(LANES)

        def turn(values: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
            (at,) = values[:1]
            elements = row.place(element, at).load(vector(element, LANES))
            order = _order(elements, format_, is_rising)
            greater = (order > least) | (order.equals(least) & takes_equal)
            bits = greater.mask_bits()
            is_none = bits.equals(0)
            after = choose(is_none, at + LANES, at)
            return is_none & (after + LANES <= size), [after, bits]

        def scanned() -> Sequence[CodeValue]:
            at, bits = loop_while(code, [start, code.constant(I32)], turn)
            first = code.call("llvm.cttz.i32", I32, bits, code.constant(ir.IntType(1)))
            return [at + choose(bits.equals(0), 0, first.unsigned(I64))]

        return when(start + LANES <= size, scanned, lambda: [start])[0]

    return following


def _make_foremost(format_: str, is_rising: bool, half: int) -> Primitive:
    """Make `RowOrder.foremost`: look for the greatest order, and then for the first like it."""
    element, order_kind = kind_of_format(format_), ir.IntType(half)

    @primitive(WORD, WORD, WORD)
    def foremost(code: Code, row: CodeValue, size: CodeValue) -> CodeValue:
        last = size - LANES  # overlaps the vector before

        def orders(at: CodeValue) -> CodeValue:
            elements = row.place(element, at).load(vector(element, LANES))
            return _order(elements, format_, is_rising)

        def compare(values: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
            at, best = values
            after = at + LANES
            return after <= last, [after, larger(best, orders(at))]

        def search(values: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
            at, _ = values
            bits = orders(at).equals(top).mask_bits()
            is_none = bits.equals(0)
            return is_none, [choose(is_none, smaller(at + LANES, last), at), bits]

        _, best = loop_while(code, [code.integer(0), orders(last)], compare)
        name = f"llvm.vector.reduce.smax.v{LANES}i{half}"
        top = code.call(name, order_kind, best).splat(LANES)
        at, bits = loop_while(code, [code.integer(0), code.constant(I32)], search)
        first = code.call("llvm.cttz.i32", I32, bits, code.constant(ir.IntType(1)))
        return at + first.unsigned(I64)

    return foremost


def _sink(heap: CodeValue, entry: CodeValue, place: CodeValue, count: CodeValue) -> None:
    """Move children that are less up, and store an entry in the place that is left."""

    def turn(values: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
        (at,) = values
        left, right = at * 2 + 1, at * 2 + 2
        left = choose(left < count, left, at)
        right = choose(right < count, right, left)
        first, second = heap.load(entry.kind, left), heap.load(entry.kind, right)
        is_right = second < first
        least, child = choose(is_right, second, first), choose(is_right, right, left)
        goes_on = (child > at) & (least < entry)
        when(goes_on, lambda: _stored(heap, least, at))
        return goes_on, [choose(goes_on, child, at)]

    (final,) = loop_while(heap.code, [place], turn)
    heap.store(entry, final)


def _stored(heap: CodeValue, entry: CodeValue, place: CodeValue) -> Sequence[CodeValue]:
    heap.store(entry, place)
    return []
