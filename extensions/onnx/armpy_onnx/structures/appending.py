"""Loops whose turns append to a tensor or a sequence that they do not read.

Notes
-----
Where the number of turns is known, appended values are collected like a loop's own outputs: no
shape changes from turn to turn, and a sequence need not be written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from armpy.graph import Value
from armpy_onnx.items import Item, ValueList, tensors
from armpy_onnx.messages.canonical import names_read
from armpy_onnx.structures.functions import bound_attributes
from armpy_onnx.structures.loops import OnnxLoop
from armpy_onnx.structures.walking import Scope, Walker


def run_appending(loop: OnnxLoop) -> list[Item]:
    """Outputs of a Loop: the loop itself, or one that collects appended values, is run."""
    axes = dict(_appended(loop)) if loop.is_long else {}
    collecting = _collecting(loop, axes) if axes else None
    if collecting is None:
        return loop.run()
    walker, label = loop.node.walker, loop.node.data.name
    results = collecting.run()
    others, collected = results[: len(collecting.carried)], results[len(collecting.carried) :]
    stacks, own = tensors(collected[: len(axes)]), collected[len(axes) :]
    for (number, axis), stack in zip(axes.items(), stacks, strict=True):
        first = loop.carried[number]
        if isinstance(first, ValueList):
            count = stack.info.known_shape[0]
            rows = [
                walker.call("Gather", stack, walker.constant(np.int64(i)), label=label, axis=0)
                for i in range(count)
            ]
            values = (*first.values, *rows)
            whole = None if first.values else stack
            others.insert(number, ValueList(values, first.data_type, whole))
        else:
            (before,) = tensors([first])
            parts = joined(walker, label, stack, axis)
            others.insert(number, walker.call("Concat", before, parts, label=label, axis=axis))
    return [*others, *own]


def _collecting(loop: OnnxLoop, axes: Mapping[int, int]) -> OnnxLoop | None:
    """A loop that collects what another one appends; None if shapes change from turn to turn."""
    others = [item for number, item in enumerate(loop.carried) if number not in axes]
    if not all(isinstance(item, Value) for item in others):
        return None

    def turn(
        walker: Walker, scope: Scope, number: Value, go: Item, state: Sequence[Item], label: str
    ) -> list[Item]:
        rest = iter(state)
        items = [
            _without_elements(walker, item, axes[place]) if place in axes else next(rest)
            for place, item in enumerate(loop.carried)
        ]
        condition, *results = loop.turn(walker, scope, number, go, items, label)
        others = [results[place] for place in range(len(items)) if place not in axes]
        parts = [_part(results[place]) for place in axes]
        return [condition, *others, *parts, *results[len(items) :]]

    num_collected = len(axes) + loop.num_collected
    collecting = replace(loop, turn=turn, carried=others, num_collected=num_collected)
    infos = collecting.given()[1:]
    is_fixed = all(info.is_fully_shaped and info.num_elements for info in infos) and all(
        info.shape == value.info.shape for info, value in zip(infos, tensors(others), strict=False)
    )
    return collecting if is_fixed else None


def joined(walker: Walker, label: str, stack: Value, axis: int, *, is_new: bool = False) -> Value:
    """Tensors that are stacked along axis 0, joined along an axis, or a new one.

    Parameters
    ----------
    stack : Value
        Stack of known shape.
    """
    rank = len(stack.info.known_shape) - 1
    axis %= rank + is_new
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    moved = walker.call("Transpose", stack, label=label, perm=order) if axis else stack
    if is_new:
        return moved
    shape = moved.info.known_shape
    sizes = [*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]]
    return walker.call("Reshape", moved, sizes, label=label)


def _appended(loop: OnnxLoop) -> Iterator[tuple[int, int]]:
    """Numbers of carried values that the body appends to and does not read; axes of tensors."""
    body = loop.body
    known = loop.node.walker.functions.free_names
    readers = Counter(name for node in body.node for name in names_read(node, known))
    readers.update(value.name for value in body.output)
    writers = {name: node for node in body.node for name in node.output}
    for number, (item, before, after) in enumerate(
        zip(loop.carried, body.input[2:], body.output[1:], strict=False)
    ):
        node = writers.get(after.name)
        if node is None or node.domain or not node.input or node.input[0] != before.name:
            continue
        if readers[before.name] != 1 or readers[after.name] != 1:
            continue
        if node.op_type == "SequenceInsert" and isinstance(item, ValueList):
            if len(node.input) == 2:
                yield number, 0
        elif node.op_type == "Concat" and isinstance(item, Value) and item.info.shape:
            rank = len(item.info.shape)
            attributes = bound_attributes(node, loop.node.scope.attributes)
            axis = attributes["axis"].i if "axis" in attributes else rank
            if -rank <= axis < rank:
                yield number, axis % rank


def _without_elements(walker: Walker, item: Item, axis: int) -> Item:
    """An empty value, to which a turn appends."""
    if isinstance(item, ValueList):
        return ValueList((), item.data_type)
    (value,) = tensors([item])
    shape = value.info.known_shape
    return walker.zeros((*shape[:axis], 0, *shape[axis + 1 :]), value.info.data_type)


def _part(item: Item) -> Item:
    """The part that a turn has appended to an empty value."""
    return item.values[0] if isinstance(item, ValueList) else item
