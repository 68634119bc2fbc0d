"""Resize: nearest neighbours and bilinear interpolation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armpy.core import numerics
from armpy.core.symbolic import computed, is_traced
from armpy.graph import Layer
from armpy.ops import Resize, ResizeMethod
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_KINDS = {
    DataType.FLOAT32: "f32",
    DataType.QASYMM_U8: "u8",
    DataType.QASYMM_S8: "s8",
    DataType.QSYMM_S16: "s16",
}


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """The nearest elements of any type; interpolation of float32, of bytes and of 16 bits."""
    data_type = outputs[0].data_type
    if expect(operation, Resize).method is ResizeMethod.BILINEAR and data_type not in _KINDS:
        return f"{data_type.name} is not interpolated"
    return ""


def lower(emit: Emitter, layer: Layer) -> None:
    """Look up the nearest elements, or interpolate."""
    operation, value, output = expect(layer.operation, Resize), layer["input"], layer.output
    axes = operation.data_layout.spatial_axes
    sizes = [(value.info.known_shape[a], output.info.known_shape[a]) for a in axes]
    n = value.info.known_shape[0]
    channels = value.info.known_shape[operation.data_layout.channel_axis]
    if operation.data_layout is DataLayout.NCHW:
        n, channels = n * channels, 1
    if operation.method is ResizeMethod.BILINEAR:
        _emit_bilinear(emit, layer, sizes, n, channels)
        return
    (height, out_height), (width, out_width) = sizes
    run = channels * value.info.data_type.size_bytes
    if is_traced(height, out_height, width, out_width):
        lines = emit.scratch(n * out_height * width * run)
        _emit_nearest(emit, layer, emit.source(value), lines, sizes[0], n, width * run)
        _emit_nearest(emit, layer, lines, emit.target(output), sizes[1], n * out_height, run)
        return
    rows, columns = (
        numerics.resize.nearest_positions(*pair, **_rule_of(operation)) for pair in sizes
    )
    offsets = (rows[:, None] * width + columns) * run
    call = calls.GatherRuns(
        source=emit.source(value),
        target=emit.target(output),
        batches=1,
        outers=n,
        count=offsets.size,
        run=run,
        outer_pitch=height * width * run,
        offsets=emit.constant(offsets),
    )
    emit(call, layer.name)


def _emit_nearest(
    emit: Emitter,
    layer: Layer,
    source: Buffer,
    target: Buffer,
    sizes: tuple[int, int],  # traced
    outers: int,
    run: int,
) -> None:
    """Add the commands that look up the nearest elements, of `run` bytes, along an axis."""
    operation, (size, out_size) = expect(layer.operation, Resize), sizes
    positions = emit.scratch(8 * out_size)
    scale: float = computed(_scale, size, out_size, operation.align_corners)
    centre = 0.5 if operation.half_pixel_centers else 0.0
    offset = -0.5 if operation.align_corners else 0.0  # those are rounded
    call = calls.SampleAxis(positions, 0, size, out_size, run, scale, centre, offset)
    emit(call, f"sample {layer.name}", part="sample")
    gather = calls.GatherRuns(
        source=source,
        target=target,
        batches=1,
        outers=outers,
        count=out_size,
        run=run,
        outer_pitch=size * run,
        offsets=positions,
    )
    emit(gather, layer.name)


def _emit_bilinear(
    emit: Emitter, layer: Layer, sizes: Sequence[tuple[int, int]], num_images: int, channels: int
) -> None:
    """Add the command that interpolates."""
    value, output = layer["input"], layer.output
    (height, out_height), (width, out_width) = sizes
    kind = _KINDS[value.info.data_type]
    is_wide = kind == "s16"
    row_bytes = width * channels * value.info.data_type.size_bytes
    num_rows = 2 if kind == "u8" else 1
    pitch = (num_rows * (width * channels + emit.isa.lanes)) * 4
    pitch += (out_width * channels + emit.isa.lanes) * 4
    if is_wide:
        pitch = width * channels * 8
    rows, row_weights = _emit_samples(emit, layer, kind, sizes[0], row_bytes)
    columns, column_weights = _emit_samples(emit, layer, kind, sizes[1], channels)
    images = calls.Interpolation(
        source=emit.source(value),
        target=emit.target(output),
        rows=rows,
        row_weights=row_weights,
        columns=columns,
        column_weights=column_weights,
        scratch=emit.scratch(pitch * emit.num_threads),
        scratch_pitch=pitch,
        images=num_images,
        image_pitch=height * row_bytes,
        row_elements=width * channels,
        out_height=out_height,
        out_width=out_width,
        channels=channels,
    )
    call = calls.ResizeBilinearI16(images) if is_wide else calls.ResizeBilinear(kind, images)
    emit(call, layer.name, num_operations=6 * output.info.num_elements)


def _emit_samples(
    emit: Emitter, layer: Layer, kind: str, sizes: tuple[int, int], pitch: int
) -> tuple[Buffer, Buffer]:
    """Return both neighbours' positions times a pitch, and weights; computed if they are traced."""
    operation, (size, out_size) = expect(layer.operation, Resize), sizes
    is_real = kind not in ("s8", "s16")
    if is_real and is_traced(*sizes, pitch):
        positions, weights = emit.scratch(16 * out_size), emit.scratch(8 * out_size)
        scale: float = computed(_scale, size, out_size, operation.align_corners)
        centre = 0.5 if operation.half_pixel_centers else 0.0
        call = calls.SampleAxis(positions, weights, *sizes, pitch, scale, centre, centre)
        emit(call, f"sample {layer.name}", part="sample")
        return positions, weights
    find = numerics.resize.real_samples if is_real else numerics.resize.integer_samples
    samples = find(*sizes, **_rule_of(operation))
    return emit.constant(_positions_of(samples) * pitch), emit.constant(_weights_of(samples))


def _scale(size: int, out_size: int, align_corners: bool) -> float:
    """Return the distance of two neighbouring samples."""
    return float(numerics.resize.scale_of(size, out_size, align_corners))


def _rule_of(operation: Resize) -> dict[str, bool]:
    """Return where elements lie upon each other."""
    return {
        "align_corners": operation.align_corners,
        "half_pixel_centers": operation.half_pixel_centers,
    }


def _positions_of(samples: numerics.resize.Samples) -> npt.NDArray[np.int64]:
    """Both neighbours' positions (out, 2)."""
    return np.stack((samples.lower, samples.upper), axis=1)


def _weights_of(samples: numerics.resize.Samples) -> Array:
    """Both neighbours' weights (out, 2), float32 or int32 as the kernels take them."""
    weights = np.stack((samples.lower_weights, samples.upper_weights), axis=1)
    return weights.astype(np.int32) if weights.dtype.kind == "i" else weights


LOWERINGS = {Resize: LoweringRule(check, lower)}
