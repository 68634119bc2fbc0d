"""Lowers operations that move elements, or write slices, where indices say."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops import GatherElements, ScatterElements, ScatterNd, ScatterReduction
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.shapes import normalize_axis
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule


def check_elements(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """Indices that are as large as the tensor, but along the axis; updates that replace."""
    given = Operands(operation, inputs)
    shape, indices = given["input"].known_shape, given["indices"].known_shape
    axis = normalize_axis(operation.attributes()["axis"], len(shape))
    if (shape[:axis], shape[axis + 1 :]) != (indices[:axis], indices[axis + 1 :]):
        return "indices for a part of the tensor are not supported"
    return check_scatter(operation, inputs, outputs)


def check_scatter(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Updates that replace what is there."""
    reduction = operation.attributes().get("reduction", ScatterReduction.NONE)
    return "" if reduction is ScatterReduction.NONE else f"{reduction.name} is not supported"


def lower_gather_elements(emit: Emitter, layer: Layer) -> None:
    """Read elements one by one."""
    _move_elements(emit, layer, emit.source(layer["input"]), emit.target(layer.output), writes=0)


def lower_scatter_elements(emit: Emitter, layer: Layer) -> None:
    """Copy the tensor and write elements one by one."""
    _copy(emit, layer)
    updates = emit.source(layer["updates"])
    _move_elements(emit, layer, emit.target(layer.output), updates, writes=1)


def _move_elements(
    emit: Emitter, layer: Layer, indexed: Buffer, ordered: Buffer, *, writes: int
) -> None:
    """Add the command."""
    value, indices = layer["input"], layer["indices"]
    shape, attributes = value.info.known_shape, layer.operation.attributes()
    axis = normalize_axis(attributes["axis"], len(shape))
    call = calls.MoveElements(
        element_bytes=value.info.data_type.size_bytes,
        index_bytes=indices.info.data_type.size_bytes,
        writes=writes,
        indexed=indexed,
        ordered=ordered,
        indices=emit.source(indices),
        outers=prod(shape[:axis]),
        size=shape[axis],
        count=indices.info.known_shape[axis],
        inner=prod(shape[axis + 1 :]),
        least=-shape[axis] if attributes["wraps_negative"] else 0,
        failure=emit.failure(),
    )
    emit(call, layer.name, num_bytes=3 * indices.info.size_bytes)


def lower_scatter_nd(emit: Emitter, layer: Layer) -> None:
    """Copy the tensor and write slices."""
    operation, value = expect(layer.operation, ScatterNd), layer["input"]
    indices, updates = layer["indices"], layer["updates"]
    shape, places = value.info.known_shape, indices.info.known_shape
    size = value.info.data_type.size_bytes
    axes = [
        (
            shape[axis],
            prod(shape[axis + 1 :]) * size,
            -shape[axis] if operation.wraps_negative else 0,
        )
        for axis in range(places[-1])
    ]
    _copy(emit, layer)
    call = calls.ScatterByIndex(
        index_bytes=indices.info.data_type.size_bytes,
        updates=emit.source(updates),
        target=emit.target(layer.output),
        indices=emit.source(indices),
        axes=emit.constant(np.array(axes, np.int64)),
        depth=len(axes),
        count=prod(places[:-1]),
        run=prod(shape[len(axes) :]) * size,
        failure=emit.failure(),
    )
    emit(call, layer.name, num_bytes=2 * updates.info.size_bytes)


def _copy(emit: Emitter, layer: Layer) -> None:
    """Add the command that copies the tensor that is written to."""
    value: Value = layer["input"]
    call = calls.Copy(emit.source(value), emit.target(layer.output), value.info.size_bytes)
    emit(call, layer.name)


LOWERINGS = {
    GatherElements: LoweringRule(check_elements, lower_gather_elements),
    ScatterElements: LoweringRule(check_elements, lower_scatter_elements),
    ScatterNd: LoweringRule(check_scatter, lower_scatter_nd),
}
