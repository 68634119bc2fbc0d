"""Lowers pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops import Pooling2d, PoolingAlgorithm
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.lowering.patches import input_of
from armpy_numba_acc.lowering.windows import (
    Tiling,
    Windows,
    best_width,
    readable_behind,
    window_arguments,
)
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES, stored_bounds
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Argument, Emitter
from armpy_numba_acc.program.limits import MOST_TAPS
from armpy_numba_acc.program.registry import Lowering

_NUDGE = np.float32(1 + 2.0**-21)
"""Makes up for rounding where a mean lies half-way between two integers."""

_MOST_IN_WORDS = 257
"""Elements whose sum fits 16 bits."""

_MOST_ELEMENTS = 1 << 15
"""Elements whose sum a float32 holds exactly."""

_NAMES = {
    PoolingAlgorithm.MAX: "max",
    PoolingAlgorithm.AVERAGE: "average",
    PoolingAlgorithm.L2: "l2",
}


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, 8 or 16 bits, NHWC."""
    assert isinstance(operation, Pooling2d)
    source = inputs[0]
    assert source is not None
    if operation.data_layout is not DataLayout.NHWC:
        return "the layout NCHW is not supported"
    if source.data_type not in (DataType.FLOAT32, *QUANTIZED_TYPES, DataType.QSYMM_S16):
        return f"{source.data_type.name} is not supported"
    if source.data_type.is_quantized:
        if outputs[0].quantization is None:
            return "a quantisation is missing"
        if operation.pool_size[0] * operation.pool_size[1] > _MOST_ELEMENTS:
            return f"windows of more than {_MOST_ELEMENTS} elements are not supported"
    if operation.pool_size[0] * operation.pool_size[1] > MOST_TAPS:
        return f"windows of more than {MOST_TAPS} elements are not supported"
    return ""


def lower(emit: Emitter, layer: Layer) -> None:
    """Add the command.

    Notes
    -----
    Means are float32 sums times the reciprocal of the number of elements; sums of integers are
    exact, and means of them rounded half away from zero. A window with NaN gives NaN.
    """
    operation = layer.operation
    assert isinstance(operation, Pooling2d)
    value, output = input_of(layer, 0), layer.outputs[0]
    windows = Windows.of(
        value.info.known_shape,
        output.info.known_shape,
        operation.pool_size,
        operation.stride,
        operation.padding,
    )
    name, bounds = _NAMES[operation.algorithm], operation.activation.bounds
    if value.info.data_type is DataType.FLOAT32:
        emit_pooling_f32(emit, value, output, windows, name, bounds, layer.name)
        return
    if value.info.data_type is DataType.QSYMM_S16:
        limits = stored_bounds(bounds, output.info)
        emit_pooling_i16(emit, value, output, windows, name, limits, layer.name)
        return
    # Stored integers are averaged: of signed bytes their own, not those with the top bit flipped.
    zero = 128 if value.info.data_type is DataType.QASYMM_S8 else 0
    limits = stored_bounds(bounds, output.info)
    numbers = (zero, zero, float(_NUDGE), *limits)
    emit_pooling_u8(emit, value, output, windows, name, numbers, layer.name)


def emit_pooling_f32(
    emit: Emitter,
    value: Value,
    output: Value,
    windows: Windows,
    algorithm: str,
    bounds: tuple[float | None, float | None],
    label: str,
) -> None:
    """Add the command that pools a float32 tensor."""
    channels = windows.shape[3]
    lanes = next(size for size in (16, 8, 4, 1) if size <= min(emit.isa.lanes, channels))
    columns, parts = 4, 1
    if windows.out_shape[2] == 1:
        columns, parts = 1, next(n for n in (4, 2, 1) if n * lanes <= channels)
    tiling = Tiling(1, columns, lanes * parts, windows.slots_by_tap(columns))
    fill = -np.inf if algorithm == "max" else 0.0
    low, high = bounds
    emit.command(
        Kernel("pooling_f32", (lanes, columns, parts, algorithm)),
        (
            *window_arguments(
                emit,
                emit.source(value),
                emit.target(output),
                windows,
                tiling,
                np.full(channels, fill, np.float32),
            ),
            *windows.kernel,
            -np.inf if low is None else float(low),
            np.inf if high is None else float(high),
        ),
        label,
        num_operations=output.info.num_elements * windows.num_taps,
    )


def emit_pooling_i16(
    emit: Emitter,
    value: Value,
    output: Value,
    windows: Windows,
    algorithm: str,
    bounds: tuple[int, int],
    label: str,
) -> None:
    """Add the command that pools a 16-bit tensor."""
    channels = windows.shape[3]
    lanes = next(size for size in (16, 8, 4, 1) if size <= min(emit.isa.lanes, channels))
    columns = 1 if windows.out_shape[2] == 1 else 4
    tiling = Tiling(1, columns, lanes, windows.slots_by_tap(columns))
    padding = np.full(channels, bounds[0] if algorithm == "max" else 0, np.int16).view(np.uint16)
    emit.command(
        Kernel("pooling_i16", (lanes, columns, algorithm)),
        (
            *window_arguments(
                emit, emit.source(value), emit.target(output), windows, tiling, padding
            ),
            *windows.kernel,
            *bounds,
        ),
        label,
        num_operations=output.info.num_elements * windows.num_taps,
    )


def emit_pooling_u8(
    emit: Emitter,
    value: Value,
    output: Value,
    windows: Windows,
    algorithm: str,
    numbers: tuple[Argument, ...],
    label: str,
) -> None:
    """Add the command that pools an 8-bit tensor.

    Parameters
    ----------
    algorithm : str
        As for the kernel.
    numbers : tuple of int or float
        Last arguments of the kernel: zero points, scale, bounds.
    """
    channels, num_taps = windows.shape[3], windows.num_taps
    width = _width(emit.choices, windows)
    source = emit.source(value)
    if width < 16:
        source = readable_behind(emit, source, value.info.size_bytes, label)
    columns = 1 if windows.out_shape[2] == 1 else 4
    tiling = Tiling(1, columns, width, windows.slots_by_tap(columns))
    has_words = algorithm != "max" and num_taps <= _MOST_IN_WORDS
    emit.command(
        Kernel("pooling_u8", (width, columns, algorithm, int(has_words))),
        (
            *window_arguments(
                emit,
                source,
                emit.target(output),
                windows,
                tiling,
                np.zeros(channels, np.uint8),
            ),
            *windows.kernel,
            *numbers,
        ),
        label,
        num_operations=output.info.num_elements * num_taps,
    )


def _width(choices: Choices, windows: Windows) -> int:
    """Channels that are computed at once."""
    channels = windows.out_shape[3]
    most = min(choices.isa.vector_bytes, channels)
    costs = {size: size + 16.0 for size in (64, 32, 16) if size <= most}
    return best_width(choices, "pooling_u8", windows, costs) if costs else channels


LOWERINGS = {Pooling2d: Lowering(check, lower)}
