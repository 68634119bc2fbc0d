"""UnidirectionalSequenceLstm, by the input's type."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Layer
from armpy.ops import UnidirectionalSequenceLstm
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.lstm_f32 import lower_f32
from armpy_numba_acc.lowering.lstm_q8 import check_q8, lower_q8
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, or what `check_q8` takes; constant weights."""
    lstm = expect(operation, UnidirectionalSequenceLstm)
    for operand, info in zip(operation.inputs, inputs, strict=False):
        is_weight = operand.name != "input" and not operand.name.endswith("_state_in")
        if info is not None and is_weight and not info.is_constant:
            return f"{operand.name} is not constant"
    data_type = Operands(operation, inputs)["input"].data_type
    if data_type is DataType.FLOAT32:
        return ""
    if data_type is DataType.QASYMM_S8:
        return check_q8(lstm, inputs)
    return f"{data_type.name} is not supported"


def lower(emit: Emitter, layer: Layer) -> None:
    """Lower by the input's type."""
    is_float = layer.outputs[2].info.data_type is DataType.FLOAT32
    (lower_f32 if is_float else lower_q8)(emit, layer)


LOWERINGS = {UnidirectionalSequenceLstm: LoweringRule(check, lower)}
