"""NNAPI's reductions against real arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from armpy_nnapi import OperandCode, OperationCode
from tests.differential.nnapi_peers import (
    BOOL8,
    FLOATS,
    IMAGE_TYPES,
    INT32,
    ITEM_TYPES,
    QUANTIZED,
    Array,
    Draw,
    Expected,
    Instance,
    Tensor,
    boolean,
    check_instances,
    integer,
    integers,
    is_quantized,
    moved,
    names,
)

_O = OperationCode


def reduced(
    values: Array, axes: list[int], keep_dims: bool, function: Callable[[list[float]], float]
) -> Array:
    """A function of all elements that differ by their position along some axes only."""
    gone = {axis % values.ndim for axis in axes}
    groups: dict[tuple[int, ...], list[float]] = {}
    for index in np.ndindex(values.shape):
        left_position = tuple(0 if i in gone else position for i, position in enumerate(index))
        groups.setdefault(left_position, []).append(values[index].item())
    results = np.empty([1 if i in gone else dim for i, dim in enumerate(values.shape)])
    for left_position, elements in groups.items():
        results[left_position] = function(elements)
    if not keep_dims:
        left = [dim for i, dim in enumerate(values.shape) if i not in gone]
        results = results.reshape(left or [1])
    return results


def axes_of(draw: Draw, source: Tensor) -> list[int]:
    """Some axes of a tensor, in any order, some negative and some more than once."""
    rank = source.stored.ndim
    return [draw.size(rank - 1, -rank) for _ in range(draw.size(rank))]


REDUCTIONS: dict[OperationCode, tuple[Callable[[list[float]], float], tuple[OperandCode, ...]]] = {
    _O.REDUCE_ALL: (all, (BOOL8,)),
    _O.REDUCE_ANY: (any, (BOOL8,)),
    _O.REDUCE_MAX: (max, IMAGE_TYPES),
    _O.REDUCE_MIN: (min, IMAGE_TYPES),
    _O.REDUCE_PROD: (math.prod, FLOATS),
    _O.REDUCE_SUM: (math.fsum, FLOATS),
}
CASES = [(code, kind) for code, (_, kinds) in REDUCTIONS.items() for kind in kinds]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("code", "kind"), CASES, ids=names)
def test_reductions(code: OperationCode, kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        limit = 1.2 if code is _O.REDUCE_PROD else 3
        source = draw.tensor(kind, draw.shape(highest=3), -limit, limit)
        axes, keep_dims = axes_of(draw, source), draw.chance()
        values = reduced(source.stored, axes, keep_dims, REDUCTIONS[code][0])
        if code in (_O.REDUCE_PROD, _O.REDUCE_SUM):
            output = Expected(kind, values)
        else:
            output = moved(source, values.astype(source.stored.dtype))
        return Instance(code, [source, integers(axes), boolean(keep_dims)], [output])

    check_instances(make)


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
def test_mean(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(kind, draw.shape(highest=3))
        axes, keep_dims = axes_of(draw, source), draw.chance()
        values = reduced(source.real, axes, keep_dims, lambda x: math.fsum(x) / len(x))
        output = Expected(kind, values, source.scale, source.zero_point)
        return Instance(_O.MEAN, [source, integers(axes), integer(keep_dims)], [output])

    check_instances(make)


@pytest.mark.parametrize("kind", QUANTIZED, ids=names)
def test_quantised_mean_rounds_stored_means_down(kind: OperandCode) -> None:
    """As NNAPI's published vectors do."""

    def make(draw: Draw) -> Instance:
        source = draw.tensor(kind, draw.shape(highest=3))
        axes, keep_dims = axes_of(draw, source), draw.chance()
        values = reduced(source.stored, axes, keep_dims, lambda x: sum(x) // len(x))
        output = moved(source, values.astype(kind.traits.dtype))
        return Instance(_O.MEAN, [source, integers(axes), integer(keep_dims)], [output])

    check_instances(make)


@pytest.mark.parametrize("code", [_O.ARGMAX, _O.ARGMIN], ids=names)
def test_positions_of_extremes(code: OperationCode) -> None:
    choose = max if code is _O.ARGMAX else min

    def make(draw: Draw) -> Instance:
        kind = draw.pick(ITEM_TYPES)
        source = draw.tensor(kind, draw.shape())
        if not is_quantized(kind):
            source = Tensor(kind, np.round(source.stored).astype(source.stored.dtype))
        axis = draw.size(source.stored.ndim - 1, -source.stored.ndim)
        values = reduced(source.stored, [axis], False, lambda x: x.index(choose(x)))
        output = Expected(INT32, values.astype(np.int32))
        return Instance(code, [source, integer(axis)], [output])

    check_instances(make)
