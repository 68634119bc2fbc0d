"""Looks up what becomes of bytes."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import Linked
from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.sharing import share
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.byte_table import byte_table_definition
from armpy_numba_acc.tiles.span import call_span

ARGUMENTS = ("input", "output", "table", "size")
"""`table` has 256 bytes."""


def make(isa: Isa):
    """Make the kernel; threads share the elements."""
    return Linked(_lookup_u8, byte_table_definition(isa))


def _lookup_u8(args, thread, num_threads):
    """Look up a thread's elements."""
    source, target, table = load_i64(args, 0), load_i64(args, 1), load_i64(args, 2)
    first, last = share(load_i64(args, 3), thread, num_threads)
    call_span(source + first, table, 0, target + first, last - first, 0)
