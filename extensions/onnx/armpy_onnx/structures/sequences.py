"""Sequences and optionals, which are resolved while nodes are walked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from armpy.graph import Value
from armpy_onnx.element_types import data_type_of
from armpy_onnx.items import Item, UnknownElements, ValueList, tensors
from armpy_onnx.node import NodeData
from armpy_onnx.structures.appending import joined
from armpy_onnx.structures.walking import Scope, Walker

MOST_ELEMENTS = 4096
"""Maximum number of elements of a sequence that a tensor is split into."""


def _input(data: NodeData, inputs: Sequence[Item], index: int) -> Item:
    """An operand that may be left out."""
    return inputs[index] if index < len(inputs) else None


def _sequence(data: NodeData, inputs: Sequence[Item], index: int = 0) -> ValueList:
    item = _input(data, inputs, index)
    if not isinstance(item, ValueList):
        raise data.error(f"input {index} is not a sequence")
    return item


def _tensor(data: NodeData, inputs: Sequence[Item], index: int) -> Value:
    item = _input(data, inputs, index)
    if not isinstance(item, Value):
        raise data.error(f"input {index} is not a tensor")
    return item


def _position(data: NodeData, value: Value, length: int, *, may_append: bool = False) -> int:
    """A place in a sequence, counted from its beginning."""
    if value.data is None:
        raise UnknownElements([value], "a place in a sequence")
    if value.data.size != 1:
        raise data.error("a position is not one element", actual=str(value.data.size))
    (place,) = data.whole(value.data, "a position")
    if not -length <= place < length + may_append:
        raise data.error(
            "the position is out of range", expected=f"{length} elements", actual=place
        )
    return place + length if place < 0 else place


def _empty(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    kind = data.attribute("dtype", onnx.TensorProto.FLOAT)
    return [ValueList((), data_type_of(int(kind), data.label))]


def _construct(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    values = tensors(inputs)
    if not values:
        raise data.error("there is no tensor")
    return [_listed(data, values)]


def _listed(data: NodeData, values: Sequence[Value]) -> ValueList:
    """A sequence of tensors of one type."""
    types = {value.info.data_type for value in values}
    if len(types) != 1:
        raise data.error(
            "the tensors of a sequence have different types", actual=sorted(map(str, types))
        )
    return ValueList(tuple(values), types.pop())


def _at(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    sequence = _sequence(data, inputs)
    return [sequence.values[_position(data, _tensor(data, inputs, 1), len(sequence.values))]]


def _insert(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    sequence, value = _sequence(data, inputs), _tensor(data, inputs, 1)
    if value.info.data_type is not sequence.data_type:
        raise data.error("the tensor is of another type than the sequence's", actual=value.info)
    place = len(sequence.values)
    if _input(data, inputs, 2) is not None:
        place = _position(data, _tensor(data, inputs, 2), place, may_append=True)
    values = (*sequence.values[:place], value, *sequence.values[place:])
    return [ValueList(values, sequence.data_type)]


def _erase(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    sequence = _sequence(data, inputs)
    place = len(sequence.values) - 1
    if _input(data, inputs, 1) is not None:
        place = _position(data, _tensor(data, inputs, 1), len(sequence.values))
    elif place < 0:
        raise data.error("the sequence is empty")
    return [
        ValueList((*sequence.values[:place], *sequence.values[place + 1 :]), sequence.data_type)
    ]


def _length(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    return [walker.length(_sequence(data, inputs))]


def _concat(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    sequence = _sequence(data, inputs)
    values = list(sequence.values)
    if not values:
        raise data.error("the sequence is empty")
    axis = data.attribute("axis")
    if not isinstance(axis, int):
        raise data.error("the attribute 'axis' is missing")
    if sequence.stack is not None:
        is_new = bool(data.attribute("new_axis", 0))
        rank = len(values[0].info.known_shape) + is_new
        if -rank <= axis < rank:
            return [joined(walker, data.name, sequence.stack, axis, is_new=is_new)]
    if data.attribute("new_axis", 0):
        values = [walker.call("Unsqueeze", v, [axis], label=data.name) for v in values]
    if len(values) == 1:
        return [values[0]]
    return [walker.call("Concat", *values, label=data.name, axis=axis)]


def _split(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    value, axis = _tensor(data, inputs, 0), data.attribute("axis", 0)
    shape = value.info.shape
    if shape is None:
        raise UnknownElements((), "how many tensors a sequence has")
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        expected = f"-{len(shape)} to {len(shape) - 1}"
        raise data.error("the axis is out of range", expected=expected, actual=axis)
    axis %= len(shape)
    size = shape[axis]
    if size is None:
        raise UnknownElements((), "how many tensors a sequence has")
    split_sizes = _input(data, inputs, 1)
    sizes: list[int]
    if split_sizes is None:
        sizes = [1] * size
    else:
        parts = _tensor(data, inputs, 1)
        if parts.data is None:
            raise UnknownElements([parts], "how many tensors a sequence has")
        sizes = _sizes(data, [*data.whole(parts.data, "input 1")], parts.data.ndim, size)
    if len(sizes) > MOST_ELEMENTS:
        raise data.error("the sequence is too long", expected=str(MOST_ELEMENTS), actual=len(sizes))
    keeps = split_sizes is not None or bool(data.attribute("keepdims", 1))
    cuts: list[Value] = []
    start = 0
    for part in sizes:
        cut = walker.call("Slice", value, [start], [start + part], [axis], label=data.name)
        cuts.append(cut if keeps else walker.call("Squeeze", cut, [axis], label=data.name))
        start += part
    return [ValueList(tuple(cuts), value.info.data_type)]


def _sizes(data: NodeData, parts: list[int], rank: int, size: int) -> list[int]:
    """Sizes of the parts of an axis."""
    if rank == 0:
        part = parts[0]
        if part < 1:
            raise data.error(
                "the size of the parts is not positive", expected="1 or more", actual=part
            )
        return [min(part, size - start) for start in range(0, size, part)]
    if sum(parts) != size or min(parts, default=0) < 0:
        raise data.error(
            "the sizes of the parts do not add up to the axis",
            expected=f"{size} in all",
            actual=str(parts),
        )
    return parts


def _map(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    """The body for each element of sequences of one length; tensors are the same for all."""
    body, length = data.attribute("body"), len(_sequence(data, inputs).values)
    if not isinstance(body, onnx.GraphProto):
        raise data.error("the attribute 'body' is missing, or no graph")
    lists = [item for item in inputs if isinstance(item, ValueList)]
    if any(len(item.values) != length for item in lists):
        raise data.error("the sequences have different lengths")
    rows = []
    for number in range(length):
        items = [item.values[number] if isinstance(item, ValueList) else item for item in inputs]
        rows.append(tensors(walker.inlined(body, items, scope, f"{data.name}/{number}/")))
    if rows:
        return [_listed(data, column) for column in zip(*rows, strict=True)]
    kinds = [value.type.tensor_type.elem_type for value in body.output]
    return [ValueList((), data_type_of(kind, data.label)) for kind in kinds]


# Optionals


def _optional(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    return [_input(data, inputs, 0)]


def _has(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    return [walker.constant(np.array(_input(data, inputs, 0) is not None))]


def _get(walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope) -> list[Item]:
    item = _input(data, inputs, 0)
    if item is None:
        raise data.error("the optional is empty")
    return [item]


def _identity(
    walker: Walker, data: NodeData, inputs: Sequence[Item], scope: Scope
) -> list[Item] | None:
    """A sequence, or nothing, as it is; tensors have a converter."""
    item = _input(data, inputs, 0)
    return None if isinstance(item, Value) else [item]


STRUCTURES = {
    "Identity": _identity,
    "SequenceEmpty": _empty,
    "SequenceConstruct": _construct,
    "SequenceAt": _at,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceLength": _length,
    "SequenceMap": _map,
    "ConcatFromSequence": _concat,
    "SplitToSequence": _split,
    "Optional": _optional,
    "OptionalHasElement": _has,
    "OptionalGetElement": _get,
}
