"""Every operation's cases, one table per family."""

from __future__ import annotations

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
    windows,
)

_FAMILIES = (
    elementwise,
    activations,
    weighted,
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
    for family in _FAMILIES:
        for sketch in family.sketches():
            made.extend(sketch.cases())
    return tuple(made)
