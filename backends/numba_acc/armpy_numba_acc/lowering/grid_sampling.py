"""GridSample: samples of images and volumes at computed positions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from armpy.graph import Layer
from armpy.ops import GridSample
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32."""
    data_type = Operands(operation, inputs)["input"].data_type
    return "" if data_type is DataType.FLOAT32 else f"{data_type.name} is not supported"


def lower(emit: Emitter, layer: Layer) -> None:
    """One command; positions are computed in float32 and sums in float64, as CpuRef does it."""
    operation, output = expect(layer.operation, GridSample), layer.output
    images, *sizes, channels = layer["input"].info.known_shape
    axes = [(size, prod(sizes[number + 1 :]) * channels * 4) for number, size in enumerate(sizes)]
    call = calls.GridSample(
        mode=operation.mode.name.lower(),
        padding=operation.padding.name.lower(),
        num_axes=len(sizes),
        source=emit.source(layer["input"]),
        grid=emit.source(layer["grid"]),
        target=emit.target(output),
        sizes=emit.table(axes),
        images=images,
        image_pitch=prod(sizes) * channels * 4,
        samples=prod(output.info.known_shape[1:-1]),
        channels=channels,
        is_aligned=int(operation.align_corners),
    )
    emit(call, layer.name, num_operations=2 * output.info.num_elements)


LOWERINGS = {GridSample: LoweringRule(check, lower)}
