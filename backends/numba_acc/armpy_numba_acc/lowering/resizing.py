"""Lowers Resize."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.graph import Layer
from armpy.ops import Resize, ResizeMethod
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.records import dataclass
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import Lowering

FRACTION_BITS = 10
"""Of the weights of signed tensors, as in the kernel."""

_KINDS = {
    DataType.FLOAT32: "f32",
    DataType.QASYMM_U8: "u8",
    DataType.QASYMM_S8: "s8",
    DataType.QSYMM_S16: "s16",
}


@dataclass(frozen=True, slots=True)
class Samples:
    """Where the elements along an axis of the output come from.

    Parameters
    ----------
    positions : ndarray, int64, shape (out, 2)
        Of the two neighbours in the input.
    weights : ndarray, float32 or int32, shape (out, 2)
        Their shares.
    """

    positions: Array
    weights: Array


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """The nearest elements of any type; interpolation of float32, of bytes and of 16 bits."""
    assert isinstance(operation, Resize)
    data_type = outputs[0].data_type
    if operation.method is ResizeMethod.BILINEAR and data_type not in _KINDS:
        return f"{data_type.name} is not interpolated"
    return ""


def lower(emit: Emitter, layer: Layer) -> None:
    """Look up the nearest elements, or interpolate."""
    operation, value, output = layer.operation, layer.inputs[0], layer.outputs[0]
    assert isinstance(operation, Resize)
    assert value is not None
    axes = operation.data_layout.spatial_axes
    sizes = [(value.info.known_shape[a], output.info.known_shape[a]) for a in axes]
    n = value.info.known_shape[0]
    channels = value.info.known_shape[operation.data_layout.channel_axis]
    if operation.data_layout is DataLayout.NCHW:
        n, channels = n * channels, 1
    if operation.method is ResizeMethod.BILINEAR:
        _emit_bilinear(emit, layer, sizes, n, channels)
        return
    (height, _), (width, _) = sizes
    run = channels * value.info.data_type.size_bytes
    rows, columns = (nearest_positions(operation, *pair) for pair in sizes)
    offsets = (rows[:, None] * width + columns) * run
    arguments = (
        emit.source(value),
        emit.target(output),
        emit.constant(offsets),
        1,
        n,
        offsets.size,
        run,
        height * width * run,
    )
    emit.command(Kernel("gather_runs"), arguments, layer.name)


def _emit_bilinear(
    emit: Emitter, layer: Layer, sizes: Sequence[tuple[int, int]], images: int, channels: int
) -> None:
    """Add the command that interpolates."""
    operation, value, output = layer.operation, layer.inputs[0], layer.outputs[0]
    assert isinstance(operation, Resize)
    assert value is not None
    (height, out_height), (width, out_width) = sizes
    kind = _KINDS[value.info.data_type]
    is_wide = kind == "s16"
    find = integer_samples if kind in ("s8", "s16") else real_samples
    rows, columns = (find(operation, *pair) for pair in sizes)
    row_bytes = width * channels * value.info.data_type.size_bytes
    pitch = (width * channels + out_width * channels + 2 * emit.isa.lanes) * 4
    if is_wide:
        pitch = width * channels * 8
    arguments = (
        emit.source(value),
        emit.target(output),
        emit.constant(rows.positions * row_bytes),
        emit.constant(rows.weights),
        emit.constant(columns.positions * channels),
        emit.constant(columns.weights),
        emit.scratch(pitch * emit.num_threads),
        pitch,
        images,
        height * row_bytes,
        width * channels,
        out_height,
        out_width,
        channels,
    )
    operations = 6 * output.info.num_elements
    kernel = Kernel("resize_bilinear_i16") if is_wide else Kernel("resize_bilinear", (kind,))
    emit.command(kernel, arguments, layer.name, num_operations=operations)


def real_samples(operation: Resize, size: int, out_size: int) -> Samples:
    """Samples of interpolation in float32.

    Parameters
    ----------
    operation : Resize
    size, out_size : int
        Along the axis, before and after.

    References
    ----------
    TFLite ``ComputeInterpolationValues``.
    """
    positions = np.arange(out_size, dtype=np.float32)
    scale = _scale(operation, size, out_size)
    if operation.half_pixel_centers:
        positions = (positions + np.float32(0.5)) * scale - np.float32(0.5)
    else:
        positions = positions * scale
    lower = np.maximum(np.floor(positions), 0)
    upper = np.minimum(np.ceil(positions), size - 1)
    share = positions - lower
    return Samples(
        np.stack((lower, upper), axis=1).astype(np.int64),
        np.stack((np.float32(1) - share, share), axis=1),
    )


def integer_samples(operation: Resize, size: int, out_size: int) -> Samples:
    """Samples of interpolation with integers; parameters as for `real_samples`.

    References
    ----------
    TFLite ``ComputeInterpolationValuesInteger``.
    """
    one = 1 << FRACTION_BITS
    if operation.align_corners and out_size > 1:
        scale = (one * (size - 1) + (out_size - 1) // 2) // (out_size - 1)
    else:
        scale = (one * size + out_size // 2) // out_size
    positions = np.arange(out_size, dtype=np.int64) * scale
    if operation.half_pixel_centers:
        positions += scale // 2 - one // 2
    lower = np.maximum(positions >> FRACTION_BITS, 0)
    upper = np.minimum((positions + one - 1) >> FRACTION_BITS, size - 1)
    share = positions - lower * one
    return Samples(
        np.stack((lower, upper), axis=1), np.stack((one - share, share), axis=1).astype(np.int32)
    )


def nearest_positions(operation: Resize, size: int, out_size: int) -> Array:
    """Position of the input element that each output element is; parameters as above."""
    offset = np.float32(0.5 if operation.half_pixel_centers else 0)
    scaled = (np.arange(out_size, dtype=np.float32) + offset) * _scale(operation, size, out_size)
    whole = (
        np.trunc(scaled + np.nextafter(np.float32(0.5), np.float32(0)))
        if operation.align_corners
        else np.floor(scaled)
    )
    return np.asarray(np.clip(whole, 0, size - 1), np.int64)


def _scale(operation: Resize, size: int, out_size: int) -> np.float32:
    """Input elements per output element, in float32."""
    if operation.align_corners and out_size > 1:
        return np.float32(size - 1) / np.float32(out_size - 1)
    return np.float32(size) / np.float32(out_size)


LOWERINGS = {Resize: Lowering(check, lower)}
