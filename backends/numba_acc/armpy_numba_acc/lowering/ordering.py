"""Lowers TopkV2."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Layer
from armpy.ops import TopkV2
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.broadcasting import KINDS
from armpy_numba_acc.lowering.elementwise import given
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import Lowering

_KINDS = ("f32", "i32", "i16", "u16", "i8", "u8")


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """A known number of elements, of at most 32 bits each."""
    assert isinstance(operation, TopkV2)
    info = inputs[0]
    assert info is not None
    if operation.k is None:
        return "k is not constant"
    if info.data_type.is_float and info.data_type.size_bytes != 4:
        return f"{info.data_type.name} is not supported"
    return "" if KINDS.get(info.data_type) in _KINDS else f"{info.data_type.name} is not supported"


def lower(emit: Emitter, layer: Layer) -> None:
    """Rows of elements."""
    operation, value = layer.operation, given(layer)[0]
    assert isinstance(operation, TopkV2)
    values, indices = layer.outputs
    size, k = value.info.known_shape[-1], values.info.known_shape[-1]
    kind, index_bytes = KINDS[value.info.data_type], indices.info.data_type.size_bytes
    arguments = (
        emit.source(value),
        emit.target(values),
        emit.target(indices),
        value.info.num_elements // size,
        size,
        k,
        int(operation.larger_index_first),
        emit.scratch(8 * k * emit.num_threads),
    )
    kernel = Kernel("top_k", (kind, index_bytes))
    emit.command(kernel, arguments, layer.name, num_operations=value.info.num_elements)


LOWERINGS = {TopkV2: Lowering(check, lower)}
