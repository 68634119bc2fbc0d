"""Finds the first layer that differs between two files of one network.

Notes
-----
Nothing says which layer of one file is which of the other, so tensors are known again by their
elements, whatever their order: files differ in layouts, and in what they write as one layer.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

import numpy as np

from armpy.errors import InvalidArgumentError, UnimplementedError
from armpy.graph import Graph
from armpy.loading import load
from armpy.ops.operation import Array
from armpy.optimizer import specialize
from armpy.records import dataclass
from armpy.runtime import RuntimeOptions
from armpy.tensor import TensorInfo
from armpy.testing.diff import Sides, input_arrays, values_of_layers
from armpy.types import REFERENCE_BACKEND_ID


@dataclass(frozen=True, slots=True)
class FileDifference:
    """How two files compare.

    Parameters
    ----------
    model, other : str
    is_same : bool
        Whether the outputs agree.
    last_same : tuple of str, or None
        The last layer whose output the other file has, too, and what makes it there.
    first : str or None
        The layer behind it; None if the outputs agree.
    """

    model: str
    other: str
    is_same: bool
    last_same: tuple[str, str] | None
    first: str | None


def first_file_difference(
    model_path: str | os.PathLike[str],
    other_path: str | os.PathLike[str],
    *,
    seed: int = 0,
    tolerance: float = 1e-3,
    runtime_options: RuntimeOptions | None = None,
) -> FileDifference:
    """Run two files of one network on CpuRef and find where they part.

    Parameters
    ----------
    model_path, other_path : path
    seed : int
        Of the inputs, which are numbers made of chance.
    tolerance : float
        How far elements may differ, relative to a tensor's largest one.
    runtime_options : RuntimeOptions, optional

    Returns
    -------
    FileDifference

    Raises
    ------
    InvalidArgumentError
        If the files have inputs of different sizes.
    UnimplementedError
        If shapes in a file depend on values.
    """
    sides = Sides.of(
        REFERENCE_BACKEND_ID, REFERENCE_BACKEND_ID, runtime_options or RuntimeOptions()
    )
    with load(os.fspath(model_path), runtime=sides.against) as model:
        arrays = input_arrays(model.graph, {}, seed)
        graph = _specialized(sides, model.graph, arrays, os.fspath(model_path))
    with load(os.fspath(other_path), runtime=sides.against) as model:
        given = _rearranged(arrays, model.graph)
        other = _specialized(sides, model.graph, given, os.fspath(other_path))
    ours = _Tensors(sides, graph, arrays)
    theirs = _Tensors(sides, other, given)
    outputs = [ours.found_in(theirs, output.id, tolerance) for output in graph.outputs]
    if None not in outputs:
        return FileDifference(os.fspath(model_path), os.fspath(other_path), True, None, None)
    last, first = None, None
    for layer in graph.layers:
        made = [ours.found_in(theirs, value.id, tolerance) for value in layer.outputs]
        if None not in made:
            last, first = (layer.name, str(made[0])), None
        elif first is None:
            first = layer.name
    return FileDifference(os.fspath(model_path), os.fspath(other_path), False, last, first)


def _specialized(sides: Sides, graph: Graph, arrays: Sequence[Array], name: str) -> Graph:
    """A graph with all its shapes."""
    found = specialize(graph, [array.shape for array in arrays], evaluator=sides.evaluator)
    if not found.is_fully_shaped or found.variables:
        raise UnimplementedError(
            "shapes in the model depend on values, or it has state", where=name
        )
    return found


def _rearranged(arrays: Sequence[Array], graph: Graph) -> list[Array]:
    """Inputs of one file for the other, whose channels may be elsewhere."""
    wanted = input_arrays(graph, {}, 0)
    if len(wanted) != len(arrays):
        raise InvalidArgumentError(
            "the files have different numbers of inputs",
            expected=str(len(arrays)),
            actual=str(len(wanted)),
        )
    found = []
    for number, (array, like) in enumerate(zip(arrays, wanted, strict=True)):
        orders = itertools.permutations(range(array.ndim)) if array.ndim <= _MOST_AXES else ()
        fits = (order for order in orders if array.transpose(order).shape == like.shape)
        order = next(fits, None)
        if order is None and array.size != like.size:
            raise InvalidArgumentError(
                f"input {number} has another size in the other file",
                expected=str(array.shape),
                actual=str(like.shape),
            )
        moved = array.reshape(like.shape) if order is None else array.transpose(order)
        found.append(np.ascontiguousarray(moved).astype(like.dtype))
    return found


_MOST_AXES = 6


class _Tensors:
    """What the layers of a file have computed, as sorted numbers."""

    def __init__(self, sides: Sides, graph: Graph, arrays: Sequence[Array]) -> None:
        values = values_of_layers(sides, graph, arrays)
        self._sorted = {
            value.id: np.sort(_numbers(array, value.info).reshape(-1))
            for value, array in values.items()
        }
        self._makers = {value.id: layer.name for layer in graph.layers for value in layer.outputs}

    def found_in(self, other: _Tensors, number: int, tolerance: float) -> str | None:
        """The layer of another file that makes the same elements; None if none does."""
        mine = self._sorted.get(number)
        if mine is None:  # an input or a constant
            return ""
        limit = tolerance * max(float(np.abs(mine).max(initial=0)), 1e-30)
        for key, theirs in other._sorted.items():
            if theirs.size == mine.size and float(np.abs(theirs - mine).max(initial=0)) <= limit:
                return other._makers[key]
        return None


def _numbers(array: Array, info: TensorInfo) -> Array:
    """What stored elements stand for."""
    if info.data_type.is_quantized and isinstance(info.scale, float):
        return (array.astype(np.float64) - info.zero_point) * info.scale
    return array.astype(np.float64)
