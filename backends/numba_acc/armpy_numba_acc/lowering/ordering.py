"""Lowers TopkV2."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Layer
from armpy.ops import TopkV2
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.broadcasting import KINDS
from armpy_numba_acc.lowering.elementwise import given
from armpy_numba_acc.machine.calls.gathering import TopK
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
    call = TopK(
        format=KINDS[value.info.data_type],
        index_bytes=indices.info.data_type.size_bytes,
        source=emit.source(value),
        values=emit.target(values),
        indices=emit.target(indices),
        rows=value.info.num_elements // size,
        size=size,
        k=k,
        larger_index_first=int(operation.larger_index_first),
        scratch=emit.scratch(8 * k * emit.num_threads),
    )
    emit(call, layer.name, num_operations=value.info.num_elements)


LOWERINGS = {TopkV2: Lowering(check, lower)}
