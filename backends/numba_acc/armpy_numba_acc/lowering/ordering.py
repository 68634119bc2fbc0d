"""Lowers the search for the k largest or smallest elements of rows."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Layer
from armpy.ops import TopkV2
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.broadcasting import KINDS
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_FORMATS = {
    **{kind: name for kind, name in KINDS.items() if name != "bool"},
    DataType.UNSIGNED32: "u32",
    DataType.UNSIGNED64: "u64",
}


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """A known number of elements: float32 or integers."""
    data_type = Operands(operation, inputs)["input"].data_type
    if expect(operation, TopkV2).k is None:
        return "k is not constant"
    is_known = data_type in _FORMATS and data_type is not DataType.FLOAT16
    return "" if is_known else f"{data_type.name} is not supported"


def lower(emit: Emitter, layer: Layer) -> None:
    """Rows of elements."""
    operation, value = expect(layer.operation, TopkV2), layer["input"]
    values, indices = layer.outputs
    size, k = value.info.known_shape[-1], values.info.known_shape[-1]
    call = calls.TopK(
        format=_FORMATS[value.info.data_type],
        index_bytes=indices.info.data_type.size_bytes,
        is_rising=int(not operation.largest),
        source=emit.source(value),
        values=emit.target(values),
        indices=emit.target(indices),
        rows=value.info.num_elements // size,
        size=size,
        k=k,
        larger_index_first=int(operation.larger_index_first),
        scratch=emit.scratch(16 * k * emit.num_threads),
    )
    emit(call, layer.name, num_operations=value.info.num_elements)


LOWERINGS = {TopkV2: LoweringRule(check, lower)}
