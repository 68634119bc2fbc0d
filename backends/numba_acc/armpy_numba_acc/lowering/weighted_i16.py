"""Lowers convolutions and matrix products of 16-bit tensors with 8-bit weights.

Notes
-----
Results are exactly those of TFLite's arithmetic, and CpuRef's: sums are exact, and rescaled in 64
bits, or for fully connected layers in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from armpy.graph import Layer
from armpy.ops import Convolution2d, FullyConnected
from armpy.ops.operation import Array, OperandInfos
from armpy.records import dataclass
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.patches import (
    Patches,
    constant_of,
    input_of,
    patches_of_images,
    patches_of_vectors,
)
from armpy_numba_acc.lowering.tiles import Tile, panels_at_once, tile_of_i16
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.memory import Address, Buffer, Space
from armpy_numba_acc.packing.quantized import scale_of, stored_bounds
from armpy_numba_acc.packing.weights_i16 import Pieces, Rescaling, pack_pairs
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.estimate import num_pieces, work_of

WIDE = DataType.QSYMM_S16

_CACHED_BYTES = 256 << 10
"""Weights that are used for all pixels before the next ones."""

LARGEST_FACTOR = 2.0**14
"""Of sums; larger ones leave no bits to round."""

_WEIGHTS = (DataType.QASYMM_S8, DataType.QSYMM_S8)


def check_i16(inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """16-bit input and output without zero points, constant weights of 8 bits without one."""
    source, weights, output = inputs[0], inputs[1], outputs[0]
    bias = inputs[2] if len(inputs) > 2 else None
    assert source is not None
    assert weights is not None
    if weights.data_type not in _WEIGHTS or output.data_type is not WIDE:
        types = f"{weights.data_type.name} weights and {output.data_type.name} output"
        return f"{types} are not supported with {WIDE.name} input"
    if bias is not None and bias.data_type not in (DataType.SIGNED64, DataType.SIGNED32):
        return f"a bias of {bias.data_type.name} is not supported with {WIDE.name} input"
    if any(info is not None and info.quantization is None for info in (source, weights, output)):
        return "a quantisation is missing"
    if source.zero_point or weights.zero_point or output.zero_point:
        return f"zero points are not supported with {WIDE.name} input"
    if not (_real_factors(source, weights, output) < LARGEST_FACTOR).all():
        return f"scales that make sums {LARGEST_FACTOR:.0f} times as large are not supported"
    return ""


def _real_factors(
    source: TensorInfo, weights: TensorInfo, output: TensorInfo
) -> npt.NDArray[np.float64]:
    """What sums are multiplied by, for each channel or for all of them."""
    assert weights.quantization is not None
    scales = weights.quantization.scales[: None if weights.has_per_axis_quantization else 1]
    product = np.float64(scale_of(source)) * np.array(scales, np.float32).astype(np.float64)
    result: npt.NDArray[np.float64] = product / np.float64(scale_of(output))
    return result


@dataclass(frozen=True, slots=True)
class Finish:
    """What becomes of sums.

    Parameters
    ----------
    rescaling : Rescaling
    bounds : (int, int)
        Of elements, counted from the zero point.
    zero_point : int
    kind : {"i16", "u8"}
        How elements are kept.
    """

    rescaling: Rescaling
    bounds: tuple[int, int]
    zero_point: int = 0
    kind: str = "i16"

    @classmethod
    def of(cls, layer: Layer, chosen: slice) -> Finish:
        """That of some of a layer's channels."""
        output, operation = layer.outputs[0].info, layer.operation
        channels = output.known_shape[-1]
        given = constant_of(layer, 2)
        bias = np.zeros(channels, np.int64) if given is None else given.astype(np.int64)
        real = _real_factors(input_of(layer, 0).info, input_of(layer, 1).info, output)
        real, bias = np.broadcast_to(real, channels)[chosen].copy(), bias[chosen]
        low, high = stored_bounds(operation.activation.bounds, output)  # type: ignore[attr-defined]
        if isinstance(operation, FullyConnected):
            rescaling = Rescaling.in_floats(real, bias)
        elif given is None or given.dtype == np.int64:
            rescaling = Rescaling.once(real, bias)
        else:
            rescaling = Rescaling.twice(real, bias, low < 0)
        return cls(rescaling, (low, high))


@dataclass(frozen=True, slots=True)
class PackedI16:
    """Weights in memory as the kernel wants them.

    Parameters
    ----------
    panels : Buffer or Address
        As `armpy_numba_acc.packing.weights_i16.pack_pairs` arranges them.
    heads : Buffer
        How sums are rescaled, panel by panel.
    head_bytes : int
        From one panel's to the next one's; 0 if they share it.
    columns : int
    taps_at_once : int
        Taps whose products fit 32 bits; all of them, or some.
    tile : Tile
        The panels are as wide as its vectors.
    """

    panels: Buffer | Address
    heads: Buffer
    head_bytes: int
    columns: int
    taps_at_once: int
    tile: Tile


def lower_i16(emit: Emitter, layer: Layer) -> None:
    """Add the command of a convolution or a matrix product."""
    weights, output = constant_of(layer, 1), layer.outputs[0]
    assert weights is not None
    if isinstance(layer.operation, Convolution2d):
        patches = patches_of_images(emit, layer, 2, 0)
    else:
        patches = patches_of_vectors(emit, layer, 2)
    columns = len(weights)
    values = weights.reshape(columns, len(patches.taps), patches.depth)
    patches = with_room(emit, layer, patches)
    emit_weighted_i16(emit, layer, patches, values, emit.target(output), columns)


def with_room(emit: Emitter, layer: Layer, patches: Patches) -> Patches:
    """The same with a copy of the caller's tensor if elements behind it would be read."""
    if patches.source.space is not Space.TENSORS or patches.depth % 2 == 0:
        return patches
    size = input_of(layer, 0).info.size_bytes
    copy = emit.scratch(size)
    emit.command(Kernel("copy"), (patches.source, copy, size), f"copy {layer.name}")
    return replace(patches, source=copy)


def tile_of_patches(emit: Emitter, patches: Patches, columns: int) -> Tile:
    """The tile that computes the product of patches with so many columns fastest."""
    num_pixels, _, line, *_ = patches.layout
    steps = len(patches.taps) * -(-patches.depth // 2)
    return tile_of_i16(emit.choices, num_pixels // line, line, columns, steps)


def emit_weighted_i16(
    emit: Emitter,
    layer: Layer,
    patches: Patches,
    weights: Array,
    target: Buffer | Address,
    pitch: int,
    chosen: slice = slice(None),
) -> None:
    """Add a command that multiplies patches of a layer's input with some of its filters.

    Parameters
    ----------
    patches : Patches
        See `with_room`.
    weights : ndarray, int8, shape (columns, taps, depth)
    target : Buffer or Address
        Where the first pixel's columns go.
    pitch : int
        Elements from there to the next pixel's.
    chosen : slice
        Which of the layer's filters the weights are.
    """
    pieces = Pieces.of(weights)
    offsets = pieces.offsets(patches.taps, 2)
    patches = replace(patches, taps=tuple(offsets.tolist()), depth=pieces.values.shape[2])
    tile = tile_of_patches(emit, patches, len(weights))
    width = tile.vectors * emit.isa.lanes
    finish = Finish.of(layer, chosen)
    heads = finish.rescaling.heads(width)
    packed = PackedI16(
        emit.constant(pack_pairs(pieces.values, width)),
        emit.constant(heads),
        heads[0].nbytes,
        len(weights),
        pieces.at_once,
        tile,
    )
    emit_product_i16(emit, patches, packed, finish, target, pitch, layer.name)


def emit_product_i16(
    emit: Emitter,
    patches: Patches,
    weights: PackedI16,
    finish: Finish,
    target: Buffer | Address,
    pitch: int,
    label: str,
) -> None:
    """Add the command that multiplies patches of 16-bit elements with weights."""
    width = weights.tile.vectors * emit.isa.lanes
    steps, num_taps = -(-patches.depth // 2), len(patches.taps)
    panel_bytes = num_taps * steps * width * 4
    shape = (patches.num_pixels, -(-weights.columns // width), num_taps * steps)
    emit_tiles_i16(
        emit,
        patches,
        weights,
        finish,
        (target, pitch),
        label,
        steps=steps,
        panel_bytes=panel_bytes,
        at_once=panels_at_once(emit.choices, "convolution_i16", shape, panel_bytes, _CACHED_BYTES),
        num_operations=2 * patches.num_pixels * weights.columns * num_taps * patches.depth,
    )


def emit_tiles_i16(
    emit: Emitter,
    patches: Patches,
    weights: PackedI16,
    finish: Finish,
    output: tuple[Buffer | Address, int],
    label: str,
    *,
    steps: int,
    panel_bytes: int,
    at_once: int,
    num_operations: int,
    input_step: int = 0,
) -> None:
    """Add the command of the kernel, of products or of channels that stay apart.

    Parameters
    ----------
    output : (Buffer or Address, int)
        Where the first pixel's columns go, and elements from there to the next pixel's.
    steps, panel_bytes, at_once, input_step : int
        As for `armpy_numba_acc.kernels.convolution_i16`; channels stay apart if the last one is
        not 0.
    """
    tile, width, num_taps = weights.tile, weights.tile.vectors * emit.isa.lanes, len(patches.taps)
    rescaling, size = finish.rescaling, 2 if finish.kind == "i16" else 1
    flags = (tile.has_table, weights.taps_at_once < num_taps, input_step != 0)
    shape = (tile.rows, tile.vectors, *map(int, flags))
    kernel = Kernel("convolution_i16", (*shape, finish.kind, rescaling.rounding))
    target, pitch = output
    emit.command(
        kernel,
        (
            patches.source,
            target,
            weights.panels,
            emit.constant(np.array(patches.taps, np.int64)),
            num_taps,
            steps,
            weights.columns,
            *patches.layout,
            pitch * size,
            panel_bytes,
            at_once,
            tile.rows,
            width,
            int(tile.has_table),
            weights.heads,
            weights.head_bytes,
            weights.taps_at_once,
            input_step,
            size,
            finish.zero_point,
            *finish.bounds,
        ),
        label,
        num_operations=num_operations,
        num_pieces=num_pieces(work_of(kernel.symbol), emit.isa, num_operations),
    )
