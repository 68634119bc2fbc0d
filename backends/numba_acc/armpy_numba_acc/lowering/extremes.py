"""ArgMinMax: the position of the maximum or minimum along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from armpy.graph import Layer
from armpy.ops import ArgMinMax, ArgMinMaxFunction
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.shapes import normalize_axis
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_LONGEST_BLOCK = 1024

_KINDS = {
    DataType.FLOAT32: "f32",
    DataType.SIGNED32: "i32",
    DataType.QASYMM_U8: "u8",
    DataType.QASYMM_S8: "u8",
    DataType.BOOLEAN: "u8",
    DataType.UNSIGNED8: "u8",
}


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """A known axis; the types of `_KINDS`."""
    if expect(operation, ArgMinMax).axis is None:
        return "the axis is not constant"
    data_type = Operands(operation, inputs)["input"].data_type
    return "" if data_type in _KINDS else f"{data_type.name} is not supported"


def lower(emit: Emitter, layer: Layer) -> None:
    """Search along rows, or along many columns at a time."""
    operation, value = expect(layer.operation, ArgMinMax), layer["input"]
    shape = value.info.known_shape
    axis = normalize_axis(operation.axis or 0, len(shape))
    inner = prod(shape[axis + 1 :])
    block = min(-(-inner // emit.num_threads // 64) * 64, _LONGEST_BLOCK)
    kind = _KINDS[value.info.data_type]
    form = "columns" if inner > 1 else "rows"
    if form == "rows" and kind == "u8" and shape[axis] <= emit.isa.vector_bytes:
        form = "short"
    call = calls.ArgExtreme(
        operation="max" if operation.function is ArgMinMaxFunction.MAX else "min",
        kind=kind,
        form=form,
        source=emit.source(value),
        target=emit.target(layer.output),
        outer=prod(shape[:axis]),
        axis=shape[axis],
        inner=inner,
        block=block,
        scratch=emit.scratch(block * 8 * emit.num_threads),
        is_wide=int(layer.output.info.data_type is DataType.SIGNED64),
    )
    emit(call, layer.name, num_operations=value.info.num_elements)


LOWERINGS = {ArgMinMax: LoweringRule(check, lower)}
