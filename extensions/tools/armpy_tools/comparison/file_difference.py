"""Finds the first layer that differs between two files of one network.

Notes
-----
Nothing says which layer of one file is which of the other, so tensors are known again by their
elements, whatever their order: files differ in layouts, and in how they combine layers.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence

import numpy as np

from armpy import load
from armpy.compiler import specialize
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError, UnimplementedError
from armpy.execution import RuntimeOptions
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Array
from armpy.tensor import Shape
from armpy.types import REFERENCE_BACKEND_ID
from armpy_conformance.comparison.real_numbers import real_numbers
from armpy_tools.comparison.layer_values import made_by_layers
from armpy_tools.comparison.sides import Sides, chosen_inputs, input_arrays
from armpy_tools.comparison.trace import TensorTrace

FILE_TOLERANCE = 1e-4
"""How far elements of two files' tensors may differ, relative to a tensor's largest one."""


@dataclass(frozen=True, slots=True)
class FileDifference:
    """Difference of two files."""

    model: str
    other: str
    is_same: bool  # whether the outputs agree
    last_same: tuple[str, str] | None
    """The nearest layer in front of the first that differs whose output the other file has, too,
    and what makes it there.
    """
    first: str | None  # the first layer that differs; None if the outputs agree
    tolerance: float
    error: float | None
    """Greatest difference of that layer's output from the nearest tensor of the other file,
    relative to its largest element; None if the outputs agree, or no tensor there has as many
    elements.
    """
    quantized: str | None  # the file that is quantised, if the other is not, or only its weights


def first_file_difference(
    model_path: str | os.PathLike[str],
    other_path: str | os.PathLike[str],
    *,
    seed: int = 0,
    tolerance: float = FILE_TOLERANCE,
    runtime_options: RuntimeOptions | None = None,
    inputs: Mapping[str, Array] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> FileDifference:
    """Run two files of one network on CpuRef and find where they part.

    Parameters
    ----------
    seed : int
        Of the inputs, which are numbers made of chance, several times.
    tolerance : float
        How far elements may differ, relative to a tensor's largest one.
    inputs : mapping of str to ndarray, optional
        By the name that the first file has; those missing are made of chance.
    shapes : mapping of str to tuple of int, optional
        Of inputs that the first file leaves open, as of `first_difference`.

    Raises
    ------
    InvalidArgumentError
        If the files have inputs of different sizes, or the given arrays fit none.
    UnimplementedError
        If shapes in a file depend on values.

    Notes
    -----
    A layer is right if the other file has its output, or that of a layer after it: what one file
    writes as several layers is one in the other. The first that is not, in order of execution, is
    named.

    Inputs of the same names are the same, in whatever order the files have them; with other names
    they are the same by order.
    """
    sides = Sides.of(
        REFERENCE_BACKEND_ID, REFERENCE_BACKEND_ID, runtime_options or RuntimeOptions()
    )
    names = os.fspath(model_path), os.fspath(other_path)
    with load(names[0], runtime=sides.against) as model:
        feeds = inputs or {}
        chances = [
            chosen_inputs(model, feeds, seed + trial, shapes or {}) for trial in range(_TRIALS)
        ]
        trials, chosen = [arrays for arrays, _ in chances], chances[0][1]
        with chosen.explained():
            graph = _specialized(sides, model.graph, trials[0], names[0])
    with load(names[1], runtime=sides.against) as model:
        moved = [
            _rearranged(_in_order(arrays, graph, model.graph), model.graph) for arrays in trials
        ]
        other = _specialized(sides, model.graph, moved[0], names[1])
    ours, theirs = _Tensors(sides, graph, trials), _Tensors(sides, other, moved)
    matches = {
        value.id: ours.found_in(theirs, value.id, tolerance)
        for layer in graph.layers
        for value in layer.outputs
    }
    for output in graph.outputs:
        matches[output.id] = ours.found_in(theirs, output.id, tolerance, other.outputs)
    less, more = sorted(zip(map(_quantized_share, (graph, other)), names, strict=True))
    only = more[1] if less[0] != more[0] else None
    if all(matches[output.id] is not None for output in graph.outputs):
        return FileDifference(*names, True, None, None, tolerance, None, only)
    first = _first_wrong(graph, matches)
    edges = {output.id for output in graph.outputs}
    errors = [
        ours.error(theirs, value.id, other.outputs if value.id in edges else ())
        for value in first.outputs
        if matches[value.id] is None
    ]
    error = max((error for error in errors if error is not None), default=None)
    last = _last_same(graph, matches, first)
    return FileDifference(*names, False, last, first.name, tolerance, error, only)


_TRIALS = 4
"""Sets of inputs: a wrong weight may meet nothing but zeros in one of them."""


def _first_wrong(graph: Graph, matches: Mapping[int, str | None]) -> Layer:
    """The first layer of whose output, and of all after it, the other file has none."""
    right: set[int] = set()
    wrong = graph.layers[-1]
    for layer in reversed(graph.layers):
        if any(value.id in right or matches[value.id] is not None for value in layer.outputs):
            right.update(value.id for value in layer.inputs if value is not None)
        else:
            wrong = layer
    return wrong


def _last_same(
    graph: Graph, matches: Mapping[int, str | None], first: Layer
) -> tuple[str, str] | None:
    """The last layer in front of a wrong one whose output the other file has."""
    last = None
    needed = {value.id for value in first.inputs if value is not None}
    before = itertools.takewhile(lambda layer: layer is not first, graph.layers)
    for layer in reversed(list(before)):
        if needed.isdisjoint(value.id for value in layer.outputs):
            continue
        same = next((matches[v.id] for v in layer.outputs if matches[v.id] is not None), None)
        if same is not None:
            last = layer.name, same
            break
        needed.update(value.id for value in layer.inputs if value is not None)
    return last


def _quantized_share(graph: Graph) -> int:
    """Return what of a graph is quantised: 0 nothing, 1 what layers read alone, 2 results, too."""
    read, written = (
        any(value is not None and value.info.data_type.is_quantized for value in values)
        for values in (
            itertools.chain.from_iterable(layer.inputs for layer in graph.layers),
            itertools.chain.from_iterable(layer.outputs for layer in graph.layers),
        )
    )
    return 2 if written else int(read)


def _specialized(sides: Sides, graph: Graph, arrays: Sequence[Array], name: str) -> Graph:
    shaped = specialize(graph, [array.shape for array in arrays], evaluator=sides.evaluator)
    if not shaped.is_fully_shaped or shaped.variables:
        raise UnimplementedError(
            "shapes in the model depend on values, or it has state", where=name
        )
    return shaped


def _in_order(arrays: Sequence[Array], graph: Graph, other: Graph) -> Sequence[Array]:
    """Inputs of one graph in the order of another's, if they have the same names."""
    by_name = {value.name: array for value, array in zip(graph.inputs, arrays, strict=True)}
    wanted = [value.name for value in other.inputs]
    return [by_name[name] for name in wanted] if by_name.keys() == set(wanted) else arrays


def _rearranged(arrays: Sequence[Array], graph: Graph) -> list[Array]:
    """Inputs of one file for the other, whose channels may be elsewhere."""
    wanted = input_arrays(graph, {}, 0)
    if len(wanted) != len(arrays):
        raise InvalidArgumentError(
            "the files have different numbers of inputs",
            expected=str(len(arrays)),
            actual=str(len(wanted)),
        )
    rearranged = []
    for number, (array, like) in enumerate(zip(arrays, wanted, strict=True)):
        order = _order(array, like.shape) or _order(array, graph.inputs[number].info.shape)
        if order is None and array.size != like.size:
            raise InvalidArgumentError(
                f"input {number} has another size in the other file",
                expected=str(array.shape),
                actual=str(like.shape),
            )
        moved = array.reshape(like.shape) if order is None else array.transpose(order)
        rearranged.append(np.ascontiguousarray(moved).astype(like.dtype))
    return rearranged


_MOST_AXES = 6


def _order(array: Array, wanted: Shape | None) -> tuple[int, ...] | None:
    """The first order of an array's axes that a shape fits, whose open dimensions fit all."""
    if wanted is None or len(wanted) != array.ndim or array.ndim > _MOST_AXES:
        return None
    for order in itertools.permutations(range(array.ndim)):
        if all(size in (array.shape[axis], None) for axis, size in zip(order, wanted, strict=True)):
            return order
    return None


_NONE = np.empty(0)


class _Tensors:
    """Tensors of a file's network, inputs and results of layers, in all trials."""

    def __init__(self, sides: Sides, graph: Graph, trials: Sequence[Sequence[Array]]) -> None:
        by_id: dict[int, list[Array]] = {}
        values = [*graph.inputs, *made_by_layers(graph)]
        with TensorTrace(sides.against, graph, values) as shown:
            for arrays in shown.run(trials, values):
                for value, array in zip(values, arrays, strict=True):
                    numbers = real_numbers(array, value.info).astype(np.float64)
                    by_id.setdefault(value.id, []).append(numbers)
        self._whole = {number: np.stack(arrays) for number, arrays in by_id.items()}
        self._sorted = {
            number: np.sort(array.reshape(len(trials), -1)) for number, array in self._whole.items()
        }
        self._makers = {value.id: f"input {value.name}" for value in graph.inputs}
        self._makers |= {value.id: layer.name for layer in graph.layers for value in layer.outputs}

    def found_in(
        self, other: _Tensors, number: int, tolerance: float, outputs: Sequence[Value] = ()
    ) -> str | None:
        """Return the layer of another file with the same elements; None if there is none.

        Parameters
        ----------
        outputs : sequence of Value
            Where to look for an output, whose elements are to be in the same places as well, but
            for an order of axes; everywhere and anyhow for other ones.
        """
        mine = self._sorted.get(number)
        if mine is None:
            return "a constant"
        if mine.size and np.ptp(mine) == 0 and not outputs:
            return None  # nothing is known again by zeros
        limit = tolerance * max(float(np.abs(mine).max(initial=0)), 1e-30)
        for key in [value.id for value in outputs] or other._sorted:
            theirs = other._sorted.get(key, _NONE)
            if theirs.shape != mine.shape or not _is_close(theirs, mine, limit):
                continue
            if not outputs or _is_moved(self._whole[number], other._whole[key], limit):
                return other._makers[key]
        return None

    def error(self, other: _Tensors, number: int, outputs: Sequence[Value] = ()) -> float | None:
        """Return the greatest difference from the nearest tensor of another file.

        It is relative to the largest element, and compared as `found_in` does; None if no tensor
        there has as many elements.
        """
        mine, whole = self._sorted[number], self._whole[number]
        largest = max(float(np.abs(mine).max(initial=0)), 1e-30)
        errors = []
        for key in [value.id for value in outputs] or other._sorted:
            theirs = other._sorted.get(key, _NONE)
            if theirs.shape != mine.shape:
                continue
            pairs = _in_orders(whole, other._whole[key]) if outputs else None
            apart = [_apart(*pair) for pair in pairs or ()]
            errors.append(min(apart, default=_apart(mine, theirs)))
        return min(errors) / largest if errors else None


def _apart(left: Array, other: Array) -> float:
    """The greatest difference of two elements; infinite where only one is NaN."""
    with np.errstate(invalid="ignore"):
        differences = np.abs(left - other)
    differences[(left == other) | (np.isnan(left) & np.isnan(other))] = 0
    return float(np.nan_to_num(differences, nan=np.inf, posinf=np.inf).max(initial=0))


def _is_close(left: Array, other: Array, limit: float) -> bool:
    """Return whether no elements are further apart than a limit; NaN is not, but from NaN."""
    return bool(np.allclose(left, other, 0, limit, equal_nan=True))


def _is_moved(left: Array, other: Array, limit: float) -> bool:
    """Return whether one tensor is the other but for the order of its axes.

    A tensor whose axes are joined in one of the files counts as moved.
    """
    pairs = _in_orders(left, other)
    return pairs is None or any(_is_close(*pair, limit) for pair in pairs)


def _in_orders(left: Array, other: Array) -> list[tuple[Array, Array]] | None:
    """One tensor in each order of its axes, after the trials' axis, that another's shape fits.

    None if axes are joined in one of them, or there are too many orders.
    """
    left, other = left.squeeze(), other.squeeze()
    if left.ndim != other.ndim or left.ndim > _MOST_AXES:
        return None
    orders = itertools.permutations(range(1, left.ndim))
    moved = [left.transpose(0, *order) for order in orders]
    return [(one, other) for one in moved if one.shape == other.shape]
