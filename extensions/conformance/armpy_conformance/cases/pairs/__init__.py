"""Cases in which every pair of values of an operation's attributes and forms occurs."""

from __future__ import annotations

from collections.abc import Iterator

from armpy_conformance.case import Case
from armpy_conformance.cases.pairs import elementwise, images, movement, rows, weighted
from armpy_conformance.cases.pairs.form_table import FormTable

_FAMILIES = (elementwise, weighted, images, rows, movement)


def form_tables() -> Iterator[FormTable]:
    """The tables of all families."""
    for family in _FAMILIES:
        yield from family.TABLES


def pair_cases() -> Iterator[Case]:
    """Cases of all tables, the same in every run."""
    for table in form_tables():
        yield from table.cases()
