"""Lowers operations that move elements, or write slices, where indices say."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from armpy.graph import Layer, Value
from armpy.ops import GatherElements, ScatterElements, ScatterNd, ScatterReduction
from armpy.ops.elementwise import INTEGER_TYPES
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.shapes import normalize_axis
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule


def check_elements(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """Indices that are as large as the tensor, but along the axis; see `check_scatter`."""
    operands = Operands(operation, inputs)
    shape, indices = operands["input"].known_shape, operands["indices"].known_shape
    axis = normalize_axis(operation.attributes()["axis"], len(shape))
    if (shape[:axis], shape[axis + 1 :]) != (indices[:axis], indices[axis + 1 :]):
        return "indices for a part of the tensor are not supported"
    return check_scatter(operation, inputs, outputs)


def check_scatter(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Updates that replace present elements, or are combined with them as float32 or integers."""
    data_type = Operands(operation, inputs)["input"].data_type
    if _reduction_of(operation) in ("", "none"):
        return ""
    is_known = data_type is DataType.FLOAT32 or data_type in INTEGER_TYPES
    return "" if is_known else f"updates of {data_type.name} are not combined"


def _reduction_of(operation: Operation) -> str:
    """Name of the reduction of updates; empty where nothing is written."""
    reduction = operation.attributes().get("reduction")
    return reduction.name.lower() if isinstance(reduction, ScatterReduction) else ""


def _format_of(data_type: DataType, reduction: str) -> str:
    """The kernel's name of elements; those that are only moved are integers."""
    if data_type is DataType.FLOAT32 and reduction not in ("", "none"):
        return "f32"
    is_ordered = reduction in ("max", "min") and data_type.name.startswith("UNSIGNED")
    return f"{'u' if is_ordered else 'i'}{8 * data_type.size_bytes}"


def lower_gather_elements(emit: Emitter, layer: Layer) -> None:
    """Read elements one by one."""
    _move_elements(emit, layer, emit.source(layer["input"]), emit.target(layer.output))


def lower_scatter_elements(emit: Emitter, layer: Layer) -> None:
    """Copy the tensor and write elements one by one."""
    _copy(emit, layer)
    updates = emit.source(layer["updates"])
    _move_elements(emit, layer, emit.target(layer.output), updates)


def _move_elements(emit: Emitter, layer: Layer, indexed: Buffer, ordered: Buffer) -> None:
    """Add the command."""
    value, indices = layer["input"], layer["indices"]
    shape, attributes = value.info.known_shape, layer.operation.attributes()
    reduction = _reduction_of(layer.operation)
    axis = normalize_axis(attributes["axis"], len(shape))
    call = calls.MoveElements(
        format=_format_of(value.info.data_type, reduction),
        index_bytes=indices.info.data_type.size_bytes,
        reduction=reduction,
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
    size, reduction = value.info.data_type.size_bytes, _reduction_of(operation)
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
        format=_format_of(value.info.data_type, reduction),
        index_bytes=indices.info.data_type.size_bytes,
        reduction=reduction,
        updates=emit.source(updates),
        target=emit.target(layer.output),
        indices=emit.source(indices),
        axes=emit.table(axes),
        depth=len(axes),
        count=prod(places[:-1]),
        run=prod(shape[len(axes) :]) * size,
        failure=emit.failure(),
    )
    emit(call, layer.name, num_bytes=2 * updates.info.size_bytes)


def _copy(emit: Emitter, layer: Layer) -> None:
    """Add the command that copies the tensor that is written to, unless it is there already."""
    value: Value = layer["input"]
    join = emit.arrangement.joins.get(value)
    if join is not None and join.whole is layer.output:
        return
    call = calls.Copy(emit.source(value), emit.target(layer.output), value.info.size_bytes)
    emit(call, layer.name)


LOWERINGS = {
    GatherElements: LoweringRule(check_elements, lower_gather_elements),
    ScatterElements: LoweringRule(check_elements, lower_scatter_elements),
    ScatterNd: LoweringRule(check_scatter, lower_scatter_nd),
}
