"""Lowers TransposeConvolution2d and TransposeConvolution3d."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.graph import Layer
from armpy.ops import TransposeConvolution2d, TransposeConvolution3d
from armpy.ops.operands import Operands
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.ops.shapes import resolve_padding
from armpy.tensor import TensorInfo
from armpy.types import DataLayout
from armpy_numba_acc.lowering.dynamic_range import with_real_operands
from armpy_numba_acc.lowering.filters import (
    emit_filters,
    fill_byte_of,
    readable,
    source_of_products,
)
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.padding import padded_volumes
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.stand_ins import stand_in_of
from armpy_numba_acc.lowering.weighted_checks import check_types, is_dynamic
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.limits import MOST_PARTS, MOST_TAPS, GivenBackError
from armpy_numba_acc.program.registry import LoweringRule


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, 8 or 16 bits, or float32 with int8 weights; constant weights, NHWC."""
    assert isinstance(operation, TransposeConvolution2d | TransposeConvolution3d)
    operands = Operands(operation, inputs)
    for name in ("weights", "bias"):
        if (info := operands.get(name)) is not None and not info.is_constant:
            return f"the {name} are not constant"
    if operation.data_layout not in (DataLayout.NHWC, DataLayout.NDHWC):
        return f"the layout {operation.data_layout.name} is not supported"
    source, weights = operands["input"].known_shape, operands["weights"].known_shape
    groups, sizes = source[-1] // weights[-1], outputs[0].known_shape[1:-1]
    if groups * prod(map(min, operation.stride, sizes)) > MOST_PARTS:
        return f"more than {MOST_PARTS} parts, by strides and groups, are not supported"
    if prod(weights[1:-1]) > MOST_TAPS:
        return f"windows of more than {MOST_TAPS} elements are not supported"
    return check_types(operands, outputs)


@dataclass(frozen=True, slots=True)
class _Phase:
    """Every so many elements along an axis of the output: those that meet the same taps."""

    first: int  # the first one, and how many there are
    count: int
    # Position in the kernel, and which input element the first one meets there; may be negative, or
    # beyond the last one.
    taps: list[tuple[int, int]]


def _phases(out_size: int, kernel: int, stride: int, dilation: int, cut: int) -> list[_Phase]:
    """The phases along an axis, of which `cut` elements in front are not there."""
    return [
        _Phase(
            first,
            -(-(out_size - first) // stride),
            [
                (tap, (first + cut - tap * dilation) // stride)
                for tap in range(kernel)
                if (first + cut - tap * dilation) % stride == 0
            ],
        )
        for first in range(min(stride, out_size))
    ]


def lower(emit: Emitter, layer: Layer) -> None:
    """One convolution per phase, with those weights that it meets.

    With strides, the output's element ``y`` meets the kernel at every `stride` only: elements
    that are a stride apart are a convolution with a smaller kernel. Images are the slices of a
    volume, each of which meets itself.
    """
    operation, output = layer.operation, layer.output
    assert isinstance(operation, TransposeConvolution2d | TransposeConvolution3d)
    if is_dynamic(layer.input_infos):
        layer = with_real_operands(emit, layer)
    if not np.isfinite(elements_of(layer, "weights")).all():
        # The zeros around the input are multiplied, too, and an infinity makes NaN of them.
        raise GivenBackError(
            "weights that are NaN or infinite are not supported",
            layer,
            expected="finite ones",
            actual="infinities or NaN",
        )
    weights, sizes = elements_of(layer, "weights"), output.info.known_shape[1:-1]
    is_volume = isinstance(operation, TransposeConvolution3d)
    dilation = operation.dilation if isinstance(operation, TransposeConvolution3d) else (1, 1)
    axes = []
    for axis, (size, step, by) in enumerate(zip(sizes, operation.stride, dilation, strict=True)):
        kernel = weights.shape[1 + axis]
        cut = resolve_padding(operation.padding, size, kernel, step, by, axis)[0]
        axes.append(_phases(size, kernel, step, by, cut))
    stride = operation.stride
    if not is_volume:
        images = output.info.known_shape[0]
        sizes, stride, weights = (images, *sizes), (1, *stride), weights[:, np.newaxis]
        axes.insert(0, [_Phase(0, images, [(0, 0)])])
    padded = _padded(emit, layer, axes)
    nothing = emit.constant(np.full(padded.pixel, fill_byte_of(layer), np.uint8))
    columns, target = len(weights), emit.target(output)
    whole = stand_in(output.info).reshape(*sizes, columns)
    for phases in product(*axes):
        patches, chosen = padded.patches(phases, weights, nothing)
        met = partial(_met, phases)
        if max(stride) == 1:
            _emit_groups(emit, layer, patches, chosen, target, padded.element, weights, met)
            continue
        part = whole[tuple(slice(p.first, None, s) for p, s in zip(phases, stride, strict=True))]
        scratch = emit.scratch(part.nbytes)
        _emit_groups(emit, layer, patches, chosen, scratch, padded.element, weights, met)
        elements = stand_in_of(part.shape, part.itemsize)
        emit_move(emit, Side(scratch, elements, elements), Side(target, whole, part), layer.name)


def _emit_groups(
    emit: Emitter,
    layer: Layer,
    patches: Patches,
    weights: Array,
    target: Buffer,
    element: int,
    constant: Array,
    met: Callable[[Array], Array],
) -> None:
    """Add a product for each part of the channels, with the filters (o, taps, i) that see it."""
    columns, _, depth = weights.shape
    size = columns // (layer["input"].info.known_shape[-1] // depth)
    patches = readable(emit, layer, replace(patches, depth=depth))
    source, out_element = patches.source, layer.output.info.data_type.size_bytes
    for number, first in enumerate(range(0, columns, size)):
        start, chosen = number * depth * element, slice(first, first + size)
        seen = replace(patches, source=source.part(start, source.size_bytes - start))
        place = target.at(first * out_element)
        part = Part(constant, partial(_chosen, met, chosen), layer)
        emit_filters(emit, layer, seen, weights[chosen], place, columns, chosen, part)


def _met(phases: Sequence[_Phase], weights: Array) -> Array:
    """Those of some weights (o, z, y, x, i) that phases meet, as (o, taps, i)."""
    taps = product(*([tap for tap, _ in phase.taps] for phase in phases))
    met = [weights[:, z, y, x] for z, y, x in taps]
    return np.stack(met, axis=1) if met else np.zeros_like(weights[:, :1, 0, 0])


def _chosen(met: Callable[[Array], Array], filters: slice, weights: Array) -> Array:
    return met(weights)[filters]


@dataclass(frozen=True, slots=True)
class _Padded:
    """The input with what lies around it."""

    whole: Patches  # of all pixels; has no taps yet
    pitches: tuple[int, ...]  # bytes of a slice, a row and a pixel
    before: tuple[int, ...]  # slices in front, rows above, and columns to the left
    element: int  # bytes
    no_weight: int  # the stored weight that stands for 0

    @property
    def pixel(self) -> int:
        return self.pitches[-1]

    def patches(
        self, phases: Sequence[_Phase], weights: Array, nothing: Buffer
    ) -> tuple[Patches, Array]:
        """Return the operands of phases, and their weights (o, taps, i).

        Parameters
        ----------
        nothing
            A pixel of zeros.
        """
        meetings = list(product(*(phase.taps for phase in phases)))
        slices, rows, columns = (phase.count for phase in phases)
        sized = replace(self.whole, images=slices, height=rows, width=columns)
        if not meetings:  # the output is the bias, whatever the input is
            sized = replace(sized, source=nothing, image_pitch=0, row_pitch=0, pixel_pitch=0)
            no_weights = np.full_like(weights[:, :1, 0, 0], self.no_weight)
            return replace(sized, taps=(0,)), no_weights
        offsets = tuple(
            sum(
                (at + before) * pitch
                for (_, at), before, pitch in zip(places, self.before, self.pitches, strict=True)
            )
            for places in meetings
        )
        return replace(sized, taps=offsets), _met(phases, weights)


def _padded(emit: Emitter, layer: Layer, axes: Sequence[Sequence[_Phase]]) -> _Padded:
    """The input with as many elements around it as phases meet."""
    shape = layer["input"].info.known_shape
    sizes, channels = shape[-1 - len(axes) : -1], shape[-1]
    buffer, element = source_of_products(emit, layer)
    pads = []
    for size, phases in zip(sizes, axes, strict=True):
        firsts = [at for phase in phases for _, at in phase.taps]
        lasts = [at + phase.count - 1 for phase in phases for _, at in phase.taps]
        lasts += [phase.count - 1 for phase in phases]
        pads.append((max(0, -min(firsts, default=0)), max(0, max(lasts) - size + 1)))
    pixel, fill = channels * element, fill_byte_of(layer)
    buffer, (_, h, w) = padded_volumes(emit, buffer, sizes, pixel, pads, fill, layer.name)
    pitches = h * w * pixel, w * pixel, pixel
    whole = Patches(buffer, 0, 0, 0, *pitches, (), channels)
    before, no_weight = tuple(front for front, _ in pads), layer["weights"].info.zero_point
    return _Padded(whole, pitches, before, element, no_weight)


LOWERINGS = {
    TransposeConvolution2d: LoweringRule(check, lower),
    TransposeConvolution3d: LoweringRule(check, lower),
}
