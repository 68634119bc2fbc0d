"""Finds the foremost elements of rows, in order."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import INTEGERS
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.gathering import TopK
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.row_order import LANES, make_row_order

_LOW = {8: (1 << 32) - 1, 16: -1}
"""Bits of an index, by the bytes of an entry."""


def make(
    isa: Isa, format_: str, index_bytes: int, is_rising: int
) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the rows."""
    tools, element_bytes, read = (
        make_row_order(format_, is_rising == 1),
        FORMAT_BYTES[format_],
        reader(TopK),
    )
    put, replace, sink, swap = tools.put, tools.replace, tools.sink, tools.swap
    foremost = tools.foremost
    index_of, following, entry_bytes = tools.index, tools.following, tools.entry_bytes
    (load_element, store_element), (_, store_index) = INTEGERS[element_bytes], INTEGERS[index_bytes]
    low = _LOW[entry_bytes]

    @compiled
    def top_of_row(row: Pointer, size: int, k: int, mask: int, heap: Pointer) -> None:
        """Fill the heap with the foremost elements, in order."""
        for index in range(k):
            put(heap, index, row, index, mask)
        for place in range(k // 2 - 1, -1, -1):
            sink(heap, place, k)
        index = following(heap, row, k, size, mask)
        while index < size:
            replace(heap, k, row, index, mask)
            index = following(heap, row, index + 1, size, mask)
        for last in range(k - 1, 0, -1):
            swap(heap, last)
            sink(heap, 0, last)

    def top_k(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        mask = 0 if call.larger_index_first != 0 else low
        heap = call.scratch + thread_of(shares) * call.k * entry_bytes
        first, last = share_items(call.rows, shares, num_shares)
        is_one = call.k == 1 and mask != 0 and call.size >= LANES
        for row in range(first, last):
            start, base = row * call.k, call.source + row * call.size * element_bytes
            if is_one:
                index = foremost(base, call.size)
                store_element(call.values, start, load_element(base, index))
                store_index(call.indices, start, index)
                continue
            top_of_row(base, call.size, call.k, mask, heap)
            for place in range(call.k):
                index = index_of(heap, place, mask)
                store_element(call.values, start + place, load_element(base, index))
                store_index(call.indices, start + place, index)

    return top_k
