"""Lowers Pad."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from armpy import numerics
from armpy.graph import Layer
from armpy.ops import Pad, PaddingMode
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.filling import emit_fill, stored_element
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import Lowering


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Known padding and, if it is an operand, a constant to pad with."""
    assert isinstance(operation, Pad)
    if operation.pad_list is None:
        return "pad_list is not constant"
    value = inputs[1] if len(inputs) > 1 else None
    return "" if value is None or value.is_constant else "pad_value is not constant"


def lower(emit: Emitter, layer: Layer) -> None:
    """Copy the input into a frame, then mirror it there, or fill the frame first."""
    operation, value, output = layer.operation, layer.inputs[0], layer.outputs[0]
    assert isinstance(operation, Pad)
    assert value is not None
    pads = operation.pad_list or ()
    is_constant = operation.padding_mode is PaddingMode.CONSTANT
    element = _element(layer)
    if is_constant and _frames_image(layer, element):
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
        _mirror(emit, layer, inside)


def _element(layer: Layer) -> bytes:
    """What the frame is filled with.

    References
    ----------
    The attribute is a real number and the operand a stored one, see `armpy.ops.Pad`.
    """
    operation, info = layer.operation, layer.outputs[0].info
    assert isinstance(operation, Pad)
    operand = layer.inputs[1] if len(layer.inputs) > 1 else None
    if operand is not None and operand.data is not None:
        return stored_element(operand.data.reshape(()), info)
    if not info.data_type.is_quantized:
        return stored_element(np.array(operation.pad_value), info)
    steps = operation.pad_value / info.scale
    stored = info.zero_point + int(numerics.round_half_away(steps))
    return stored_element(np.clip(stored, *info.data_type.integer_range), info)


def pads_with_zeros(layer: Layer) -> bool:
    """Whether a layer only puts zeros around its input, element by element."""
    operation, info = layer.operation, layer.outputs[0].info
    assert isinstance(operation, Pad)
    is_constant = operation.padding_mode is PaddingMode.CONSTANT
    element = _element(layer)
    zero = stored_element(np.array(info.zero_point if info.data_type.is_quantized else 0), info)
    return is_constant and element == zero and _frames_image(layer, element)


def _padded_axes(layer: Layer) -> list[int]:
    """Axes along which there is something to add."""
    pads = layer.operation.pad_list  # type: ignore[attr-defined]
    return [axis for axis, pair in enumerate(pads) if any(pair)]


def _frames_image(layer: Layer, element: bytes) -> bool:
    """Whether padding is like that of an image: along an axis or two side by side."""
    padded = _padded_axes(layer)
    return len(set(element)) == 1 and bool(padded) and padded[-1] - padded[0] <= 1


def _lower_image(emit: Emitter, layer: Layer, element: bytes) -> None:
    """Pad in one go."""
    value, output = layer.inputs[0], layer.outputs[0]
    assert value is not None
    shape, pads = value.info.known_shape, layer.operation.pad_list  # type: ignore[attr-defined]
    is_half = emit.kind_of(output) == "bf16"
    size = FORMAT_BYTES["bf16"] if is_half else len(element)
    y = _padded_axes(layer)[0]
    x = y + 1
    row = prod(shape[x:]) * size
    column = prod(shape[x + 1 :]) * size
    left, right = pads[x] if x < len(shape) else (0, 0)
    arguments = (
        emit.source_as_bfloat16(value) if is_half else emit.source(value),
        emit.target(output),
        prod(shape[:y]),
        shape[y],
        row,
        *pads[y],
        left * column,
        right * column,
        element[0],
    )
    emit.command(Kernel("pad_image"), arguments, layer.name)


def _mirror(emit: Emitter, layer: Layer, inside: list[slice]) -> None:
    """Fill the frame from what lies inside, axis by axis, corners with the last one."""
    operation, output = layer.operation, layer.outputs[0]
    assert isinstance(operation, Pad)
    whole, target = stand_in(output.info), emit.target(output)
    centre = 1 if operation.padding_mode is PaddingMode.REFLECT else 0
    for axis, (before, after) in enumerate(operation.pad_list or ()):
        first, last = inside[axis].start, inside[axis].stop
        known = [slice(None)] * axis, inside[axis + 1 :]

        def part(begin: int, count: int, known: tuple[list[slice], list[slice]] = known) -> Side:
            """Some elements along the axis."""
            index = (*known[0], slice(begin, begin + count), *known[1])
            return Side(target, whole, whole[index])

        for count, start, source in (
            (before, 0, first + centre),
            (after, last, last - after - centre),
        ):
            if count:
                mirrored = part(source, count)
                turned = Side(target, whole, np.flip(mirrored.part, axis))
                emit_move(emit, turned, part(start, count), layer.name)


LOWERINGS = {Pad: Lowering(check, lower)}
