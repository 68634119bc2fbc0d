"""Finds the largest elements of rows, in falling order."""

from __future__ import annotations

from collections.abc import Callable

from numba import int64

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import (
    INTEGERS,
    LoadInteger,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    store_i64,
)
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.gathering import TopK
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.machine.isa import Isa

_wide: Callable[[int], int] = int64
_LOW = (1 << 32) - 1
_INFINITY, _HIGHEST = 0x7F800000, 0x7FFFFFFF


@compiled
def _order_of_float(base: Pointer, index: int) -> int:
    """An integer that is larger for larger float32; NaN is the largest, both zeros are alike."""
    bits = _wide(load_i32(base, index))
    magnitude = bits & _HIGHEST
    if magnitude > _INFINITY:
        return _wide(_HIGHEST)
    return magnitude if bits >= 0 else -magnitude


@compiled
def _order_of_u16(base: Pointer, index: int) -> int:
    return _wide(load_i16(base, index)) & 0xFFFF


_ORDERS: dict[str, LoadInteger] = {
    "f32": _order_of_float,
    "i32": load_i32,
    "i16": load_i16,
    "u16": _order_of_u16,
    "i8": load_i8,
    "u8": load_u8,
}
"""By format: how an element is read to be compared."""


@compiled
def _sink(heap: Pointer, place: int, size: int) -> None:
    """Put an element of a heap, whose least one is on top, to where it belongs."""
    word = load_i64(heap, place)
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and load_i64(heap, child + 1) < load_i64(heap, child):
            child += 1
        if load_i64(heap, child) >= word:
            break
        store_i64(heap, place, load_i64(heap, child))
        place = child
    store_i64(heap, place, word)


def make(isa: Isa, format_: str, index_bytes: int) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the rows.

    Elements are kept as one word each, that says how large they are and, below that, how early
    they come among equal ones: no two words are the same.
    """
    order_of, element_bytes, read = _ORDERS[format_], FORMAT_BYTES[format_], reader(TopK)
    (load_element, store_element), (_, store_index) = INTEGERS[element_bytes], INTEGERS[index_bytes]

    @compiled
    def top_of_row(row: Pointer, size: int, k: int, mask: int, heap: Pointer) -> None:
        """Fill the heap with the words of the largest elements, falling."""
        for index in range(k):
            store_i64(heap, index, (_wide(order_of(row, index)) << 32) + (index ^ mask))
        for place in range(k // 2 - 1, -1, -1):
            _sink(heap, place, k)
        least = load_i64(heap, 0)
        for index in range(k, size):
            word = (_wide(order_of(row, index)) << 32) + (index ^ mask)
            if word > least:
                store_i64(heap, 0, word)
                _sink(heap, 0, k)
                least = load_i64(heap, 0)
        for last in range(k - 1, 0, -1):
            least, word = load_i64(heap, 0), load_i64(heap, last)
            store_i64(heap, 0, word)
            store_i64(heap, last, least)
            _sink(heap, 0, last)

    def top_k(args: int, thread: int, num_threads: int) -> None:
        call = read(args)
        mask = 0 if call.larger_index_first != 0 else _LOW
        heap = call.scratch + thread * call.k * 8
        first, last = share_items(call.rows, thread, num_threads)
        for row in range(first, last):
            start, base = row * call.k, call.source + row * call.size * element_bytes
            top_of_row(base, call.size, call.k, mask, heap)
            for place in range(call.k):
                index = (load_i64(heap, place) & _LOW) ^ mask
                store_element(call.values, start + place, load_element(base, index))
                store_index(call.indices, start + place, index)

    return top_k
