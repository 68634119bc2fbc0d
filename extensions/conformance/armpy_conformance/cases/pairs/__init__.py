"""Cases in which every pair of values of an operation's attributes and forms occurs."""

from __future__ import annotations

from collections.abc import Iterator

from armpy_conformance.case import Case
from armpy_conformance.cases.pairs import elementwise, images, movement, rows, weighted
from armpy_conformance.cases.pairs.space import Space

_FAMILIES = (elementwise, weighted, images, rows, movement)


def pair_spaces() -> Iterator[Space]:
    """The tables of all families."""
    for family in _FAMILIES:
        yield from family.spaces()


def pair_cases() -> Iterator[Case]:
    """Cases of all tables, the same in every run."""
    for space in pair_spaces():
        yield from space.cases()
