"""RoiAlign: samples of regions of images on regular grids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.graph import Layer
from armpy.ops import PoolingAlgorithm, RoiAlign
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_BIN_BYTES = _TAP_BYTES = 16


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32 with channels last."""
    data_type = Operands(operation, inputs)["input"].data_type
    if data_type is not DataType.FLOAT32:
        return f"{data_type.name} is not supported"
    is_last = expect(operation, RoiAlign).data_layout is DataLayout.NHWC
    return "" if is_last else "channels are not last"


def lower(emit: Emitter, layer: Layer) -> None:
    """One command; positions are computed as CpuRef does it, sums in float32."""
    operation, output = expect(layer.operation, RoiAlign), layer.output
    images, height, width, channels = layer["input"].info.known_shape
    regions, out_height, out_width, _ = output.info.known_shape
    is_mean = operation.algorithm is PoolingAlgorithm.AVERAGE
    form = "mean" if is_mean else "max"
    if is_mean and not operation.is_free and not operation.half_pixel:
        form = "inside"
    samples = operation.height_samples, operation.width_samples
    row_bytes, column_bytes = (
        # Where their number is not fixed, samples are more than half an element apart.
        _BIN_BYTES * (out + 1) + 2 * _TAP_BYTES * (out * count if count else out + 2 * size + 4)
        for out, count, size in zip(operation.output_size, samples, (height, width), strict=True)
    )
    scales = [1 / np.float32(s) for s in (operation.height_stride, operation.width_stride)]
    call = calls.RoiAlign(
        form=form,
        source=emit.source(layer["input"]),
        rois=emit.source(layer["rois"]),
        batch_indices=emit.source(layer["batch_indices"]),
        target=emit.target(output),
        images=images,
        height=height,
        width=width,
        channels=channels,
        regions=regions,
        out_height=out_height,
        out_width=out_width,
        height_samples=samples[0],
        width_samples=samples[1],
        height_scale=float(scales[0]),
        width_scale=float(scales[1]),
        is_half_pixel=int(operation.half_pixel),
        is_free=int(operation.is_free),
        scratch=emit.scratch((row_bytes + column_bytes) * emit.num_threads),
        scratch_pitch=row_bytes + column_bytes,
        row_bytes=row_bytes,
        failure=emit.failure(),
    )
    taps = 4 * (samples[0] or 1) * (samples[1] or 1)
    emit(call, layer.name, num_operations=2 * taps * output.info.num_elements)


LOWERINGS = {RoiAlign: LoweringRule(check, lower)}
