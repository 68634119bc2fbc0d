"""Moves single elements along an axis to or from where indices say."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import INTEGERS
from armpy_numba_acc.llvm.threads.fork_join import fail
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.gathering import MoveElements
from armpy_numba_acc.machine.isa import Isa


def make(
    isa: Isa, element_bytes: int, index_bytes: int, writes: int
) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the columns along the axis, each of which keeps its order.

    Nothing is read or written where an index is out of range: the kernel ends there.
    """
    (load, store), read = INTEGERS[element_bytes], reader(MoveElements)
    load_index, _ = INTEGERS[index_bytes]

    def move_elements(args: int, thread: int, num_threads: int) -> None:
        call = read(args)
        number, last = share_items(call.outers * call.inner, thread, num_threads)
        while number < last:
            outer = number // call.inner
            first = number - outer * call.inner
            end = min(call.inner, first + last - number)
            indexed = call.indexed + outer * call.size * call.inner * element_bytes
            plain = outer * call.count * call.inner
            indices = call.indices + plain * index_bytes
            ordered = call.ordered + plain * element_bytes
            for place in range(call.count):
                for i in range(first, end):
                    at = place * call.inner + i
                    index = load_index(indices, at)
                    if index < call.least or index >= call.size:
                        fail(call.failure, call.size, index)
                        return
                    if index < 0:
                        index += call.size
                    if writes:
                        store(indexed, index * call.inner + i, load(ordered, at))
                    else:
                        store(ordered, at, load(indexed, index * call.inner + i))
            number += end - first

    return move_elements
