"""Finds the largest elements of rows, in falling order."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import int64, njit

from armpy_numba_acc.llvm.pointers import (
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    store_i16,
    store_i32,
    store_i64,
    store_u8,
)
from armpy_numba_acc.llvm.sharing import share_items
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = (
    "source",
    "values",
    "indices",
    "rows",
    "size",
    "k",
    "larger_index_first",
    "scratch",
)
"""`rows` of `size` elements; `scratch` has room for `k` int64 per thread."""

_LOW = (1 << 32) - 1
_INFINITY, _HIGHEST = 0x7F800000, 0x7FFFFFFF


@njit(error_model="numpy")
def _order_of_float(base, index):
    """An integer that is larger for larger float32; NaN is the largest, both zeros are alike."""
    bits = int64(load_i32(base, index))
    magnitude = bits & _HIGHEST
    if magnitude > _INFINITY:
        return int64(_HIGHEST)
    return magnitude if bits >= 0 else -magnitude


@njit(error_model="numpy")
def _order_of_u16(base, index):
    """uint16 as it is."""
    return int64(load_i16(base, index)) & 0xFFFF


_ORDERS = {
    "f32": (_order_of_float, load_i32, store_i32, 4),
    "i32": (load_i32, load_i32, store_i32, 4),
    "i16": (load_i16, load_i16, store_i16, 2),
    "u16": (_order_of_u16, load_i16, store_i16, 2),
    "i8": (load_i8, load_u8, store_u8, 1),
    "u8": (load_u8, load_u8, store_u8, 1),
}
"""By kind of element: how it is read to be compared, how as it is stored, how it is written, and
its bytes."""

_INDICES = {2: store_i16, 4: store_i32}


@njit(error_model="numpy")
def _sink(heap, place, size):
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


def make(isa: Isa, kind: str, index_bytes: int):
    """Make the kernel; threads share the rows.

    Notes
    -----
    Elements are kept as one word each, that says how large they are and, below that, how early
    they come among equal ones: no two words are the same.
    """
    order_of, load_element, store_element, element_bytes = _ORDERS[kind]
    store_index = _INDICES[index_bytes]

    @njit(error_model="numpy")
    def top_of_row(row, size, k, mask, heap):
        """Fill the heap with the words of the largest elements, falling."""
        for index in range(k):
            store_i64(heap, index, (int64(order_of(row, index)) << 32) + (index ^ mask))
        for place in range(k // 2 - 1, -1, -1):
            _sink(heap, place, k)
        least = load_i64(heap, 0)
        for index in range(k, size):
            word = (int64(order_of(row, index)) << 32) + (index ^ mask)
            if word > least:
                store_i64(heap, 0, word)
                _sink(heap, 0, k)
                least = load_i64(heap, 0)
        for last in range(k - 1, 0, -1):
            least, word = load_i64(heap, 0), load_i64(heap, last)
            store_i64(heap, 0, word)
            store_i64(heap, last, least)
            _sink(heap, 0, last)

    def top_k(args, thread, num_threads):
        source, values, indices = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
        rows, size, k = load_i64(args, 3), load_i64(args, 4), load_i64(args, 5)
        mask = 0 if load_i64(args, 6) != 0 else _LOW
        heap = load_i64(args, 7) + thread * k * 8
        first, last = share_items(rows, thread, num_threads)
        for row in range(first, last):
            start, base = row * k, source + row * size * element_bytes
            top_of_row(base, size, k, mask, heap)
            for place in range(k):
                index = (load_i64(heap, place) & _LOW) ^ mask
                store_element(values, start + place, load_element(base, index))
                store_index(indices, start + place, index)

    return top_k
