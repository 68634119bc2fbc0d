"""Lowers depthwise convolutions of 8-bit tensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.patches import patches_of_images
from armpy_numba_acc.lowering.weighted_scaling import LARGEST_STEP, largest_sums, output_factors
from armpy_numba_acc.lowering.windows import (
    Tiling,
    Windows,
    best_width,
    readable_past,
    tiles_of,
)
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.depthwise import pack_u8
from armpy_numba_acc.packing.factors import Factors, Rounding
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.packing.quantized import stored_bounds, zero_point_of
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Emitter

Int64Array = npt.NDArray[np.int64]

_WIDEST_WINDOW = 5
"""Columns of a window that kernels are made for; wider ones are walked over tap by tap."""


def lower_u8(emit: Emitter, layer: Layer, source: Buffer, windows: Windows) -> None:
    """Convolve each channel with its filter, in 8 bits.

    Results are exactly those of TFLite's fixed-point arithmetic: see `ExactScaling`.
    """
    info, weights = layer["input"].info, elements_of(layer, "weights")
    fusion = fusion_of(emit, layer)
    output = fusion.output.info
    low, high = stored_bounds(fusion.bounds, output)
    values = weights[0].astype(np.int64) - layer["weights"].info.zero_point
    has_words = not emit.isa.dot or not -128 <= values.min() <= values.max() <= 127
    factors, rounding = _factors(layer, weights, output, low)
    bias = _bias(layer, values, has_words or not emit.isa.has_signed_dots)
    channels = np.arange(weights.shape[3])
    is_narrow = _is_narrow(emit.isa, layer, windows)
    if is_narrow:
        source, windows = _rows_as_pixels(emit, layer, windows)
    plan = _plan(emit.choices, windows, has_words)
    width = plan.tiling.width
    if is_narrow:
        channels = np.tile(channels, width // channels.size)
    lines = plan.lines(values)[..., channels].astype(np.int32)
    packed = pack_u8(lines, bias[channels], factors.chosen(channels), width, has_words)
    constant = Part(weights, lambda values: plan.lines(values[0])[..., channels])
    packed = packed.after(constant, layer["weights"].info.zero_point)
    if width < 16:
        source = readable_past(emit, source, info.size_bytes, layer.name)
    target = emit.target(fusion.output)
    padding = np.full(windows.out_shape[3], zero_point_of(info), np.uint8)
    call = calls.DepthwiseU8(
        width,
        *plan.parameters,
        has_words=int(has_words),
        has_negatives=int(rounding.has_negatives),
        is_imprecise=int(rounding.is_imprecise),
        tiles=tiles_of(emit, source, target, windows, plan.tiling, padding),
        weights=emit.packed(packed),
        num_groups=plan.num_groups,
        block_bytes=packed.pitch if len(packed.array) > 1 else 0,
        zero_point=zero_point_of(output),
        low=low,
        high=high,
    )
    num_taps = weights.shape[1] * weights.shape[2]
    emit(call, fusion.label(layer), num_operations=2 * output.num_elements * num_taps)


def _is_narrow(isa: Isa, layer: Layer, windows: Windows) -> bool:
    """Return whether pixels are too narrow for a register, so that whole rows are loaded."""
    channels = windows.shape[3]
    is_even = channels == layer["input"].info.known_shape[3] and 64 % channels == 0
    is_dense = windows.stride[1] == windows.dilation[1] == 1 and windows.kernel[1] <= _WIDEST_WINDOW
    fits = 2 * channels <= min(isa.vector_bytes, 32)
    return is_even and is_dense and fits and windows.out_shape[2] * channels >= isa.vector_bytes


def _rows_as_pixels(emit: Emitter, layer: Layer, windows: Windows) -> tuple[Buffer, Windows]:
    """The input with its borders, and the windows if every row of the output is one pixel.

    Neighbours in a row are as many bytes apart in input and output, and weights begin anew in
    every register: a row's elements can be computed like channels of one pixel.
    """
    patches = patches_of_images(emit, layer, 1, zero_point_of(layer["input"].info))
    images, height, width, channels = windows.out_shape
    row = patches.row_pitch // windows.stride[0]
    shape = (images, patches.image_pitch // row, row // channels, channels)
    out_shape = (images, height, 1, width * channels)
    return patches.source, Windows(
        shape, out_shape, windows.kernel, (windows.stride[0], 1), windows.dilation, 0, 0
    )


def _factors(
    layer: Layer, weights: Array, output: TensorInfo, low: int
) -> tuple[Factors, Rounding]:
    """Return the factors of sums, and their rounding, with a lower bound."""
    channels, zero_point = weights.shape[3], zero_point_of(output)
    largest = largest_sums(layer, weights.reshape(-1, channels), slice(None))
    factors = output_factors(layer, channels)
    factors, rounding = factors.rounded(zero_point, low < zero_point, largest)
    # A scale that is cut off takes every sum but 0 far outside of a byte's range still.
    scales = np.minimum(factors.scales, (LARGEST_STEP / np.maximum(largest, 1)).astype(np.float32))
    return replace(factors, scales=scales), rounding


def _bias(layer: Layer, values: Int64Array, is_unsigned: bool) -> npt.NDArray[np.int32]:
    """Return the start of sums: the bias, less the products of the input's zero point.

    Parameters
    ----------
    values : ndarray, int64, shape (height, width, channels)
        Weights less their zero point.
    is_unsigned
        Whether elements are multiplied as they are stored, or else less 128.
    """
    offset = (0 if is_unsigned else 128) - zero_point_of(layer["input"].info)
    bias_data = layer.constant("bias")
    bias = offset * values.sum(axis=(0, 1)) + (
        0 if bias_data is None else bias_data.astype(np.int64)
    )
    wrapped: npt.NDArray[np.int32] = bias.astype(np.uint64).astype(np.uint32).view(np.int32)
    return wrapped


@dataclass(frozen=True, slots=True)
class _Plan:
    """Plan of computing a layer, with elements of the input in groups of four."""

    tiling: Tiling
    # Window's width, its stride, rows and columns of a tile, as the kernel is made for.
    parameters: tuple[int, int, int, int]
    # Rows and columns of the window's elements that each line holds; -1 where none is.
    taps: Int64Array
    num_groups: int

    def lines(self, values: Int64Array) -> Int64Array:
        """Weights of each line, shape (lines, 4, channels)."""
        rows, columns = self.taps[..., 0], self.taps[..., 1]
        by_line: Int64Array = np.where((rows >= 0)[..., None], values[rows, columns], 0)
        return by_line


def _plan(choices: Choices, windows: Windows, has_words: bool) -> _Plan:
    """Whole columns of the window at once; tap by tap where it is wide or has holes."""
    width = _width(choices, windows)
    (kernel_h, kernel_w), (stride_h, stride_w) = windows.kernel, windows.stride
    if windows.dilation[1] != 1 or max(kernel_w, stride_w) > _WIDEST_WINDOW:
        return _plan_by_tap(choices, windows, width, has_words)
    sizes = _tiles(choices.isa, has_words) if windows.out_shape[2] > 1 else [(2, 1), (1, 1)]
    if windows.dilation[0] != 1 or stride_h != 1 or kernel_h > 3:
        sizes = [(rows, columns) for rows, columns in sizes if rows == 1]
    rows, columns = windows.best_tile(choices, "depthwise_u8", sizes)
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


def _plan_by_tap(choices: Choices, windows: Windows, width: int, has_words: bool) -> _Plan:
    """Four taps at a time, in the window's order."""
    sizes = [(rows, columns) for rows, columns in _tiles(choices.isa, has_words) if rows == 1]
    _, columns = windows.best_tile(choices, "depthwise_u8", sizes)
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


_BLOCK_COSTS = {64: 65.0, 32: 37.0, 16: 36.0}
"""Costs of blocks by channels: as measured, 16 take as long as 32, and 64 not twice as long."""


def _width(choices: Choices, windows: Windows) -> int:
    """Channels that are computed at once."""
    channels = windows.out_shape[3]
    most = min(choices.isa.vector_bytes, channels)
    fitting = {n: cost for n, cost in _BLOCK_COSTS.items() if n <= most}
    return best_width(choices, "depthwise_u8", windows, fitting) if fitting else channels


def _tiles(isa: Isa, has_words: bool) -> list[tuple[int, int]]:
    """Sizes of tiles, fastest first where they fit equally well."""
    if isa.num_registers == 16:
        return [(2, 2), (1, 4)] if isa.vector_bytes > 16 else [(1, 4)]
    return [(2, 2) if has_words else (2, 4), (1, 7), (1, 4)]
