"""Lowers OneHot."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from armpy.graph import Layer
from armpy.ops import OneHot
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.shapes import normalize_axis
from armpy.tensor import TensorInfo
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import Lowering


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Every type; a known depth follows from the output's shape."""
    return ""


def lower(emit: Emitter, layer: Layer) -> None:
    """One command, whatever the axis."""
    operation, output = layer.operation, layer.outputs[0]
    assert isinstance(operation, OneHot)
    indices, on_value, off_value = layer.inputs[:3]
    assert indices is not None
    assert on_value is not None
    assert off_value is not None
    shape = output.info.known_shape
    axis = normalize_axis(operation.axis, len(shape))
    sizes = output.info.data_type.size_bytes, indices.info.data_type.size_bytes
    arguments = (
        emit.source(indices),
        emit.source(on_value),
        emit.source(off_value),
        emit.target(output),
        prod(shape[:axis]),
        shape[axis],
        prod(shape[axis + 1 :]),
    )
    emit.command(Kernel("one_hot", sizes), arguments, layer.name)


LOWERINGS = {OneHot: Lowering(check, lower)}
