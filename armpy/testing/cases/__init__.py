"""Every operation's cases, one table per family."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from armpy.testing.case import Case
from armpy.testing.cases import (
    activations,
    by_hand,
    detection,
    elementwise,
    lookup,
    movement,
    quantizing,
    recurrent,
    recurrent_networks,
    reduction,
    weighted,
    whole_range,
    wide_sums,
    windows,
)
from armpy.testing.sketch import Sketch

_FAMILIES = (
    elementwise,
    activations,
    whole_range,
    weighted,
    wide_sums,
    windows,
    reduction,
    movement,
    quantizing,
    recurrent,
    recurrent_networks,
    detection,
    lookup,
)


@cache
def operation_cases() -> tuple[Case, ...]:
    """Every case of every operation: hand-worked ones, then those made from definitions."""
    made = list(by_hand.cases())
    for sketch in all_sketches():
        made.extend(sketch.cases())
    return tuple(made)


def all_sketches() -> Iterator[Sketch]:
    """Every line of every family's table."""
    for family in _FAMILIES:
        yield from family.sketches()
