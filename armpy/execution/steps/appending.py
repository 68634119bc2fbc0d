"""Loops that append: carried values that only grow are joined when the loop ends.

Notes
-----
Several turns are a loop of fixed shapes, which a backend may run: it puts what turns add into
lists, which have a place for each turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from armpy.compiler import Evaluator, specialize
from armpy.core.dataclass import dataclass
from armpy.core.text_memory import held_bytes
from armpy.errors import ArmpyError, MemoryQuotaError
from armpy.graph import Graph, Rewriter, Value
from armpy.graph.network import Network
from armpy.ops.control_flow import While
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    LogicalBinary,
    LogicalBinaryOperation,
    Select,
)
from armpy.ops.joining import Concat
from armpy.ops.operation import Array
from armpy.ops.reshaping import Reshape
from armpy.tensor import TensorInfo
from armpy.types import DataType

_ADD = ElementwiseBinary(BinaryOperation.ADD)
_AND = LogicalBinary(LogicalBinaryOperation.LOGICAL_AND)
_EQUAL = Comparison(ComparisonOperation.EQUAL)
_LESS = Comparison(ComparisonOperation.LESS)

_LISTS_BYTES = 256 << 10

_MOST_TURNS, _LEAST_TURNS = 256, 16
"""With lists; of longer elements, which make fewer turns, copying takes longer than it spares."""


@dataclass(frozen=True, slots=True)
class Append:
    """A carried value that turns append to and do not read.

    Nothing reads the shape either. So the body, which gets the value without elements, returns
    those that a turn adds, and has the same shapes in every turn.
    """

    number: int  # of the carried value
    axis: int  # on which it grows; may be negative
    is_in_front: bool  # whether new elements stand before the older ones
    where: str  # the layer that appends

    def emptied(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the value without elements."""
        axis = self.axis % len(shape)
        return (*shape[:axis], 0, *shape[axis + 1 :])


def find_appends(loop: While) -> Iterator[Append]:
    """Yield the carried values that turns append to and do not read."""
    condition, body = loop.condition_graph, loop.body_graph
    assert isinstance(condition, Graph)
    assert isinstance(body, Graph)
    for number, (before, after) in enumerate(zip(body.inputs, body.outputs, strict=False)):
        tested, layer = condition.inputs[number], body.producers.get(after)
        if layer is None or not isinstance(layer.operation, Concat):
            continue
        axis = layer.operation.axis
        is_appended = (
            before in (layer.inputs[0], layer.inputs[-1])
            and layer.inputs.count(before) == 1
            and body.consumers[before] == (layer,)
            and after not in body.consumers
            and body.outputs.count(after) == 1
        )
        read = {tested, before} & {*condition.consumers, *condition.outputs, *body.outputs}
        shapes = [shape for shape in (before.info.shape, tested.info.shape) if shape is not None]
        if is_appended and not read and all(shape[axis] is None for shape in shapes):
            yield Append(number, axis, layer.inputs[0] is not before, layer.where)


class AppendedElements:
    """A carried value that grows, in parts."""

    __slots__ = ("_append", "_limit_bytes", "_num_turns", "_parts", "_size_bytes", "empty")

    def __init__(
        self,
        append: Append,
        first: Array,  # what the first turn appends to
        limit_bytes: int,  # most that all parts may take up
    ) -> None:
        self._append = append
        self._parts = [first]
        self._num_turns, self._size_bytes, self._limit_bytes = 0, held_bytes(first), limit_bytes
        # Replaces the value among the inputs of turns.
        self.empty: Array = np.empty(append.emptied(first.shape), first.dtype)

    def take(self, part: Array, num_turns: int = 1) -> None:
        """Take what turns have added."""
        self._parts.append(part)
        self._num_turns += num_turns
        self._size_bytes += held_bytes(part)
        if self._size_bytes > self._limit_bytes:
            raise MemoryQuotaError(
                "a value that a loop appends to needs too much memory",
                where=self._append.where,
                expected=f"at most {self._limit_bytes} bytes (memory_limit_bytes)",
                actual=f"{self._size_bytes} bytes after {self._num_turns} turns",
            )

    def take_list(self, parts: Array) -> None:
        """Take what several turns have added, along a first axis."""
        if not (count := len(parts)):
            return
        shape, axis = [*parts.shape[1:]], self._append.axis % (parts.ndim - 1)
        shape[axis] *= count
        parts = parts[::-1] if self._append.is_in_front else parts
        self.take(np.moveaxis(parts, 0, axis).reshape(shape), count)

    def whole(self) -> Array:
        """The value after the last turn."""
        parts = self._parts[::-1] if self._append.is_in_front else self._parts
        return np.concatenate(parts, self._append.axis)


def with_lists(
    loop: While,
    inputs: Sequence[TensorInfo],  # fully shaped, those that grow without elements
    appends: Iterable[Append],
    evaluator: Evaluator | None,
    name: str,
) -> Graph | None:
    """A graph that runs several turns of a loop; None if shapes change, or turns add too much.

    Its inputs and outputs are the number of turns so far, and the loop's, with a list in the place
    of each value that grows.
    """
    condition, body = loop.condition_graph, loop.body_graph
    assert isinstance(condition, Graph)
    assert isinstance(body, Graph)
    try:
        shaped = specialize(body, [info.known_shape for info in inputs], (), evaluator)
    except ArmpyError:  # raised when the body has to run
        return None
    parts = {append.number: shaped.outputs[append.number].info for append in appends}
    sizes = [part.size_bytes if shaped.is_fully_shaped else 0 for part in parts.values()]
    most = min(_MOST_TURNS, _LISTS_BYTES // max(sum(sizes), 1))
    if most < _LEAST_TURNS or not all(sizes):
        return None
    count = TensorInfo((), DataType.SIGNED64)
    lists = {number: part.with_shape((most, *part.known_shape)) for number, part in parts.items()}

    def begun(graph: Graph) -> tuple[Rewriter, list[Value]]:
        rewriter, values = Rewriter(graph), [*graph.inputs]
        for number, info in lists.items():
            values[number] = rewriter.value(info, values[number].name)
        return rewriter, [rewriter.value(count, "turns"), *values]

    test, (turns, *values) = begun(condition)
    for layer in condition.layers:
        test.keep(layer)
    has_place = test.insert(_LESS, (turns, test.constant(np.array(most), count)), "has place")
    goes_on = test.insert(_AND, (has_place.output, test.mapped(condition.outputs[0])), "goes on")
    tested = test.finish((turns, *values), goes_on.outputs, default_shapes=())

    turn, (turns, *values) = begun(body)
    numbers = {body.outputs[number]: number for number in lists}
    for layer in body.layers:
        number = numbers.get(layer.outputs[0])
        if number is None:
            turn.keep(layer)
            continue
        added = [value for value in turn.operands(layer) if value is not body.inputs[number]]
        part = turn.replace(layer, layer.operation, added, [parts[number]]).output
        row = turn.insert(Reshape((1, *parts[number].known_shape)), (part,), f"{layer.name}/row")
        places = np.arange(most).reshape(most, *[1] * len(parts[number].known_shape))
        here = turn.insert(_EQUAL, (turn.constant(places, count), turns), f"{layer.name}/place")
        operands = (here.output, row.output, values[number])
        whole = turn.insert(Select(), operands, f"{layer.name}/list", [lists[number]])
        turn.alias(layer.output, whole.output)
    following = turn.insert(_ADD, (turns, turn.constant(np.array(1), count)), "turns")
    outputs = [following.output, *map(turn.mapped, body.outputs)]
    turned = replace(
        turn.finish((turns, *values), outputs, default_shapes=()),
        output_names=("turns", *body.output_names),
        output_shapes=(),
    )

    net = Network(name)
    infos = [count, *[lists.get(number, info) for number, info in enumerate(inputs)]]
    sources = [net.input(f"in{number}", info) for number, info in enumerate(infos)]
    for result in net.add_layer(While(tested, turned), sources, name=name).outputs:
        net.output(result.name, result)
    return net.build()
