"""Reduce: sums, products, means and extremes along axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from armpy.core import numerics
from armpy.core.symbolic import computed
from armpy.graph import Layer, Value
from armpy.ops import Reduce, ReduceOperation
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.moves import Loop, emit_table, nested, stand_in
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES, scale_of, zero_point_of
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_LONGEST_BLOCK = 1024
_MOST_REDUCED = {1: 1 << 23, 2: 1 << 16}
"""So many elements can be added up in an int32, by their size in bytes."""

_ARITHMETIC = {
    ReduceOperation.SUM: "sum",
    ReduceOperation.MEAN: "sum",
    ReduceOperation.PROD: "product",
    ReduceOperation.MAX: "max",
    ReduceOperation.MIN: "min",
    ReduceOperation.ANY: "max",
    ReduceOperation.ALL: "min",
}

_EXTREMES = frozenset((ReduceOperation.MAX, ReduceOperation.MIN))
_REAL = frozenset(ReduceOperation) - {ReduceOperation.ANY, ReduceOperation.ALL}
_QUANTIZED = _REAL - {ReduceOperation.PROD}

_SUPPORTED = {
    DataType.FLOAT32: _REAL,
    DataType.SIGNED32: _REAL,
    DataType.SIGNED64: _REAL,
    DataType.QASYMM_U8: _QUANTIZED,
    DataType.QASYMM_S8: _QUANTIZED,
    DataType.QSYMM_S16: _QUANTIZED,
    DataType.SIGNED8: _EXTREMES,
    DataType.UNSIGNED8: _EXTREMES,
    DataType.BOOLEAN: frozenset((ReduceOperation.ANY, ReduceOperation.ALL)),
}


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Known axes; what `_SUPPORTED` lists."""
    reduce, info = expect(operation, Reduce), Operands(operation, inputs)["input"]
    if len(inputs) > 1 and reduce.axes is None:
        return "the axes are not constant"
    if reduce.operation not in _SUPPORTED.get(info.data_type, ()):
        return f"{reduce.operation.name} of {info.data_type.name} is not supported"
    if reduce.operation is ReduceOperation.PROD and reduce.zero_absorbs:
        return "zeros that absorb infinities and NaN are not supported"
    if not info.data_type.is_quantized or reduce.operation.selects:
        return ""
    if info.data_type is DataType.QSYMM_S16 and reduce.rounds_down:
        return f"a mean of {info.data_type.name} that is rounded down is not supported"
    most = _MOST_REDUCED[info.data_type.size_bytes]
    count = prod(info.known_shape[axis] for axis in reduce.resolved_axes(len(info.known_shape)))
    if count > most:
        return f"more than {most} elements of {info.data_type.name} are not supported"
    return ""


def lower(emit: Emitter, layer: Layer) -> None:
    """Loops over what stays, loops over what goes, and elements side by side of either."""
    operation, value = expect(layer.operation, Reduce), layer["input"]
    info, output = value.info, layer.output
    kind = _kind(emit, operation, value)
    whole = np.empty(info.known_shape, "V2") if kind == "bf16" else stand_in(info)
    axes = operation.resolved_axes(whole.ndim)
    others = [axis for axis in range(whole.ndim) if axis not in axes]
    size = whole.itemsize
    gone, stays = whole.transpose(*axes, *others), whole.transpose(*others, *axes)
    for _ in others:
        gone = gone[..., 0]
    for _ in axes:
        stays = stays[..., 0]
    reduced, remaining = nested(gone, gone), nested(stays, stays)
    form, inner = "columns", 1
    if remaining and remaining[-1].source == size:
        inner = remaining.pop().length
    elif reduced and reduced[-1].source == size:
        form, inner = "rows", reduced.pop().length
    lines = reduced.pop() if reduced else Loop(1, 0, 0)
    count = prod(info.known_shape[axis] for axis in axes)
    block = min(-(-inner // emit.num_threads // 64) * 64, _LONGEST_BLOCK)
    name = _ARITHMETIC[operation.operation]
    if operation.rounds_down and kind == "q8":
        name = "mean_down"
    elif operation.operation is ReduceOperation.MEAN and kind in ("i32", "i64"):
        name = "mean_down" if operation.rounds_down else "mean"
    kept_table, num_kept, num_items = emit_table(emit, remaining)
    reduced_table, num_reduced, num_turns = emit_table(emit, reduced)
    call = calls.Reduce(
        operation=name,
        kind=kind,
        form=form,
        source=emit.source_as_kept(value),
        target=emit.target(output),
        kept=kept_table,
        num_kept=num_kept,
        num_items=num_items,
        reduced=reduced_table,
        num_reduced=num_reduced,
        num_turns=num_turns,
        lines=lines.length,
        pitch=lines.source,
        inner=inner,
        block=block,
        scratch=emit.scratch(max(8 * block, 64) * emit.num_threads),
        rescaling=_rescaling(operation, info, output.info, count),
    )
    emit(call, layer.name, num_operations=info.num_elements)


def _kind(emit: Emitter, operation: Reduce, value: Value) -> str:
    """Return the kernel's name of the elements."""
    data_type = value.info.data_type
    if data_type in QUANTIZED_TYPES and not operation.operation.selects:
        return "q8"
    if data_type is DataType.QSYMM_S16:
        return "i16" if operation.operation.selects else "q16"
    if data_type is DataType.FLOAT32:
        return emit.kind_of(value)
    kinds = {DataType.SIGNED8: "i8", DataType.SIGNED32: "i32", DataType.SIGNED64: "i64"}
    return kinds.get(data_type, "u8")


def _rescaling(
    operation: Reduce, info: TensorInfo, output: TensorInfo, count: int
) -> calls.Rescaling:
    """Return the rescaling of sums; integers are rescaled as CpuRef does it.

    Reference: TFLite ``QuantizedMeanOrSum``.
    """
    is_mean = operation.operation is ReduceOperation.MEAN
    if info.data_type in (DataType.SIGNED32, DataType.SIGNED64) and is_mean:
        return calls.Rescaling(offset=count)
    if not info.data_type.is_quantized:
        return calls.Rescaling(scale=computed(_bits_of, count if is_mean else 1))
    if operation.rounds_down:
        return calls.Rescaling(offset=count)
    multiplier, shift = numerics.quantize_multiplier(
        float(scale_of(info)) / float(scale_of(output))
    )
    if is_mean:
        multiplier, shift = numerics.mean_multiplier(multiplier, shift, count)
    return calls.Rescaling(multiplier, zero_point_of(info) * count, shift, zero_point_of(output))


def _bits_of(divisor: int) -> int:
    return int(np.float64(divisor).view(np.int64))


LOWERINGS = {Reduce: LoweringRule(check, lower)}
