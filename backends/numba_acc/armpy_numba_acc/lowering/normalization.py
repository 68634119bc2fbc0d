"""Lowers normalisations by neighbours, and by the mean and variance of an image."""

from __future__ import annotations

import math
from collections.abc import Sequence

from armpy.graph import Layer
from armpy.ops import InstanceNormalization, Normalization
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.shapes import normalize_axes
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.lowering.broadcasting import emit_on_buffers
from armpy_numba_acc.lowering.elementwise import check_types
from armpy_numba_acc.lowering.patches import input_of
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import Lowering

_POWERS = {0.5: "sqrt.div", 1.0: "div"}
"""Words that divide by a power more quickly than in general."""


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, channels last."""
    layout = getattr(operation, "data_layout", DataLayout.NHWC)
    if layout is not DataLayout.NHWC:
        return "the layout NCHW is not supported"
    return check_types((*inputs, *outputs), (DataType.FLOAT32,))


def lower_by_neighbours(emit: Emitter, layer: Layer) -> None:
    """One command per axis, which adds up, and one that divides."""
    operation, value = layer.operation, input_of(layer, 0)
    assert isinstance(operation, Normalization)
    source, shape = emit.source(value), value.info.known_shape
    sums: Buffer = source
    for number, axis in enumerate(normalize_axes(operation.axes, len(shape))):
        pitch, target = math.prod(shape[axis + 1 :]), emit.scratch(value.info.size_bytes)
        planes = math.prod(shape[:axis])
        emit.command(
            Kernel("window_sums", (int(number == 0),)),
            (sums, target, planes, shape[axis] * pitch, pitch, operation.radius),
            layer.name,
        )
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
        layer.outputs[0],
        layer.name,
        parameters=numbers,
        kinds=("f32",) * 3,
    )


def lower_by_image(emit: Emitter, layer: Layer) -> None:
    """One command."""
    operation, value = layer.operation, input_of(layer, 0)
    assert isinstance(operation, InstanceNormalization)
    images, height, width, channels = value.info.known_shape
    arguments = (
        emit.source(value),
        emit.target(layer.outputs[0]),
        emit.scratch(16 * channels),
        images,
        height * width,
        channels,
        float(operation.gamma),
        float(operation.beta),
        float(operation.eps),
    )
    emit.command(Kernel("instance_normalization"), arguments, layer.name)


LOWERINGS = {
    InstanceNormalization: Lowering(check, lower_by_image),
    Normalization: Lowering(check, lower_by_neighbours),
}
