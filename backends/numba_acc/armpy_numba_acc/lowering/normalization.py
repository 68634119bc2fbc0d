"""Normalisations: by neighbours, by an image's mean and variance, by that of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy.core.symbolic import is_traced
from armpy.graph import Layer
from armpy.ops import (
    InstanceNormalization,
    LayerNormalization,
    Normalization,
    RmsNormalization,
)
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.shapes import normalize_axes
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.lowering.broadcasting import emit_on_buffers
from armpy_numba_acc.lowering.elementwise import check_types
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_POWERS = {0.5: "sqrt.div", 1.0: "div"}
"""Words that divide by a power more quickly than in general."""

_COLUMNS = 128
"""Elements of an image that are added up side by side if it has few channels. At most twice the
least size of a share, so that one thread has all channels where there are several pixels."""


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, channels last."""
    layout = getattr(operation, "data_layout", DataLayout.NHWC)
    if layout is not DataLayout.NHWC:
        return "the layout NCHW is not supported"
    return check_types((*inputs, *outputs), (DataType.FLOAT32,))


def lower_by_neighbours(emit: Emitter, layer: Layer) -> None:
    """One command per axis, which adds up, and one that divides."""
    operation, value = expect(layer.operation, Normalization), layer["input"]
    source, shape = emit.source(value), value.info.known_shape
    sums: Buffer = source
    for number, axis in enumerate(normalize_axes(operation.axes, len(shape))):
        pitch, target = math.prod(shape[axis + 1 :]), emit.scratch(value.info.size_bytes)
        call = calls.WindowSums(
            squares=int(number == 0),
            source=sums,
            target=target,
            planes=math.prod(shape[:axis]),
            length=shape[axis] * pitch,
            pitch=pitch,
            radius=operation.radius,
        )
        emit(call, layer.name)
        sums = target
    numbers = [operation.alpha, operation.k]
    power = _POWERS.get(operation.beta)
    if power is None:
        power = "p.power.mul"
        numbers.append(-operation.beta)
    emit_on_buffers(
        emit,
        f"x0.x1.linear.{power}",
        (source, sums),
        (shape, shape),
        layer.output,
        layer.name,
        parameters=numbers,
        kinds=("f32",) * 3,
    )


def lower_by_image(emit: Emitter, layer: Layer) -> None:
    """Normalise each channel of each image by its own mean and variance."""
    operation, value = expect(layer.operation, InstanceNormalization), layer["input"]
    images, height, columns, channels = value.info.known_shape
    width = 1 if is_traced(channels) else max(1, _COLUMNS // max(1, channels))
    call = calls.InstanceNormalization(
        source=emit.source(value),
        target=emit.target(layer.output),
        sums=emit.scratch(16 * channels * width),
        images=images,
        pixels=height * columns,
        channels=channels,
        width=width,
        gamma=float(operation.gamma),
        beta=float(operation.beta),
        epsilon=float(operation.eps),
    )
    emit(call, layer.name)


def _by_row(operation: Operation) -> LayerNormalization | RmsNormalization:
    """An operation of either kind."""
    if isinstance(operation, LayerNormalization):
        return operation
    return expect(operation, RmsNormalization)


def check_by_row(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32 rows along the last axes, whose factors and addends are one row each."""
    present = [info for info in inputs if info is not None]
    if reason := check_types((*present, *outputs), (DataType.FLOAT32,)):
        return reason
    shape = outputs[0].known_shape
    axes = normalize_axes(_by_row(operation).axes, len(shape))
    if axes != tuple(range(len(shape) - len(axes), len(shape))):
        return "axes other than the last ones are not supported"
    for info in present[1:]:
        value_shape = info.known_shape
        if math.prod(value_shape) != math.prod(value_shape[-len(axes) :]) or (
            value_shape[-len(axes) :] != shape[-len(axes) :]
        ):
            return "factors and addends other than rows are not supported"
    return ""


def lower_by_row(emit: Emitter, layer: Layer) -> None:
    """Normalise rows, the mean taken off or not."""
    operation, value = _by_row(layer.operation), layer["input"]
    has_mean = isinstance(operation, LayerNormalization)
    shape = value.info.known_shape
    first = normalize_axes(operation.axes, len(shape))[0]
    length = math.prod(shape[first:])

    def row(number: int, otherwise: float) -> Buffer:
        operand = layer.inputs[number] if number < len(layer.inputs) else None
        if operand is None:
            return emit.constant(np.full(length, otherwise, np.float32))
        return emit.source(operand)

    call = calls.LayerNormalization(
        "mean" if has_mean else "root mean square",
        source=emit.source(value),
        target=emit.target(layer.output),
        gamma=row(1, 1.0),
        beta=row(2, 0.0),
        rows=math.prod(shape[:first]),
        length=length,
        epsilon=float(operation.eps),
    )
    emit(call, layer.name)


LOWERINGS = {
    LayerNormalization: LoweringRule(check_by_row, lower_by_row),
    RmsNormalization: LoweringRule(check_by_row, lower_by_row),
    InstanceNormalization: LoweringRule(check, lower_by_image),
    Normalization: LoweringRule(check, lower_by_neighbours),
}
