"""Lowers TransposeConvolution2d."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from armpy.graph import Layer
from armpy.ops import TransposeConvolution2d
from armpy.ops.operands import Operands
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.ops.shapes import resolve_padding
from armpy.records import dataclass
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
from armpy_numba_acc.lowering.operands import elements_of, expect
from armpy_numba_acc.lowering.padding import padded_images
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.weighted_checks import check_types, is_dynamic
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.limits import MOST_PARTS
from armpy_numba_acc.program.registry import Lowering


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, 8 or 16 bits, or float32 with int8 weights; constant weights, NHWC."""
    operation = expect(operation, TransposeConvolution2d)
    operands = Operands(operation, inputs)
    for name in ("weights", "bias"):
        if (info := operands.get(name)) is not None and not info.is_constant:
            return f"the {name} are not constant"
    if operation.data_layout is not DataLayout.NHWC:
        return "the layout NCHW is not supported"
    strides, sizes = operation.stride, outputs[0].known_shape[1:3]
    if min(strides[0], sizes[0]) * min(strides[1], sizes[1]) > MOST_PARTS:
        return f"strides that cut the output into more than {MOST_PARTS} parts are not supported"
    return check_types(operands, outputs)


@dataclass(frozen=True, slots=True)
class _Phase:
    """Every so many elements along an axis of the output: those that meet the same taps.

    Parameters
    ----------
    first, count : int
        The first one, and how many there are.
    taps : list of (int, int)
        Position in the kernel, and which input element the first one meets there; may be
        negative, or beyond the last one.
    """

    first: int
    count: int
    taps: list[tuple[int, int]]


def _phases(out_size: int, kernel: int, stride: int, cut: int) -> list[_Phase]:
    """The phases along an axis, of which `cut` elements in front are not there."""
    return [
        _Phase(
            first,
            -(-(out_size - first) // stride),
            [
                (tap, (first + cut - tap) // stride)
                for tap in range((first + cut) % stride, kernel, stride)
            ],
        )
        for first in range(min(stride, out_size))
    ]


def lower(emit: Emitter, layer: Layer) -> None:
    """One convolution per phase, with those weights that it meets.

    Notes
    -----
    With strides, the output's element ``y`` meets the kernel at every `stride` only: elements
    that are a stride apart are a convolution with a smaller kernel.
    """
    operation, output = expect(layer.operation, TransposeConvolution2d), layer.output
    if is_dynamic(layer.input_infos):
        layer = with_real_operands(emit, layer)
    weights = elements_of(layer, "weights")
    shape = output.info.known_shape
    axes = []
    for axis, step in enumerate(operation.stride):
        size, kernel = shape[1 + axis], weights.shape[1 + axis]
        cut = resolve_padding(operation.padding, size, kernel, step, 1, axis)[0]
        axes.append(_phases(size, kernel, step, cut))
    padded = _padded(emit, layer, axes)
    whole, target = stand_in(output.info), emit.target(output)
    for rows, columns in product(*axes):
        patches, chosen = padded.patches(rows, columns, weights)
        patches = readable(emit, layer, patches)
        if operation.stride == (1, 1):
            emit_filters(emit, layer, patches, chosen, target, shape[3])
            continue
        part = whole[:, rows.first :: operation.stride[0], columns.first :: operation.stride[1]]
        scratch = emit.scratch(part.nbytes)
        emit_filters(emit, layer, patches, chosen, scratch, shape[3])
        made = np.empty(part.shape, part.dtype)
        emit_move(emit, Side(scratch, made, made), Side(target, whole, part), layer.name)


@dataclass(frozen=True, slots=True)
class _Padded:
    """The input with what lies around it.

    Parameters
    ----------
    whole : Patches
        Of all pixels; has no taps yet.
    row, pixel : int
        Bytes.
    before : (int, int)
        Rows above, and columns to the left.
    no_weight : int
        The stored weight that stands for 0.
    """

    whole: Patches
    row: int
    pixel: int
    before: tuple[int, int]
    no_weight: int

    def patches(self, rows: _Phase, columns: _Phase, weights: Array) -> tuple[Patches, Array]:
        """What a phase multiplies, and with which weights (o, taps, i)."""
        pairs = list(product(rows.taps, columns.taps))
        if pairs:
            chosen = np.stack([weights[:, y, x] for (y, _), (x, _) in pairs], axis=1)
        else:  # nothing is met: the output is the bias
            pairs = [((0, -self.before[0]), (0, -self.before[1]))]
            chosen = np.full_like(weights[:, :1, 0], self.no_weight)
        top, left = self.before
        taps = tuple((y + top) * self.row + (x + left) * self.pixel for (_, y), (_, x) in pairs)
        size = self.whole
        patches = Patches(
            size.source,
            size.images,
            rows.count,
            columns.count,
            size.image_pitch,
            size.row_pitch,
            size.pixel_pitch,
            taps,
            size.depth,
        )
        return patches, chosen


def _padded(emit: Emitter, layer: Layer, axes: Sequence[Sequence[_Phase]]) -> _Padded:
    """The input with as many elements around it as phases meet."""
    n, *sizes, depth = layer["input"].info.known_shape
    buffer, element = source_of_products(emit, layer)
    pads = []
    for size, phases in zip(sizes, axes, strict=True):
        firsts = [at for phase in phases for _, at in phase.taps]
        lasts = [at + phase.count - 1 for phase in phases for _, at in phase.taps]
        lasts += [phase.count - 1 for phase in phases]
        pads.append((max(0, -min(firsts, default=0)), max(0, max(lasts) - size + 1)))
    pixel = depth * element
    images = n, sizes[0], sizes[1], pixel
    buffer, h, w = padded_images(emit, buffer, images, pads, fill_byte_of(layer), layer.name)
    row = w * pixel
    whole = Patches(buffer, n, 0, 0, h * row, row, pixel, (), depth)
    return _Padded(whole, row, pixel, (pads[0][0], pads[1][0]), layer["weights"].info.zero_point)


LOWERINGS = {TransposeConvolution2d: Lowering(check, lower)}
