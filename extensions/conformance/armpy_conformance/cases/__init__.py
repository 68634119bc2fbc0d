"""Every operation's cases, one table per family."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from armpy_conformance.case import Case
from armpy_conformance.cases import (
    activations,
    attention,
    by_hand,
    detection,
    edge_values,
    edges,
    elementwise,
    every_bit,
    functions,
    indexing,
    lookup,
    movement,
    no_numbers,
    quantizing,
    recurrent,
    recurrent_networks,
    recurrent_sequences,
    reduction,
    seldom,
    sizes,
    spectral,
    text_features,
    volumes,
    weighted,
    whole_range,
    wide_sums,
    windows,
)
from armpy_conformance.cases.pairs import pair_cases
from armpy_conformance.cases.variations import variations, without_elements
from armpy_conformance.definitions.expected import (
    has_real_definition,
    in_real_arithmetic,
    with_expected,
)
from armpy_conformance.description import describe
from armpy_conformance.sampling.case_template import CaseTemplate

_FAMILIES = (
    elementwise,
    functions,
    activations,
    whole_range,
    weighted,
    volumes,
    wide_sums,
    no_numbers,
    windows,
    reduction,
    movement,
    quantizing,
    recurrent,
    recurrent_networks,
    recurrent_sequences,
    attention,
    spectral,
    text_features,
    detection,
    lookup,
    indexing,
)
_ON_PURPOSE = (edges, edge_values, every_bit, seldom, sizes)
"""Families whose lines are there for one thing each, and made into nothing else."""

_DELICATE = (detection, lookup, indexing, no_numbers)
"""Families whose inputs mean something: boxes, keys, NaN. They have no variations."""


@cache
def operation_cases() -> tuple[Case, ...]:
    """Every case of every operation: `sample_cases`, and every pair of values of attributes."""
    return (*sample_cases(), *pair_cases())


@cache
def sample_cases() -> tuple[Case, ...]:
    """Hand-worked cases, those of definitions, and their variations.

    Rules of the contract take their networks from these.

    Notes
    -----
    Of quantised cases CpuRef says the outputs, to the last step; the first one of each
    operation, its attributes and the inputs' width is there a second time with outputs that
    were computed with real numbers.
    """
    cases = list(by_hand.cases())
    plain: list[Case] = []
    seen: set[tuple[str, bool]] = set()
    for family in _FAMILIES:
        for case in (case for template in family.case_templates() for case in template.cases()):
            cases.append(replace(case, define=with_expected))
            name, label, types = case.id.split("/")
            key = (describe(case.operation), "16" in types)
            if key not in seen and has_real_definition(case):
                seen.add(key)
                name_in_reals = f"{name}/{label}-in-reals/{types}"
                cases.append(replace(case, id=name_in_reals, define=in_real_arithmetic))
            if family not in _DELICATE:
                plain.append(case)
    for family in _ON_PURPOSE:
        cases.extend(case for template in family.case_templates() for case in template.cases())
    return (*cases, *variations(plain), *without_elements(cases))


def all_case_templates() -> Iterator[CaseTemplate]:
    """Every line of every family's table that other lines may be made of."""
    for family in _FAMILIES:
        yield from family.case_templates()
