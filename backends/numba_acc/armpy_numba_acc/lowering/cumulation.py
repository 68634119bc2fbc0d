"""Cumulate: sums and products of the elements so far along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from armpy.graph import Layer
from armpy.ops import Cumulate, ReduceOperation
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.shapes import normalize_axis
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_LONGEST_BLOCK = 2048


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """A known axis; float32 and integers."""
    data_type = Operands(operation, inputs)["input"].data_type
    if expect(operation, Cumulate).axis is None:
        return "the axis is not constant"
    is_known = data_type is DataType.FLOAT32 or not data_type.is_float
    return "" if is_known else f"{data_type.name} is not supported"


def lower(emit: Emitter, layer: Layer) -> None:
    """One pass along the axis; integers wrap around alike with a sign and without."""
    operation, info = expect(layer.operation, Cumulate), layer["input"].info
    shape, data_type = info.known_shape, info.data_type
    axis = normalize_axis(operation.axis or 0, len(shape))
    inner = prod(shape[axis + 1 :])
    call = calls.Cumulate(
        operation="sum" if operation.operation is ReduceOperation.SUM else "product",
        kind="f32" if data_type is DataType.FLOAT32 else f"i{8 * data_type.size_bytes}",
        source=emit.source(layer["input"]),
        target=emit.target(layer.output),
        outers=prod(shape[:axis]),
        count=shape[axis],
        inner=inner,
        block=min(-(-inner // emit.num_threads // 64) * 64, _LONGEST_BLOCK),
        is_exclusive=int(operation.exclusive),
        is_reversed=int(operation.reverse),
    )
    emit(call, layer.name, num_operations=info.num_elements)


LOWERINGS = {Cumulate: LoweringRule(check, lower)}
