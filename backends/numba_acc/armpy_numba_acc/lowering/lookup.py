"""Adds kernels that look up what becomes of 8-bit and 16-bit elements."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.operation import Array
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter


def emit_lookup(
    emit: Emitter, table: Array, value: Value, output: Value | Buffer, label: str
) -> None:
    """Add the command that writes a table's entry for each element.

    Parameters
    ----------
    emit : Emitter
    table : ndarray, uint8 or int32, shape (256,)
        By unsigned element, as `armpy_numba_acc.packing.tables` makes them.
    value : Value
        Of an 8-bit type.
    output : Value or Buffer
        Where the entries go.
    label : str
    """
    source = emit.source(value)
    target = output if isinstance(output, Buffer) else emit.target(output)
    arguments = (source, target, emit.constant(table), value.info.num_elements)
    emit.command(Kernel(f"lookup_u{8 * table.itemsize}"), arguments, label)


def emit_word_lookup(emit: Emitter, table: Array, value: Value, output: Value, label: str) -> None:
    """Add the command that writes a table's entry for each 16-bit element.

    Parameters
    ----------
    table : ndarray, int16, shape (65536,)
        By the element's bits, as `armpy_numba_acc.packing.tables` makes them.
    """
    count = value.info.num_elements
    arguments = (emit.source(value), emit.target(output), emit.constant(table), count)
    emit.command(Kernel("lookup_i16"), arguments, label)
