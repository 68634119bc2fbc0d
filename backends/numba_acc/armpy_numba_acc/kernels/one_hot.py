"""One-hot encoding: marks the positions along an axis that indices name."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import INTEGERS
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.machine.calls.gathering import OneHot
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa, element_bytes: int, index_bytes: int) -> Callable[[int, int, int], None]:
    """Make the kernel; threads share what lies in front of the axis."""
    (load, store), read = INTEGERS[element_bytes], reader(OneHot)
    load_index, _ = INTEGERS[index_bytes]

    def one_hot(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        on, off = load(call.on, 0), load(call.off, 0)
        first, last = share_items(call.outers, shares, num_shares)
        for outer in range(first, last):
            to = call.target + outer * call.depth * call.inner * element_bytes
            for i in range(call.depth * call.inner):
                store(to, i, off)
            for i in range(call.inner):
                index = load_index(call.indices, outer * call.inner + i)
                if 0 <= index < call.depth:
                    store(to, index * call.inner + i, on)

    return one_hot
