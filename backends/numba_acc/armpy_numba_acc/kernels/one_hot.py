"""Marks positions along an axis that indices name."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import (
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

ARGUMENTS = ("indices", "on", "off", "target", "outers", "depth", "inner")
"""The axis of `depth` positions stands behind `outers` and in front of `inner` indices; `on` and
`off` have one element each."""

_ACCESS = {
    1: (load_u8, store_u8),
    2: (load_i16, store_i16),
    4: (load_i32, store_i32),
    8: (load_i64, store_i64),
}


def make(isa: Isa, element_bytes: int, index_bytes: int):
    """Make the kernel; threads share what lies in front of the axis.

    Notes
    -----
    An index that names no position marks none.
    """
    load, store = _ACCESS[element_bytes]
    load_index = _ACCESS[index_bytes][0]

    def one_hot(args, thread, num_threads):
        indices, target = load_i64(args, 0), load_i64(args, 3)
        on, off = load(load_i64(args, 1), 0), load(load_i64(args, 2), 0)
        outers, depth, inner = load_i64(args, 4), load_i64(args, 5), load_i64(args, 6)
        first, last = share_items(outers, thread, num_threads)
        for outer in range(first, last):
            to = target + outer * depth * inner * element_bytes
            for i in range(depth * inner):
                store(to, i, off)
            for i in range(inner):
                index = load_index(indices, outer * inner + i)
                if 0 <= index < depth:
                    store(to, index * inner + i, on)

    return one_hot
