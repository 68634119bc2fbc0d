"""Lowers convolutions and matrix products of 16-bit tensors with 8-bit weights.

Notes
-----
Results are exactly those of TFLite's arithmetic, and CpuRef's: sums are exact, and rescaled in 64
bits, or for fully connected layers in float64.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.graph import Layer
from armpy.ops import FullyConnected
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.patches import Patches, patches_of
from armpy_numba_acc.lowering.products import Weights, emit_product, with_room
from armpy_numba_acc.lowering.tiles import I16, tile_of
from armpy_numba_acc.lowering.weighted_checks import real_factors
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.packing.quantized import stored_bounds
from armpy_numba_acc.packing.weights_i16 import Pieces, SumRescaling, pack_pairs
from armpy_numba_acc.program.emitter import Emitter


@dataclass(frozen=True, slots=True)
class Finish:
    """Finish of sums: rescaling, bounds and type of the output."""

    rescaling: SumRescaling
    bounds: tuple[int, int]  # of elements, counted from the zero point
    zero_point: int = 0
    kind: str = "i16"  # how elements are kept
    is_uniform: bool = False  # whether all channels are rescaled alike, so that panels share a head

    def heads(self, width: int) -> npt.NDArray[np.int64]:
        """Return how each panel's sums are rescaled; one for all of them if they are alike."""
        if self.is_uniform:
            return np.repeat(self.rescaling.lines[np.newaxis, :, :1], width, axis=2)
        return self.rescaling.heads(width)

    @classmethod
    def of(cls, layer: Layer, chosen: slice) -> Finish:
        """That of some of a layer's channels."""
        output, operation = layer.output.info, layer.operation
        channels = output.known_shape[-1]
        bias_data = layer.constant("bias")
        bias = np.zeros(channels, np.int64) if bias_data is None else bias_data.astype(np.int64)
        real = real_factors(layer["input"].info, layer["weights"].info, output)
        real, bias = np.broadcast_to(real, channels)[chosen].copy(), bias[chosen]
        low, high = stored_bounds(operation.activation.bounds, output)  # type: ignore[attr-defined]
        if isinstance(operation, FullyConnected):
            rescaling = SumRescaling.in_floats(real, bias)
        elif bias_data is None or bias_data.dtype == np.int64:
            rescaling = SumRescaling.once(real, bias)
        else:
            rescaling = SumRescaling.twice(real, bias, low < 0)
        return cls(rescaling, (low, high))


def lower_i16(emit: Emitter, layer: Layer) -> None:
    """Add the command of a convolution or a matrix product."""
    weights, patches = elements_of(layer, "weights"), patches_of(emit, layer, 2)
    columns = len(weights)
    values = weights.reshape(columns, len(patches.taps), patches.depth)
    patches = with_room(emit, layer, patches, I16)
    emit_filters_i16(emit, layer, patches, values, emit.target(layer.output), columns)


def emit_filters_i16(
    emit: Emitter,
    layer: Layer,
    patches: Patches,
    weights: Array,
    target: Buffer | Address,
    pitch: int,
    chosen: slice = slice(None),
    part: Part | None = None,
) -> None:
    """`filters.emit_filters` of 16 bits; its parameters are described there, but for these.

    Parameters
    ----------
    patches
        See `with_room`.
    weights : ndarray, int8, shape (columns, taps, depth)
    """
    pieces = Pieces.of(weights)
    offsets = pieces.offsets(patches.taps, 2)
    patches = replace(patches, taps=tuple(offsets.tolist()), depth=pieces.values.shape[2])
    tile = tile_of(emit.choices, I16, patches, len(weights))
    panels = pack_pairs(emit.isa, pieces.values, tile.width(emit.isa))
    panels = panels.after(Part(weights, pieces.cut)).of(part)
    packed = Weights(I16, emit.packed(panels), panels.pitch, len(weights), tile)
    finish = Finish.of(layer, chosen)
    emit_i16(emit, patches, packed, finish, pieces.at_once, target, pitch, layer.name)


def emit_i16(
    emit: Emitter,
    patches: Patches,
    weights: Weights,
    finish: Finish,
    taps_at_once: int,
    target: Buffer | Address,
    pitch: int,
    label: str,
    *,
    is_depthwise: bool = False,
    at_once: int = 0,
) -> None:
    """Add the command that multiplies patches of 16-bit elements with weights.

    Parameters
    ----------
    taps_at_once
        Taps whose products fit 32 bits; all of them, or some.
    pitch
        Elements from one pixel of the target to the next.
    is_depthwise
        Whether channels stay apart.
    at_once
        As for `emit_product`.
    """
    heads, size = finish.heads(weights.tile.width(emit.isa)), FORMAT_BYTES[finish.kind]
    low, high = finish.bounds
    record = partial(
        calls.ConvolutionI16,
        heads=emit.constant(heads),
        head_bytes=heads[0].nbytes if len(heads) > 1 else 0,
        taps_at_once=taps_at_once,
        zero_point=finish.zero_point,
        low=low,
        high=high,
        has_pieces=int(taps_at_once < len(patches.taps)),
        is_depthwise=int(is_depthwise),
        output_format=finish.kind,
        rounding=finish.rescaling.rounding,
    )
    emit_product(emit, patches, weights, record, target, pitch * size, label, at_once=at_once)
