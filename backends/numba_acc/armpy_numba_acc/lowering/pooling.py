"""Lowers pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from armpy.graph import Layer, Value
from armpy.ops import Pooling2d, PoolingAlgorithm
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.windows import (
    Tiling,
    Windows,
    best_width,
    readable_past,
    tiles_of,
)
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.call import Call
from armpy_numba_acc.machine.calls.windows import MOST_SMALL, SMALL
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.quantized import (
    QUANTIZED_TYPES,
    stored_bounds,
    zero_point_of,
)
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.fusion import float_bounds
from armpy_numba_acc.program.limits import MOST_TAPS
from armpy_numba_acc.program.registry import LoweringRule

_NUDGE = np.float32(1 + 2.0**-21)
"""Makes up for rounding where a mean lies half-way between two integers."""

_MOST_IN_WORDS = 257
"""Elements whose sum fits 16 bits."""

MOST_ELEMENTS = 1 << 15
"""Elements whose sum a float32 holds exactly."""

_NAMES = {
    PoolingAlgorithm.MAX: "max",
    PoolingAlgorithm.AVERAGE: "average",
    PoolingAlgorithm.L2: "l2",
}


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, 8 or 16 bits, NHWC."""
    pooling, source = expect(operation, Pooling2d), Operands(operation, inputs)["input"]
    num_elements = pooling.pool_size[0] * pooling.pool_size[1]
    if pooling.data_layout is not DataLayout.NHWC:
        return "the layout NCHW is not supported"
    if source.data_type not in (DataType.FLOAT32, *QUANTIZED_TYPES, DataType.QSYMM_S16):
        return f"{source.data_type.name} is not supported"
    if source.data_type.is_quantized:
        if outputs[0].quantization is None:
            return "a quantisation is missing"
        if num_elements > MOST_ELEMENTS:
            return f"windows of more than {MOST_ELEMENTS} elements are not supported"
    if num_elements > MOST_TAPS:
        return f"windows of more than {MOST_TAPS} elements are not supported"
    return ""


def lower(emit: Emitter, layer: Layer) -> None:
    """Add the call.

    Means are float32 sums times the reciprocal of the number of elements; sums of integers are
    exact, and means of them rounded, ties away from zero. A window with NaN gives NaN.
    """
    operation, source = expect(layer.operation, Pooling2d), layer["input"]
    shape, out_shape = source.info.known_shape, layer.output.info.known_shape
    size, stride = operation.pool_size, operation.stride
    windows = Windows.of(shape, out_shape, size, stride, operation.padding)
    name = _NAMES[operation.algorithm]
    if source.info.data_type is DataType.FLOAT32:
        call: Call = _pooling_f32(emit, layer, windows, name)
    elif source.info.data_type is DataType.QSYMM_S16:
        call = _pooling_i16(emit, layer, windows, name)
    else:
        call = _pooling_u8(emit, layer, windows, name)
    emit(call, layer.name, num_operations=layer.output.info.num_elements * windows.num_taps)


def _pooling_f32(emit: Emitter, layer: Layer, windows: Windows, algorithm: str) -> calls.PoolingF32:
    """The call for a float32 tensor."""
    channels = windows.shape[3]
    lanes, columns, parts = _lanes(emit.isa, channels), _columns(windows), 1
    if columns == 1:
        parts = next(n for n in (4, 2, 1) if n * lanes <= channels)
    tiling = Tiling(1, columns, lanes * parts, windows.slots_by_tap(columns))
    padding = np.full(channels, -np.inf if algorithm == "max" else 0.0, np.float32)
    source, target = emit.source(layer["input"]), emit.target(layer.output)
    low, high = float_bounds(expect(layer.operation, Pooling2d).activation.bounds)
    return calls.PoolingF32(
        lanes=lanes,
        columns=columns,
        parts=parts,
        algorithm=algorithm,
        tiles=tiles_of(emit, source, target, windows, tiling, padding),
        kernel_h=windows.kernel[0],
        kernel_w=windows.kernel[1],
        low=low,
        high=high,
    )


def _pooling_i16(emit: Emitter, layer: Layer, windows: Windows, algorithm: str) -> calls.PoolingI16:
    """The call for a 16-bit tensor."""
    channels, columns = windows.shape[3], _columns(windows)
    lanes = _lanes(emit.isa, channels)
    tiling = Tiling(1, columns, lanes, windows.slots_by_tap(columns))
    low, high = _stored_bounds(layer)
    padding = np.full(channels, low if algorithm == "max" else 0, np.int16).view(np.uint16)
    source, target = emit.source(layer["input"]), emit.target(layer.output)
    return calls.PoolingI16(
        lanes=lanes,
        columns=columns,
        algorithm=algorithm,
        tiles=tiles_of(emit, source, target, windows, tiling, padding),
        kernel_h=windows.kernel[0],
        kernel_w=windows.kernel[1],
        low=low,
        high=high,
    )


def _pooling_u8(emit: Emitter, layer: Layer, windows: Windows, algorithm: str) -> calls.PoolingU8:
    """The call for an 8-bit tensor."""
    # Stored integers are averaged: of signed bytes their own, not those with the top bit flipped.
    zero_point = 128 if layer["input"].info.data_type is DataType.QASYMM_S8 else 0
    low, high = _stored_bounds(layer)
    return _pooling_of_bytes(
        emit,
        layer["input"],
        layer.output,
        windows,
        algorithm=algorithm,
        has_words=0 if algorithm == "max" else _words(windows.num_taps),
        zero_point=zero_point,
        in_zero_point=zero_point,
        scale=float(_NUDGE),
        low=low,
        high=high,
    )


def emit_byte_means(
    emit: Emitter, source: Value, output: Value, windows: Windows, scale: float, label: str
) -> None:
    """Add the call that rounds means of bytes once, to bytes of another scale and zero point.

    Parameters
    ----------
    scale
        Of the input relative to the output's.
    """
    call = _pooling_of_bytes(
        emit,
        source,
        output,
        windows,
        algorithm="average",
        has_words=int(windows.num_taps <= _MOST_IN_WORDS),
        zero_point=zero_point_of(output.info),
        in_zero_point=zero_point_of(source.info),
        scale=scale,
        low=0,
        high=255,
    )
    emit(call, label, num_operations=output.info.num_elements * windows.num_taps)


def _pooling_of_bytes(
    emit: Emitter, value: Value, output: Value, windows: Windows, *, algorithm: str, **numbers: Any
) -> calls.PoolingU8:
    """The call with its walk over the output, and the record's other fields as given."""
    width, columns = _width(emit.choices, windows), _columns(windows)
    source = emit.source(value)
    if width < 16:
        source = readable_past(emit, source, value.info.size_bytes, value.name)
    tiling = Tiling(1, columns, width, windows.slots_by_tap(columns))
    padding = np.zeros(windows.shape[3], np.uint8)
    return calls.PoolingU8(
        width=width,
        columns=columns,
        algorithm=algorithm,
        tiles=tiles_of(emit, source, emit.target(output), windows, tiling, padding),
        kernel_h=windows.kernel[0],
        kernel_w=windows.kernel[1],
        **numbers,
    )


def _words(num_taps: int) -> int:
    """Return how sums of windows are kept, see `PoolingU8`."""
    return SMALL if num_taps <= MOST_SMALL else int(num_taps <= _MOST_IN_WORDS)


def _stored_bounds(layer: Layer) -> tuple[int, int]:
    """Lowest and highest stored integer of the output."""
    bounds = expect(layer.operation, Pooling2d).activation.bounds
    return stored_bounds(bounds, layer.output.info)


def _lanes(isa: Isa, channels: int) -> int:
    """Channels of a vector: a register full of them, or fewer."""
    return next(size for size in (16, 8, 4, 1) if size <= min(isa.lanes, channels))


_BLOCK_COST = 16.0
"""Cost of a block beside that of its channels, by the cost of a channel; an estimate."""


def _columns(windows: Windows) -> int:
    """Pixels of a tile."""
    return 1 if windows.out_shape[2] == 1 else 4


def _width(choices: Choices, windows: Windows) -> int:
    """Channels that are computed at once."""
    channels = windows.out_shape[3]
    most = min(choices.isa.vector_bytes, channels)
    costs = {size: size + _BLOCK_COST for size in (64, 32, 16) if size <= most}
    return best_width(choices, "pooling_u8", windows, costs) if costs else channels


LOWERINGS = {Pooling2d: LoweringRule(check, lower)}
