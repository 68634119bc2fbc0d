"""Lowers depthwise convolutions of float32 tensors."""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.windows import Tiling, Windows, best_width, tiles_of
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.depthwise import pack_f32
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.fusion import Fusion, float_bounds

_MOST_TAPS = 25
"""Of a window that kernels are made for; larger ones are walked over tap by tap."""


def lower_f32(
    emit: Emitter, layer: Layer, source: Buffer, windows: Windows, kind: str = "f32"
) -> None:
    """Convolve each channel with its filter, in float32.

    Products are added to the bias in the window's order, with fused multiply-adds where the
    processor has them.

    Parameters
    ----------
    kind : {"f32", "bf16"}
        How the elements of `source` are kept.
    """
    channels = layer["weights"].info.known_shape[3]
    taps = elements_of(layer, "weights").reshape(-1, channels)
    bias = layer.constant("bias")
    bias = np.zeros(channels, np.float32) if bias is None else bias
    width = _width(emit.choices, windows)
    window, tiling = _tiling(emit.choices, windows, width)
    packed = pack_f32(taps, bias, width)
    fusion = fusion_of(emit, layer)
    low, high = float_bounds(fusion.bounds)
    target = emit.target(fusion.output)
    kinds = kind, emit.kind_of(fusion.output)
    padding: Array = np.zeros(windows.shape[3], np.uint16 if kind == "bf16" else np.float32)
    call = calls.DepthwiseF32(
        width,
        *window,
        rows=tiling.rows,
        columns=tiling.columns,
        is_single=int(windows.shape[3] == 1),
        input_kind=kinds[0],
        output_kind=kinds[1],
        tiles=tiles_of(emit, source, target, windows, tiling, padding, FORMAT_BYTES[kinds[1]]),
        weights=emit.packed(packed),
        num_taps=len(taps),
        block_bytes=packed.pitch,
        low=low,
        high=high,
    )
    emit(call, fusion.label(layer), num_operations=2 * layer.output.info.num_elements * len(taps))


def fusion_of(emit: Emitter, layer: Layer) -> Fusion:
    """Return a layer's fusion with those after it; if there are none, the layer itself."""
    bounds = layer.operation.activation.bounds  # type: ignore[attr-defined]
    return emit.arrangement.fusions.get(layer) or Fusion(layer.outputs[0], bounds)


_BLOCK_COST = 4.0
"""Cost of a block beside that of its channels, by the cost of a channel; an estimate."""


def _width(choices: Choices, windows: Windows) -> int:
    """Channels that are computed at once: a register full of them, or fewer."""
    most = min(choices.isa.lanes, windows.out_shape[3])
    costs = {size: size + _BLOCK_COST for size in (16, 8, 4, 1) if size <= most}
    return best_width(choices, "depthwise_f32", windows, costs)


def _tiling(
    choices: Choices, windows: Windows, width: int
) -> tuple[tuple[int, int, int, int], Tiling]:
    """Window that the kernel is made for, as height, width and strides, and its tiles."""
    has_many = choices.isa.num_registers > 16
    kernel, stride = windows.kernel, windows.stride
    is_small = kernel[0] * kernel[1] <= _MOST_TAPS and max(stride) <= max(kernel)
    if windows.dilation != (1, 1) or not is_small:
        sizes = [(1, 7), (1, 4)] if has_many else [(1, 4)]
        columns = windows.best_tile(choices, "depthwise_f32", sizes)[1]
        return (0, 1, 1, 1), Tiling(1, columns, width, windows.slots_by_tap(columns))
    sizes = [(2, 7), (2, 4)] if has_many else [(2, 4)]
    rows, columns = windows.best_tile(choices, "depthwise_f32", sizes)
    height, reach = windows.extent(rows, columns)
    slots = [(y, x) for y in range(height) for x in range(reach)]
    return (*kernel, *stride), Tiling(rows, columns, width, slots)
