"""Samples of images and volumes between their elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache

from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import (
    F32,
    F64,
    I64,
    Code,
    CodeValue,
    choose,
    clamp,
    smaller,
    vector,
)

_SHARPNESS = -0.75
_BLOCKS = (16, 4, 1)
"""Channels at once, while so many are left."""

Tap = tuple[CodeValue, CodeValue]
"""An element's place along an axis (int64), and its weight (float64)."""


def num_taps(mode: str, num_axes: int) -> int:
    """Elements that a sample is made of."""
    along_an_axis = {"nearest": 1, "linear": 2, "cubic": 4}[mode]
    return int(along_an_axis**num_axes)


@cache
def make_taps(mode: str, padding: str, num_axes: int) -> Primitive:
    """Make ``taps(offsets, weights, grid, sizes, is_aligned)`` for one sample.

    It writes the byte offset (int64) and the weight (float64) of each element that the sample at
    the float32 coordinates `grid` is made of. `sizes` has the size of each axis, and the bytes
    between its elements.
    """

    @primitive(NOTHING, *(WORD,) * 5)
    def taps(
        code: Code,
        offsets: CodeValue,
        weights: CodeValue,
        grid: CodeValue,
        sizes: CodeValue,
        is_aligned: CodeValue,
    ) -> None:
        axes = []
        for axis in range(num_axes):
            size, pitch = (sizes.load(I64, 2 * axis + number) for number in range(2))
            coordinate = grid.load(F32, num_axes - 1 - axis)
            where = _position(coordinate, size, is_aligned > 0)
            every = _neighbours(where, size, mode, padding, is_aligned > 0)
            axes.append([(place * pitch, weight) for place, weight in every])
        for number, chosen in enumerate(itertools.product(*axes)):
            offset, weight = chosen[0]
            for other, factor in chosen[1:]:
                offset, weight = offset + other, weight * factor
            offsets.store(offset, number)
            weights.store(weight, number)

    return taps


def _position(coordinate: CodeValue, size: CodeValue, is_aligned: CodeValue) -> CodeValue:
    """A coordinate of -1 to 1 as a position of elements, in the order of CpuRef's operations."""
    moved = coordinate + 1.0
    between_centres = moved / 2.0 * (size - 1).converted("sitofp", F32)
    between_edges = (moved * size.converted("sitofp", F32) - 1.0) / 2.0
    return choose(is_aligned, between_centres, between_edges)


def _neighbours(
    where: CodeValue, size: CodeValue, mode: str, padding: str, is_aligned: CodeValue
) -> Sequence[Tap]:
    """Places along an axis that a sample is made of, and their weights."""
    if mode == "nearest":
        where = where.call("rint")
    if padding != "reflection":  # further away all is as there
        where = clamp(where, -4.0, (size + 4).converted("sitofp", F32))
    weight = where.code.constant(F64, 1.0)
    if mode == "nearest":
        return [_tap(where, weight, size, padding, is_aligned)]
    lower = where.call("floor")
    share = (where - lower).to_double()
    if mode == "linear":
        weights = [1.0 - share, share]
    else:
        weights = [_far(share + 1.0), _near(share), _near(1.0 - share), _far(2.0 - share)]
    first = lower + float(1 - len(weights) // 2)
    return [
        _tap(first + float(number), weight, size, padding, is_aligned)
        for number, weight in enumerate(weights)
    ]


def _tap(
    where: CodeValue, weight: CodeValue, size: CodeValue, padding: str, is_aligned: CodeValue
) -> Tap:
    """A whole position as an index; positions outside follow the padding mode."""
    if padding == "zeros":
        is_outside = (where < 0.0) | (where >= size.converted("sitofp", F32))
        weight = choose(is_outside, 0.0, weight)
    place, last = where.to_double(), size - 1
    if padding == "reflection":
        place = _reflected(where, size, is_aligned)
    is_nan = place.is_nan()
    inside = clamp(place, 0.0, last.converted("sitofp", F64))
    index = choose(is_nan, 0.0, inside).converted("fptosi", I64)
    return index, choose(is_nan, float("nan"), weight)


def _reflected(where: CodeValue, size: CodeValue, is_aligned: CodeValue) -> CodeValue:
    """A whole position, reflected at both edges until it is in between."""
    low = choose(is_aligned, where.like(0.0), -0.5)
    span = choose(is_aligned, size - 1, size).converted("sitofp", F64)
    distance, turn = abs(where - low).to_double(), span * 2.0
    rest = distance - (distance / turn).call("floor") * turn
    reflected = smaller(rest, turn - rest) + low.to_double()
    return choose(span.equals(0.0), where.to_double() * 0.0, reflected)


def _near(distance: CodeValue) -> CodeValue:
    """Weight of cubic convolution up to a distance of 1."""
    a = _SHARPNESS
    return (distance * (a + 2) - (a + 3)) * distance * distance + 1.0


def _far(distance: CodeValue) -> CodeValue:
    """Weight of cubic convolution from a distance of 1 to 2."""
    a = _SHARPNESS
    return ((distance * a - 5 * a) * distance + 8 * a) * distance - 4 * a


@cache
def make_weighted_sum(num_elements: int) -> Primitive:
    """Make ``add_up(target, source, offsets, weights, channels)``.

    Each of some neighbouring float32 channels becomes the sum of its elements at the offsets times
    their weights, in float64.
    """

    @primitive(NOTHING, *(WORD,) * 5)
    def add_up(
        code: Code,
        target: CodeValue,
        source: CodeValue,
        offsets: CodeValue,
        weights: CodeValue,
        channels: CodeValue,
    ) -> None:
        def step_of(lanes: int) -> Callable[[CodeValue, list[CodeValue]], list[CodeValue]]:
            kind, wide = vector(F32, lanes), vector(F64, lanes)

            def step(channel: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
                place = source + channel * 4

                def add(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
                    elements = (place + offsets.load(I64, number)).load(kind).to_double()
                    weight = weights.load(F64, number).splat(lanes)
                    return [totals[0] + weight * elements]

                count = code.integer(num_elements)
                (total,) = loop(code, count, [code.constant(wide)], add)
                (target + channel * 4).store(total.to_single())
                return []

            return step

        done = code.integer(0)
        for lanes in _BLOCKS:
            end = done + (channels - done) / lanes * lanes
            loop(code, end, [], step_of(lanes), start=done, by=lanes)
            done = end

    return add_up
