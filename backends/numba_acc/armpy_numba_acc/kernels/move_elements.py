"""Moves single elements along an axis to or from where indices say."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import INTEGERS
from armpy_numba_acc.llvm.threads.fork_join import fail
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.gathering import MoveElements
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.updates import make_update_element


def make(
    isa: Isa, format_: str, index_bytes: int, reduction: str
) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share the columns along the axis, each of which keeps its order.

    Nothing is read or written where an index is out of range: the kernel ends there.
    """
    element_bytes, read = FORMAT_BYTES[format_], reader(MoveElements)
    (load_index, _), writes = INTEGERS[index_bytes], reduction != ""
    update = make_update_element(reduction or "none", format_)

    def move_elements(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        number, last = share_items(call.outers * call.inner, shares, num_shares)
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
                    far = indexed + (index * call.inner + i) * element_bytes
                    near = ordered + at * element_bytes
                    if writes:
                        update(far, near)
                    else:
                        update(near, far)
            number += end - first

    return move_elements
