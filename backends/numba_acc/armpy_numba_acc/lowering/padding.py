"""Lowers padding: copies tensors into larger ones whose rest is filled or repeats them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from armpy.core import numerics
from armpy.core.dataclass import dataclass
from armpy.graph import Layer
from armpy.ops import Pad, PaddingMode
from armpy.ops.operands import Operands
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.filling import emit_fill, stored_element
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.stand_ins import broadcast
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_MOST_WRAPS = 8
"""As often a tensor is repeated on each side of an axis; each takes a command."""


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Known padding and, if it is an operand, a constant to pad with."""
    pad, shape = expect(operation, Pad), Operands(operation, inputs)["input"].known_shape
    if pad.pad_list is None:
        return "pad_list is not constant"
    if pad.padding_mode is PaddingMode.WRAP and any(
        max(pair) > _MOST_WRAPS * dim for pair, dim in zip(pad.pad_list, shape, strict=True)
    ):
        return f"more than {_MOST_WRAPS} repetitions are not supported"
    value = Operands(operation, inputs).get("pad_value")
    return "" if value is None or value.is_constant else "pad_value is not constant"


def lower(emit: Emitter, layer: Layer) -> None:
    """Copy the input into the output, then repeat it there, or fill all of that first."""
    operation, value, output = expect(layer.operation, Pad), layer["input"], layer.output
    pads = operation.pad_list or ()
    is_constant = operation.padding_mode is PaddingMode.CONSTANT
    element = _element(layer)
    if is_constant and _is_image(layer, element):
        _lower_image(emit, layer, element)
        return
    target = emit.target(output)
    if is_constant:
        emit_fill(emit, target, output.info.size_bytes, element, layer.name)
    source, whole = stand_in(value.info), stand_in(output.info)
    inside = [slice(b, b + n) for (b, _), n in zip(pads, source.shape, strict=True)]
    to = Side(target, whole, whole[tuple(inside)])
    emit_move(emit, Side(emit.source(value), source, source), to, layer.name)
    if not is_constant:
        _surround(emit, layer, inside)


def _element(layer: Layer) -> bytes:
    """Return the element that is put around the input.

    Reference: The attribute is a real number and the operand a stored one, see `armpy.ops.Pad`.
    """
    operation, info = expect(layer.operation, Pad), layer.output.info
    pad_value = layer.constant("pad_value")
    if pad_value is not None:
        return stored_element(pad_value.reshape(()), info)
    if not info.data_type.is_quantized:
        return stored_element(np.array(operation.pad_value), info)
    steps = operation.pad_value / info.scale
    stored = info.zero_point + int(numerics.round_half_away(steps))
    return stored_element(np.clip(stored, *info.data_type.integer_range), info)


def pads_with_zeros(layer: Layer) -> bool:
    """Return whether a layer only puts zeros around its input, element by element."""
    operation, info = expect(layer.operation, Pad), layer.output.info
    is_constant = operation.padding_mode is PaddingMode.CONSTANT
    element = _element(layer)
    zero = stored_element(np.array(info.zero_point if info.data_type.is_quantized else 0), info)
    return is_constant and element == zero and _is_image(layer, element)


def _padded_axes(layer: Layer) -> list[int]:
    """Axes along which there is something to add."""
    return [axis for axis, pair in enumerate(_pads(layer)) if any(pair)]


def _pads(layer: Layer) -> tuple[tuple[int, int], ...]:
    """Elements in front of each axis and after it."""
    return expect(layer.operation, Pad).pad_list or ()


def _is_image(layer: Layer, element: bytes) -> bool:
    """Return whether padding is like that of an image: along an axis or two side by side."""
    padded = _padded_axes(layer)
    return len(set(element)) == 1 and bool(padded) and padded[-1] - padded[0] <= 1


def _lower_image(emit: Emitter, layer: Layer, element: bytes) -> None:
    """Pad in one go."""
    value, output = layer["input"], layer.output
    shape, pads = value.info.known_shape, _pads(layer)
    is_bfloat16 = emit.kind_of(output) == "bf16"
    size = FORMAT_BYTES["bf16"] if is_bfloat16 else len(element)
    padded = _padded_axes(layer)
    # Columns alone are padded within rows: as rows of an image each would be one element.
    y = padded[0] - (len(padded) == 1 and padded[0] > 0)
    x = y + 1
    column = prod(shape[x + 1 :]) * size
    left, right = pads[x] if x < len(shape) else (0, 0)
    call = calls.PadImage(
        source=emit.source_as_bfloat16(value) if is_bfloat16 else emit.source(value),
        target=emit.target(output),
        images=prod(shape[:y]),
        height=shape[y],
        row_bytes=prod(shape[x:]) * size,
        top=pads[y][0],
        bottom=pads[y][1],
        left_bytes=left * column,
        right_bytes=right * column,
        fill=element[0],
    )
    emit(call, layer.name)


def padded_volumes(
    emit: Emitter,
    source: Buffer,
    sizes: Sequence[int],
    pixel: int,
    pads: Sequence[tuple[int, int]],
    fill: int,
    label: str,
) -> tuple[Buffer, tuple[int, ...]]:
    """Slices of a volume, or images, with bytes around them, and the sizes then.

    Parameters
    ----------
    sizes
        Number of slices, height and width.
    pixel
        Bytes of a pixel.
    pads
        Slices in front and after, pixels in front of the rows and after them, and of the columns.
    fill
        The byte.
    label
        The volume's purpose.

    Returns
    -------
    (Buffer, tuple of int)
        New memory; `source` if there is nothing to add.
    """
    if not any(map(any, pads)):
        return source, tuple(sizes)
    (front, back), (top, bottom), (left, right) = pads
    n, h, w = sizes
    padded = tuple(size + sum(pair) for size, pair in zip(sizes, pads, strict=True))
    plane = padded[1] * padded[2] * pixel
    target, rows = emit.scratch(padded[0] * plane), (n, h, w * pixel)
    pattern = int.from_bytes(bytes([fill]) * 8, "little", signed=True)
    for first, count in ((0, front), (front + n, back)):
        if count:
            part = target.part(first * plane, count * plane)
            emit(calls.Fill(part, count * plane, pattern), f"pad {label}", part="pad")
    inside = target.part(front * plane, n * plane)
    call = calls.PadImage(source, inside, *rows, top, bottom, left * pixel, right * pixel, fill)
    emit(call, f"pad {label}", part="pad")
    return target, padded


def _surround(emit: Emitter, layer: Layer, inside: list[slice]) -> None:
    """Repeat what lies inside, axis by axis, corners with the last one."""
    mode, output = expect(layer.operation, Pad).padding_mode, layer.output
    whole, target = stand_in(output.info), emit.target(output)
    for axis, pads in enumerate(_pads(layer)):
        known = [slice(None)] * axis, inside[axis + 1 :]

        def part(begin: int, count: int, known: tuple[list[slice], list[slice]] = known) -> Array:
            """Some elements along the axis."""
            return whole[(*known[0], slice(begin, begin + count), *known[1])]

        for piece in _pieces(mode, inside[axis], *pads):
            to, source = part(piece.start, piece.count), part(piece.source, piece.length)
            if mode in _CENTRES:
                source = np.flip(source, axis)
            repeated = broadcast(source, to.shape)
            emit_move(emit, Side(target, whole, repeated), Side(target, whole, to), layer.name)


_CENTRES = {PaddingMode.REFLECT: 1, PaddingMode.SYMMETRIC: 0}
"""How many elements at the border the modes that mirror leave out."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """`count` elements at `start` along an axis that repeat `length` ones at `source`."""

    start: int
    count: int
    source: int
    length: int


def _pieces(mode: PaddingMode, inside: slice, before: int, after: int) -> Iterator[_Piece]:
    """Return the numbers of elements before and after an axis."""
    first, last = inside.start, inside.stop
    if mode is PaddingMode.EDGE:
        pieces = [_Piece(0, before, first, 1), _Piece(last, after, last - 1, 1)]
    elif mode is PaddingMode.WRAP:
        size = max(last - first, 1)
        left = [(done, min(size, before - done)) for done in range(0, before, size)]
        right = [(done, min(size, after - done)) for done in range(0, after, size)]
        pieces = [_Piece(before - done - n, n, last - n, n) for done, n in left]
        pieces += [_Piece(last + done, n, first, n) for done, n in right]
    else:
        centre = _CENTRES[mode]
        pieces = [
            _Piece(0, before, first + centre, before),
            _Piece(last, after, last - after - centre, after),
        ]
    return (piece for piece in pieces if piece.count)


LOWERINGS = {Pad: LoweringRule(check, lower)}
