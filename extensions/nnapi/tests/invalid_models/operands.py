"""Ways to make a model invalid by one of its operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from armpy_nnapi.codes import OPERAND_TRAITS, OperandCode
from armpy_nnapi.description.model_description import ChannelQuant, Lifetime, Operand

from .editor import Editor

_INFINITE = float("inf")
_NOT_A_NUMBER = float("nan")
_TOO_LARGE = 1e39
"""A scale that float32 does not have."""

_UNKNOWN_CODES = (16, 999, 9999, 10002, 65535, -1)
_PER_CHANNEL = OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL
_PER_CHANNEL_SHAPE = (2, 3)


def _of(editor: Editor, accept: Callable[[Operand, OperandCode], bool]) -> Iterator[int]:
    """Indexes of operands of NNAPI's own types for which a condition holds."""
    for index, operand in enumerate(editor.operands):
        if accept(operand, OperandCode(operand.type)):
            yield index


def _change(editor: Editor, index: int | None, **changes: object) -> bool:
    """Change fields of an operand; False if there is none."""
    if index is None:
        return False
    editor.operands[index] = replace(editor.operands[index], **changes)  # type: ignore[arg-type]
    return True


def _any(editor: Editor) -> int:
    """The index of any operand."""
    return int(editor.random.integers(len(editor.operands)))


def bad_scale(editor: Editor) -> bool:
    """A quantised operand whose scale is no float32 above 0."""
    quantized = _of(editor, lambda _, code: OPERAND_TRAITS[code].needs_scale is True)
    scale = (0.0, -1.0, _INFINITE, -_INFINITE, _NOT_A_NUMBER, _TOO_LARGE, 1e-60)
    chosen = scale[int(editor.random.integers(len(scale)))]
    return _change(editor, editor.pick(quantized), scale=chosen)


def bad_zero_point(editor: Editor) -> bool:
    """A quantised operand whose zero point its type does not have."""
    quantized = _of(editor, lambda _, code: OPERAND_TRAITS[code].needs_scale is True)
    index = editor.pick(quantized)
    if index is None:
        return False
    low, high = OPERAND_TRAITS[OperandCode(editor.operands[index].type)].zero_points
    chosen = editor.pick((low - 1, high + 1, low - 1000, high + 100000, 2**31 - 1, -(2**31)))
    return _change(editor, index, zero_point=chosen)


def scale_without_quantisation(editor: Editor) -> bool:
    """A scale or zero point where the type has none."""
    plain = _of(editor, lambda _, code: OPERAND_TRAITS[code].needs_scale is False)
    index = editor.pick(plain)
    if editor.random.random() < 0.5:
        return _change(editor, index, scale=0.5)
    return _change(editor, index, zero_point=1)


def scalar_with_dimensions(editor: Editor) -> bool:
    """A scalar with dimensions."""
    scalars = _of(editor, lambda _, code: not OPERAND_TRAITS[code].is_tensor)
    dimensions = ((1,), (0,), (1, 1))[int(editor.random.integers(3))]
    return _change(editor, editor.pick(scalars), dimensions=dimensions)


def unknown_type(editor: Editor) -> bool:
    """An operand of a type that there is not."""
    return _change(editor, _any(editor), type=editor.pick(_UNKNOWN_CODES))


def bad_dimension(editor: Editor) -> bool:
    """A tensor with a negative or much too large dimension, or with too many elements."""
    tensors = _of(editor, lambda _, code: OPERAND_TRAITS[code].is_tensor)
    index = editor.pick(tensors)
    dimensions = ((-1,), (2, -3), (2**32,), (2**31, 4), (65536, 65536, 2))
    chosen = dimensions[int(editor.random.integers(len(dimensions)))]
    return _change(editor, index, dimensions=chosen)


def wrong_length(editor: Editor) -> bool:
    """A constant with more or fewer bytes than its type and dimensions say."""
    index = editor.pick(editor.operands_of(Lifetime.CONSTANT_COPY, Lifetime.CONSTANT_REFERENCE))
    if index is None:
        return False
    data = bytes(editor.operands[index].data or b"")
    wrong = (data + b"\0", data[:-1], data * 2, b"")[int(editor.random.integers(4))]
    return _change(editor, index, data=wrong)


def constant_of_unknown_size(editor: Editor) -> bool:
    """A constant tensor with a dimension, or the rank, left open."""
    constants = _of(editor, lambda operand, _: operand.lifetime.is_constant and operand.is_tensor)
    index = editor.pick(constants)
    if index is None:
        return False
    rest = editor.operands[index].dimensions[1:]
    return _change(editor, index, dimensions=() if editor.random.random() < 0.3 else (0, *rest))


def never_written(editor: Editor) -> bool:
    """A tensor inside of the model, or an output of it, that no operation writes."""
    lifetimes = (Lifetime.TEMPORARY_VARIABLE, Lifetime.SUBGRAPH_OUTPUT)
    lifetime = lifetimes[int(editor.random.integers(2))]
    editor.add(Operand(OperandCode.TENSOR_FLOAT32, (2,), lifetime=lifetime))
    return True


def _add_per_channel(editor: Editor, quant: ChannelQuant | None) -> bool:
    """Add a constant with scales per channel."""
    operand = Operand(_PER_CHANNEL, _PER_CHANNEL_SHAPE, 0, 0, Lifetime.CONSTANT_COPY, bytes(6))
    editor.add(replace(operand, channel_quant=quant))
    return True


def no_channel_scales(editor: Editor) -> bool:
    """A per-channel operand without scales."""
    return _add_per_channel(editor, None)


def wrong_number_of_scales(editor: Editor) -> bool:
    """A per-channel operand with more or fewer scales than channels."""
    count = editor.pick((0, 1, 2, 4)) or 0
    return _add_per_channel(editor, ChannelQuant((0.5,) * count, 1))


def wrong_channel_dimension(editor: Editor) -> bool:
    """A per-channel operand whose channels are along a dimension that it does not have."""
    dim = editor.pick((-1, 2, 1000)) or 0
    return _add_per_channel(editor, ChannelQuant((0.5,) * 3, dim))


def bad_channel_scale(editor: Editor) -> bool:
    """A per-channel operand with a scale that is not above 0."""
    scale = (0.0, -0.5, _INFINITE, _NOT_A_NUMBER)[int(editor.random.integers(4))]
    return _add_per_channel(editor, ChannelQuant((0.5, scale, 0.5), 1))


def scales_on_another_type(editor: Editor) -> bool:
    """Scales per channel on an operand of another type."""
    others = _of(editor, lambda operand, code: code != _PER_CHANNEL and bool(operand.dimensions))
    index = editor.pick(others)
    if index is None:
        return False
    count = editor.operands[index].dimensions[0]
    return _change(editor, index, channel_quant=ChannelQuant((0.5,) * count, 0))


def elements_without_constant(editor: Editor) -> bool:
    """Elements on a tensor that is not a constant."""
    index = editor.pick(editor.operands_of(Lifetime.SUBGRAPH_INPUT, Lifetime.SUBGRAPH_OUTPUT))
    return _change(editor, index, data=bytes(4))


def constant_without_elements(editor: Editor) -> bool:
    """A constant that has no elements."""
    return _change(editor, editor.pick(editor.operands_of(Lifetime.CONSTANT_COPY)), data=None)
