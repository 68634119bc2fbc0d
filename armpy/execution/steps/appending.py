"""Loops that append: carried values that only grow are joined when the loop ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from armpy.errors import MemoryLimitError
from armpy.graph import Graph
from armpy.ops.control_flow import While
from armpy.ops.joining import Concat
from armpy.ops.operation import Array


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

    __slots__ = ("_append", "_empty", "_limit_bytes", "_parts", "_size_bytes")

    def __init__(
        self,
        append: Append,
        # Inputs of the first turn, in which an array without elements replaces the value.
        values: list[Array],
        limit_bytes: int,  # most that all parts may take up
    ) -> None:
        first = values[append.number]
        self._append = append
        self._parts = [first]
        self._size_bytes, self._limit_bytes = first.nbytes, limit_bytes
        self._empty: Array = np.empty(append.emptied(first.shape), first.dtype)
        values[append.number] = self._empty

    def take(self, results: list[Any], values: list[Array]) -> None:  # Any: may be written again
        """Take what a turn has added out of its results, and out of the next turn's inputs."""
        number = self._append.number
        self._parts.append(values[number])
        self._size_bytes += values[number].nbytes
        values[number], results[number] = self._empty, None
        if self._size_bytes > self._limit_bytes:
            raise MemoryLimitError(
                "a value that a loop appends to needs too much memory",
                where=self._append.where,
                expected=f"at most {self._limit_bytes} bytes (memory_limit_bytes)",
                actual=f"{self._size_bytes} bytes after {len(self._parts) - 1} turns",
            )

    def put_into(self, values: list[Array]) -> None:
        """Put the whole value among those of the last turn."""
        parts = self._parts[::-1] if self._append.is_in_front else self._parts
        values[self._append.number] = np.concatenate(parts, self._append.axis)
