"""Operations that read or write where indices say: element by element, in plain loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.ops import (
    Cumulate,
    GatherElements,
    Operation,
    ReduceOperation,
    ReverseSequence,
    ScatterElements,
    ScatterNd,
    ScatterReduction,
)

Numbers: TypeAlias = npt.NDArray[Any]  # Any: a tensor's own elements

_COMBINE: Mapping[ScatterReduction, Callable[[Any, Any], Any]] = {
    ScatterReduction.NONE: lambda _, new: new,
    ScatterReduction.ADD: lambda old, new: old + new,
    ScatterReduction.MUL: lambda old, new: old * new,
    ScatterReduction.MAX: np.maximum,
    ScatterReduction.MIN: np.minimum,
}


def _place(index: tuple[int, ...], axis: int, number: int) -> tuple[int, ...]:
    """An element's index with another number along an axis."""
    changed = list(index)
    changed[axis] = number
    return tuple(changed)


def _gathered(
    operation: GatherElements, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    values, indices = inputs
    gathered = np.empty(indices.shape, values.dtype)
    for index, number in np.ndenumerate(indices):
        gathered[index] = values[_place(index, operation.axis, int(number))]
    return (gathered,)


def _scattered(
    operation: ScatterElements, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    values, indices, updates = inputs
    scattered = values.copy()
    for index, number in np.ndenumerate(indices):
        place = _place(index, operation.axis, int(number))
        scattered[place] = _COMBINE[operation.reduction](scattered[place], updates[index])
    return (scattered,)


def _scattered_slices(
    operation: ScatterNd, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    values, indices, updates = inputs
    scattered = values.copy()
    for index in np.ndindex(indices.shape[:-1]):
        place = tuple(map(int, indices[index]))
        scattered[place] = _COMBINE[operation.reduction](scattered[place], updates[index])
    return (scattered,)


def _reversed(
    operation: ReverseSequence, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    values, lengths = inputs
    reversed_values = values.copy()
    for index in np.ndindex(values.shape):
        length, time = int(lengths[index[operation.batch_axis]]), index[operation.sequence_axis]
        if time < length:
            reversed_values[_place(index, operation.sequence_axis, length - 1 - time)] = values[
                index
            ]
    return (reversed_values,)


def _cumulated(
    operation: Cumulate, inputs: Sequence[Numbers], outputs: object
) -> Sequence[Numbers]:
    values, axis = inputs[0], operation.axis or 0
    sums, is_sum = np.empty_like(values), operation.operation is ReduceOperation.SUM
    for index in np.ndindex(values.shape):
        first, last = 0, index[axis]
        if operation.reverse:
            first, last = last, values.shape[axis] - 1
        total = 0 if is_sum else 1
        for number in range(first, last + 1):
            if not (operation.exclusive and number == index[axis]):
                element = values[_place(index, axis, number)]
                total = total + element if is_sum else total * element
        sums[index] = total
    return (sums,)


INDEXED_MOVEMENTS: Mapping[type[Operation], Callable[..., Sequence[Numbers]]] = {
    GatherElements: _gathered,
    ScatterElements: _scattered,
    ScatterNd: _scattered_slices,
    ReverseSequence: _reversed,
    Cumulate: _cumulated,
}
"""Definitions for elements of any type."""
