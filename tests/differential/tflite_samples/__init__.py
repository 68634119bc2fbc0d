"""A .tflite file for each builtin operator in each kind of elements that it may have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.differential.tflite_samples import elementwise, movement, others, weighted
from tests.differential.tflite_samples.making import Sample, samples_of

FACTS = Path(__file__).with_name("litert.json")
"""Which samples LiteRT runs, as `python -m lab.website.reference.tflite` found."""


FAMILIES = (elementwise, movement, weighted, others)


def sampled_operators() -> set[str]:
    """Operators that there are samples of."""
    return {name for family in FAMILIES for operators, _, _ in family.FAMILY for name in operators}


def all_samples() -> Iterator[Sample]:
    """Every sample of every family."""
    for family in FAMILIES:
        yield from samples_of(family.FAMILY)


def facts() -> Mapping[str, Mapping[str, list[int]]]:
    """Numbers of the samples that LiteRT runs, by operator and kind."""
    numbers: dict[str, dict[str, list[int]]] = json.loads(FACTS.read_text("utf-8"))["runs"]
    return numbers
