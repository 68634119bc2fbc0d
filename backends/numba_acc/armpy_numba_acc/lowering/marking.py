"""Lowers one-hot encoding."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from armpy.graph import Layer
from armpy.ops import OneHot
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.shapes import normalize_axis
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine.calls import gathering
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Any type that native calls are given arrays of."""
    is_refused = outputs[0].data_type is DataType.BFLOAT16
    return "BFLOAT16 is not supported" if is_refused else ""


def lower(emit: Emitter, layer: Layer) -> None:
    """One command, whatever the axis."""
    indices, output = layer["indices"], layer.output
    shape = output.info.known_shape
    axis = normalize_axis(expect(layer.operation, OneHot).axis, len(shape))
    call = gathering.OneHot(
        element_bytes=output.info.data_type.size_bytes,
        index_bytes=indices.info.data_type.size_bytes,
        indices=emit.source(indices),
        on=emit.source(layer["on_value"]),
        off=emit.source(layer["off_value"]),
        target=emit.target(output),
        outers=prod(shape[:axis]),
        depth=shape[axis],
        inner=prod(shape[axis + 1 :]),
    )
    emit(call, layer.name)


LOWERINGS = {OneHot: LoweringRule(check, lower)}
