"""Adds table lookups of 8-bit and 16-bit elements."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Value
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.broadcasting import emit_on_buffers
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter


def emit_lookup(
    emit: Emitter, table: Array, value: Value, output: Value | Buffer, label: str
) -> None:
    """Add the command that writes a table's entry for each element.

    Parameters
    ----------
    table : ndarray
        By unsigned element, as `armpy_numba_acc.packing.tables` makes them: 256
        entries of 8 or 32 bits, or 65,536 of 16 bits.
    value
        Of an 8-bit or 16-bit type.
    output
        Where the entries go.
    """
    call = calls.Lookup(
        index_bytes=value.info.data_type.size_bytes,
        entry_bytes=table.itemsize,
        source=emit.source(value),
        target=output if isinstance(output, Buffer) else emit.target(output),
        table=emit.constant(table),
        count=value.info.num_elements,
    )
    emit(call, label)


def emit_lookup_of_pairs(
    emit: Emitter, table: Array, inputs: Sequence[Value], output: Value, label: str
) -> None:
    """Add the commands that look up pairs of bytes of two tensors that broadcast.

    Parameters
    ----------
    table : ndarray, uint8, shape (65536,)
        Its index has the first tensor's byte in the upper half.
    """
    count = output.info.num_elements
    pairs = emit.scratch(2 * count)
    emit_on_buffers(
        emit,
        "pair_of_bytes",
        [emit.source(value) for value in inputs],
        [value.info.known_shape for value in inputs],
        output,
        label,
        kinds=("u8", "u8", "u16"),
        target=pairs,
    )
    call = calls.Lookup(
        index_bytes=2,
        entry_bytes=1,
        source=pairs,
        target=emit.target(output),
        table=emit.constant(table),
        count=count,
    )
    emit(call, label)


def emit_lookup_or_alias(
    emit: Emitter, table: Array, value: Value, output: Value, label: str
) -> None:
    """Add the command that looks bytes up, unless none of them changes."""
    if (table == range(256)).all():
        emit.alias(output, value)
    else:
        emit_lookup(emit, table, value, output, label)
