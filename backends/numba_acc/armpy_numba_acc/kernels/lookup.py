"""Table lookup of 8-bit and 16-bit elements."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.llvm.pointers import INTEGERS
from armpy_numba_acc.llvm.threads.sharing import share
from armpy_numba_acc.machine.calls.elementwise import Lookup
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.byte_table import byte_table_definition
from armpy_numba_acc.tiles.elementwise.loop import compute_elements

_read = reader(Lookup)


def make(
    isa: Isa, index_bytes: int, entry_bytes: int
) -> LinkedKernel | Callable[[int, int, int], None]:
    """Make the kernel; threads share the elements."""
    if index_bytes == entry_bytes == 1:
        return LinkedKernel(_lookup_bytes, byte_table_definition(isa))
    load_index, (load, store) = INTEGERS[index_bytes][0], INTEGERS[entry_bytes]
    mask = (1 << 8 * index_bytes) - 1

    def lookup(args: int, shares: int, num_shares: int) -> None:
        call = _read(args)
        first, last = share(call.count, shares, num_shares)
        for i in range(first, last):
            store(call.target, i, load(call.table, load_index(call.source, i) & mask))

    return lookup


def _lookup_bytes(args: int, shares: int, num_shares: int) -> None:
    """Look up a thread's bytes, as many at a time as the processor can."""
    call = _read(args)
    first, last = share(call.count, shares, num_shares)
    compute_elements(call.source + first, call.table, 0, call.target + first, last - first, 0)
