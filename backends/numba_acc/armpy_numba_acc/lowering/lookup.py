"""Adds table lookups of 8-bit and 16-bit elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from armpy_reference import ReferenceBackend

from armpy.backend import HostTensorHandle, NetworkResources, WorkloadInfo
from armpy.graph import Layer, Value
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_numba_acc.lowering.broadcasting import emit_on_buffers
from armpy_numba_acc.lowering.operands import given
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import TOP_BIT, Emitter


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


def emit_byte_function(emit: Emitter, layers: Sequence[Layer], root: Value, label: str) -> None:
    """Add the command that looks up what layers make of bytes, unless none of these changes.

    Parameters
    ----------
    layers
        In the order of execution. They compute element by element, from the root, constants of one
        element and each other.
    root
        Of an 8-bit type, as the last layer's output is.
    """
    table, output = _table_of(layers, root), layers[-1].output
    if (table == range(256)).all():
        emit.alias(output, root)
    else:
        emit_lookup(emit, table, root, output, label)


def _table_of(layers: Sequence[Layer], root: Value) -> Array:
    """The last layer's bytes by those of a tensor, computed by CpuRef."""
    factory = ReferenceBackend().create_workload_factory(NetworkResources())
    every_byte = flipped(np.arange(256, dtype=np.uint8), root)
    known = {root: every_byte.view(root.info.data_type.dtype)}
    for layer in layers:
        values = given(layer)
        constants = [None if value.data is None else value.data.reshape(1) for value in values]
        arrays = [known[v] if c is None else c for v, c in zip(values, constants, strict=True)]
        infos = [v.info.with_shape(a.shape) for v, a in zip(values, arrays, strict=True)]
        output = layer.output.info.with_shape(every_byte.shape)
        result = HostTensorHandle(output, np.empty(every_byte.shape, output.data_type.dtype))
        info = WorkloadInfo(layer.name, tuple(infos), (output,), tuple(constants))
        workload = factory.create_workload(layer.operation, info)
        workload.execute(list(map(HostTensorHandle, infos, arrays)), [result])
        known[layer.output] = result.array
    last = layers[-1].output
    return flipped(known[last].view(np.uint8), last)


def flipped(stored: Array, value: Value) -> Array:
    """Bytes as regions keep them of those that a tensor stores, and the other way round."""
    return stored ^ TOP_BIT if value.info.data_type is DataType.QASYMM_S8 else stored
