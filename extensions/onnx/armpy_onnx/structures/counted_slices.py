"""Slices that a loop's counter moves over a tensor: ``x[i:i + 1]`` as Gather, whose shape is known.

Notes
-----
A Slice ends where the tensor does, so that its shape depends on the counter. Where the number of
turns is known, the slices of a tensor from around the loop may be known to lie within it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from armpy.graph import Value
from armpy.ops.operation import Array
from armpy_onnx.reading import kind_of
from armpy_onnx.structures.functions import Attributes, bound_attributes
from armpy_onnx.structures.loops import OnnxLoop

_SAME_ELEMENT = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")
_MOST_STEPS = 8
"""Nodes that are looked through from a Slice back to the counter."""


def with_gathers(loop: OnnxLoop) -> onnx.GraphProto:
    """The body of a Loop with Gather in the place of slices by its counter."""
    if loop.most_turns is None:
        return loop.body
    slices = _Slices(loop, loop.most_turns)
    nodes = [slices.gathers(node) or [node] for node in loop.body.node]
    if len(nodes) == sum(map(len, nodes)):
        return loop.body
    body = onnx.GraphProto()
    body.CopyFrom(loop.body)
    del body.node[:]
    body.node.extend(node for several in nodes for node in several)
    return body


class _Slices:
    """Slices of a loop's body, and the values that they are made of."""

    def __init__(self, loop: OnnxLoop, num_turns: int) -> None:
        self._loop = loop
        self._num_turns = num_turns
        self._counter = loop.body.input[0].name
        self._makers: Mapping[str, onnx.NodeProto] = {
            name: node for node in loop.body.node for name in node.output
        }
        self._tensors = {tensor.name: tensor for tensor in loop.body.initializer}
        self._inner = {value.name for value in loop.body.input} | {*self._makers, *self._tensors}

    def gathers(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Nodes that give what a Slice does in every turn; none if it is anything else."""
        if node.op_type != "Slice" or node.domain or len(node.input) < 4:
            return []
        source, start, end, axes = node.input[:4]
        whole = None if source in self._inner else self._loop.node.scope.values.get(source)
        axis = self._number(axes)
        step = self._number(node.input[4]) if len(node.input) > 4 and node.input[4] else 1
        first, last = self._distance(start), self._distance(end)
        if not isinstance(whole, Value) or not whole.info.is_fully_shaped:
            return []
        if axis is None or first is None or last is None:
            return []
        shape = whole.info.known_shape
        is_inside = -len(shape) <= axis < len(shape) and (
            0 <= first < last and self._num_turns - 1 + last <= shape[axis]
        )
        if step != 1 or not is_inside:
            return []
        offsets, indices = f"{node.output[0]}\0offsets", f"{node.output[0]}\0indices"
        numbers = onnx.numpy_helper.from_array(np.arange(last - first, dtype=np.int64))
        make = onnx.helper.make_node
        return [
            make("Constant", [], [offsets], value=numbers),
            make("Add", [start, offsets], [indices]),
            make("Gather", [source, indices], node.output, node.name, axis=axis),
        ]

    def _distance(self, name: str, steps: int = _MOST_STEPS) -> int | None:
        """Distance of a value of one element from the counter; None if it is anything else."""
        if name == self._counter:
            return 0
        node = self._makers.get(name)
        if node is None or node.domain or not steps:
            return None
        if node.op_type in _SAME_ELEMENT:
            types = [a.i for name, a in self._attributes(node).items() if name == "to"]
            is_whole = all(kind == onnx.TensorProto.INT64 for kind in types)
            return self._distance(node.input[0], steps - 1) if is_whole else None
        if node.op_type != "Add":
            return None
        for first, other in (node.input, node.input[::-1]):
            constant = self._number(other)
            distance = None if constant is None else self._distance(first, steps - 1)
            if distance is not None and constant is not None:
                return distance + constant
        return None

    def _attributes(self, node: onnx.NodeProto) -> Attributes:
        """A node's attributes, with those of the function around the loop that it refers to."""
        return bound_attributes(node, self._loop.node.scope.attributes)

    def _number(self, name: str) -> int | None:
        """The only element of a constant of integers."""
        array = self._constant(name)
        is_one = array is not None and array.size == 1 and array.dtype.kind == "i"
        return int(array.item()) if array is not None and is_one else None

    def _constant(self, name: str, steps: int = _MOST_STEPS) -> Array | None:
        """The elements of a constant; None if it is none."""
        maker, tensor = self._makers.get(name), self._tensors.get(name)
        kind = "" if maker is None else kind_of(maker)
        if maker is not None and kind in _SAME_ELEMENT[1:] and steps:
            return self._constant(maker.input[0], steps - 1)
        if maker is not None and kind == "Constant":
            for attribute_name, attribute in self._attributes(maker).items():
                if attribute_name in ("value_int", "value_ints"):
                    return np.array(onnx.helper.get_attribute_value(attribute), np.int64)
                tensor = attribute.t if attribute_name == "value" else None
        if tensor is not None:
            array, _ = self._loop.node.walker.functions.external.read(tensor, f"'{name}'")
            return array
        outer = None if name in self._inner else self._loop.node.scope.values.get(name)
        return outer.data if isinstance(outer, Value) else None
