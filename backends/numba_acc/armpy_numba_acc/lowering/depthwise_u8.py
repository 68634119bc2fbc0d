"""Lowers depthwise convolutions of 8-bit tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armpy.graph import Layer
from armpy.ops.operation import OperandInfos
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.kernels import Kernel
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.emitter import Emitter
from armpy_numba_acc.lowering.memory import Buffer
from armpy_numba_acc.lowering.patches import constant_of, input_of
from armpy_numba_acc.lowering.quantized import QUANTIZED_TYPES, stored_bounds, zero_point_of
from armpy_numba_acc.lowering.weighted_u8 import output_factors
from armpy_numba_acc.lowering.windows import (
    Tiling,
    Windows,
    best_width,
    readable_behind,
    window_arguments,
)
from armpy_numba_acc.packing.depthwise import pack_u8

Int64Array = npt.NDArray[np.int64]

_WEIGHTS = (DataType.QASYMM_U8, DataType.QASYMM_S8, DataType.QSYMM_S8)
_WIDEST_WINDOW = 5
"""Columns of a window that kernels are made for; wider ones are walked over tap by tap."""

_LARGEST_STEP = float(1 << 30)
"""Scaled sums stay below it, as conversions to int32 have no defined result above 2**31."""


def check_u8(inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """8-bit input, weights and output, a bias of 32 bits, sums that fit 32 bits."""
    weights = inputs[1]
    assert weights is not None
    bias = inputs[2] if len(inputs) > 2 else None
    if weights.data_type not in _WEIGHTS:
        return f"weights of {weights.data_type.name} are not supported with 8-bit input"
    if bias is not None and bias.data_type is not DataType.SIGNED32:
        return f"a bias of {bias.data_type.name} is not supported with 8-bit input"
    if outputs[0].data_type not in QUANTIZED_TYPES:
        return f"output of {outputs[0].data_type.name} is not supported with 8-bit input"
    if any(info is not None and info.quantization is None for info in (*inputs[:2], *outputs)):
        return "a quantisation is missing"
    products = weights.known_shape[1] * weights.known_shape[2]
    if products * 255 * 255 >= 1 << 31:
        return f"sums of {products} products may not fit 32 bits"
    return ""


def lower_u8(emit: Emitter, layer: Layer, source: Buffer, windows: Windows) -> None:
    """Add the command.

    Notes
    -----
    Results are exactly those of TFLite's fixed-point arithmetic: see `ExactScaling`.
    """
    info, kind = input_of(layer, 0).info, input_of(layer, 1).info
    fusion = fusion_of(emit, layer)
    output = fusion.output.info
    stored = constant_of(layer, 1)
    assert stored is not None
    channels = stored.shape[3]
    values = stored[0].astype(np.int64) - kind.zero_point
    bias = constant_of(layer, 2)
    zero_point = zero_point_of(info)
    has_words = not emit.isa.dot or not -128 <= values.min() <= values.max() <= 127
    # The instruction of this name multiplies x - 128.
    offset = 128 if emit.isa.dot == "sdot" and not has_words else 0
    totals = values.sum(axis=(0, 1))
    full_bias = (offset - zero_point) * totals + (0 if bias is None else bias.astype(np.int64))
    plan = _plan(emit.isa, windows, channels, has_words)
    lines = plan.lines(values)
    factors = output_factors(layer, channels)
    factors = replace(factors, scales=_bounded(factors.scales, values, full_bias))
    width = plan.tiling.width
    wrapped = full_bias.astype(np.uint64).astype(np.uint32).view(np.int32)
    packed = pack_u8(lines.astype(np.int32), wrapped, factors, width, has_words)
    is_single = windows.shape[3] == 1
    if width < 16 and not is_single:
        source = readable_behind(emit, source, info.size_bytes, layer.name)
    target = emit.target(fusion.output)
    padding = np.full(windows.shape[3], zero_point, np.uint8)
    emit.command(
        Kernel("depthwise_u8", (width, *plan.parameters, int(has_words), int(is_single))),
        (
            *window_arguments(emit, source, target, windows, plan.tiling, padding),
            emit.constant(packed),
            plan.num_groups,
            packed[0].nbytes,
            zero_point_of(output),
            *stored_bounds(fusion.bounds, output),
        ),
        " + ".join(each.name for each in (layer, *fusion.absorbed)),
        num_operations=2 * output.num_elements * stored.shape[1] * stored.shape[2],
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a layer is computed, with elements of the input in groups of four.

    Parameters
    ----------
    tiling : Tiling
    parameters : tuple of int
        Window's width, its stride, rows and columns of a tile, as the kernel is made for.
    taps : ndarray, int64, shape (lines, 4, 2)
        Rows and columns of the window's elements that each line holds; -1 where none is.
    num_groups : int
    """

    tiling: Tiling
    parameters: tuple[int, int, int, int]
    taps: Int64Array
    num_groups: int

    def lines(self, values: Int64Array) -> Int64Array:
        """Weights of each line, shape (lines, 4, channels)."""
        rows, columns = self.taps[..., 0], self.taps[..., 1]
        found: Int64Array = np.where((rows >= 0)[..., None], values[rows, columns], 0)
        return found


def _plan(isa: Isa, windows: Windows, channels: int, has_words: bool) -> _Plan:
    """Whole columns of the window at once; tap by tap where it is wide or has holes."""
    width = width_of_u8(isa, channels)
    (kernel_h, kernel_w), (stride_h, stride_w) = windows.kernel, windows.stride
    if windows.dilation[1] != 1 or kernel_w > _WIDEST_WINDOW:
        return _plan_by_tap(isa, windows, width, has_words)
    sizes = _tiles(isa, has_words)
    if windows.dilation[0] != 1 or stride_h != 1 or kernel_h > 3:
        sizes = [(rows, columns) for rows, columns in sizes if rows == 1]
    rows, columns = windows.best_tile(sizes)
    reach = (columns - 1) * stride_w + kernel_w
    last = (rows - 1) * stride_h + kernel_h - 1
    num_groups = last // 4 + 1
    slots = [
        (min(4 * group + row, last) * windows.dilation[0], x)
        for group in range(num_groups)
        for x in range(reach)
        for row in range(4)
    ]
    taps = [
        (y, x) if 0 <= y < kernel_h else (-1, -1)
        for group in range(num_groups)
        for i in range(rows)
        for x in range(kernel_w)
        for y in range(4 * group - i * stride_h, 4 * group - i * stride_h + 4)
    ]
    return _Plan(
        Tiling(rows, columns, width, slots),
        (kernel_w, stride_w, rows, columns),
        np.array(taps).reshape(-1, 4, 2),
        num_groups,
    )


def _plan_by_tap(isa: Isa, windows: Windows, width: int, has_words: bool) -> _Plan:
    """Four taps at a time, in the window's order."""
    sizes = [(rows, columns) for rows, columns in _tiles(isa, has_words) if rows == 1]
    _, columns = windows.best_tile(sizes)
    places = windows.taps()
    count = len(places)
    num_groups = -(-count // 4)
    slots = [
        (places[tap][0], places[tap][1] + j * windows.stride[1])
        for group in range(num_groups)
        for j in range(columns)
        for tap in (min(4 * group + number, count - 1) for number in range(4))
    ]
    kernel_w = windows.kernel[1]
    taps = [divmod(tap, kernel_w) if tap < count else (-1, -1) for tap in range(4 * num_groups)]
    return _Plan(
        Tiling(1, columns, width, slots),
        (1, 1, 1, columns),
        np.array(taps).reshape(-1, 4, 2),
        num_groups,
    )


def width_of_u8(isa: Isa, channels: int) -> int:
    """Channels that are computed at once.

    Notes
    -----
    As measured, 16 take as long as 32, and 64 not twice as long.
    """
    costs = {64: 65.0, 32: 37.0, 16: 36.0}
    fitting = {n: cost for n, cost in costs.items() if n <= min(isa.vector_bytes, channels)}
    return best_width(channels, fitting) if fitting else channels


def _tiles(isa: Isa, has_words: bool) -> list[tuple[int, int]]:
    """Sizes of tiles, fastest first where they fit equally well."""
    if isa.num_registers == 16:
        return [(2, 2), (1, 4)] if isa.vector_bytes > 16 else [(1, 4)]
    return [(2, 2) if has_words else (2, 4), (1, 7), (1, 4)]


def _bounded(
    scales: npt.NDArray[np.float32], values: Int64Array, bias: Int64Array
) -> npt.NDArray[np.float32]:
    """Scales so small that no sum times its scale is too large.

    Notes
    -----
    A scale that is cut off here takes every sum but 0 far outside of a byte's range still.
    """
    most = 255.0 * np.abs(values).sum(axis=(0, 1)) + np.abs(bias)
    largest: npt.NDArray[np.float64] = _LARGEST_STEP / np.maximum(most, 1)
    return np.minimum(scales, largest.astype(np.float32))
