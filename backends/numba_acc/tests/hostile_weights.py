"""Integer weights and elements that make sums of few bits as large as they can be."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

Limits = tuple[int, int]
"""The least and the largest weight, less the zero point."""

_STEP = 4
"""Weights whose products one instruction adds up at most."""

_LIMITS = (127, 128, 129, 129, 129, 256)
"""Sums of weights of one sign: 129 is the first one whose product with 255 is above 2**15."""


def _bounded(random: np.random.Generator, shape: tuple[int, ...], limits: Limits) -> Array:
    """Neighbours whose sums are at most a bound of their step, which is the same for all filters.

    The bounds of a layer add up to one of `_LIMITS`, so that two steps may just be added up, or
    just not. How many sums are as large as their bound is drawn, and so is where signs change.
    """
    filters, *taps, depth = shape
    steps = -(-depth // _STEP)
    limit, low = random.choice(_LIMITS), random.choice([0, 1, 3, 31, 63, 64])
    chosen = random.choice([low, limit - low, limit], 3)
    bounds = random.choice(chosen, (1, *taps, steps, 1))
    lanes = filters, *taps, steps, _STEP // 2
    is_full = random.random(lanes) < random.choice([0.02, 0.2, 1.0])
    loads = np.where(is_full, bounds, random.integers(0, bounds + 1, lanes))
    first = random.integers(np.maximum(loads - 128, 0), np.minimum(loads, 128) + 1)
    first[random.random(lanes) < 0.3] = 0
    several = (filters, *(1,) * len(lanes)), (*lanes, 1)
    signs = random.choice([-1, 1], several[random.integers(2)])
    pairs = np.stack([first, loads - first], axis=-1) * signs
    if random.random() < 0.3:
        pairs[..., 1] *= random.choice([-1, 1], lanes)
    weights: Array = pairs.reshape(filters, *taps, -1)[..., :depth]
    return weights.clip(*limits)


def _extreme(random: np.random.Generator, shape: tuple[int, ...], limits: Limits) -> Array:
    """The least and the largest weights: all alike, by filter, in turn or by chance."""
    kind, (least, most) = random.integers(4), limits
    if kind == 0:
        return np.full(shape, random.choice(limits))
    if kind == 1:
        return np.broadcast_to(
            random.choice(limits, (shape[0], *(1,) * (len(shape) - 1))), shape
        ).copy()
    if kind == 2:
        return np.where(np.arange(prod(shape)).reshape(shape) % 2, most, least)
    return random.choice(limits, shape)


def _one_large(random: np.random.Generator, shape: tuple[int, ...], limits: Limits) -> Array:
    """Small weights; in each eight filters one has some large ones, at a place that is drawn."""
    weights = random.integers(-3, 4, shape).clip(*limits)
    for row in weights.reshape(shape[0], -1)[random.integers(8) :: 8]:
        place = random.integers(row.size)
        row[place : place + random.integers(1, 3)] = random.choice(limits)
    return weights


def _sparse(random: np.random.Generator, shape: tuple[int, ...], limits: Limits) -> Array:
    """Weights of any size at the beginning of the depth, few after it."""
    weights = random.integers(*limits, shape, endpoint=True)
    is_rest = np.arange(shape[-1]) >= random.integers(shape[-1] + 1)
    weights[is_rest & (random.random(shape) > random.choice([0.0, 0.05, 0.3]))] = 0
    return weights


_STYLES: tuple[Callable[[np.random.Generator, tuple[int, ...], Limits], Array], ...] = (
    *(_bounded, _bounded, _bounded, _bounded, _bounded, _bounded),
    *(_extreme, _one_large, _sparse),
)


def hostile_weights(
    random: np.random.Generator, shape: tuple[int, ...], limits: Limits, is_wide: bool = False
) -> Array:
    """Weights of a drawn style, less the zero point: int64, neighbours along the last axis.

    Parameters
    ----------
    is_wide
        Whether elements have 16 bits: half of the weights are the largest, which 32 bits add up.
    """
    if is_wide and random.random() < 0.5:
        return _extreme(random, shape, limits)
    return _STYLES[random.integers(len(_STYLES))](random, shape, limits)


def hostile_array(random: np.random.Generator, info: TensorInfo, usual: int | None) -> Array:
    """Elements most of which are a usual one, or else the least and the largest by chance."""
    limits, shape = info.data_type.integer_range, info.known_shape
    if usual is None:
        return random.choice(limits, shape).astype(info.data_type.dtype)
    array = np.full(shape, usual)
    is_other = random.random(shape) < random.choice([0.0, 0.02, 0.2])
    array[is_other] = random.integers(*limits, shape, endpoint=True)[is_other]
    return array.astype(info.data_type.dtype)
