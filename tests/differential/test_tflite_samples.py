"""Every builtin operator in every kind of elements that LiteRT runs it in gives the same here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

import armpy
from armpy.errors import ArmpyError
from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT, Tolerance
from armpy_testing import compared_arrays as arrays
from armpy_testing.litert_oracle import litert_or_skip
from tests.differential.litert_samples import by_litert
from tests.differential.tflite_samples import all_samples, facts
from tests.differential.tflite_samples.making import Sample
from tests.differential.tflite_samples.unlike import UNLIKE, reason_for
from tests.support.tflite_files import known_operators

litert_or_skip()

OPERATORS = sorted(known_operators().intersection(facts()))
TOLERANCE = {2: 2e-3, 4: 1e-5, 8: 1e-5}
"""Of floats, by their bytes, relative to the largest element."""


def by_armpy(sample: Sample) -> list[Array]:
    """Armpy's outputs."""
    with armpy.load(sample.file, backends=["CpuRef"]) as model:
        answer = model(*map(in_pairs, sample.inputs))
    return [_bytes(np.asarray(x)) for x in (answer if isinstance(answer, tuple) else (answer,))]


def _bytes(array: Array) -> Array:
    """Strings as the bytes that LiteRT gives; others as they are."""
    if array.dtype != object:
        return array
    byte_strings = np.empty(array.shape, object)
    byte_strings.reshape(-1)[:] = [text.encode() for text in array.reshape(-1).tolist()]
    return byte_strings


def in_pairs(array: Array) -> Array:
    """Complex numbers as the pairs that armpy takes and gives; others as they are."""
    if array.dtype.kind != "c":
        return array
    return np.stack((array.real, array.imag), axis=-1)


@cache
def samples() -> dict[str, list[Sample]]:
    """Samples that LiteRT runs, by operator."""
    runs = facts()
    by_operator: dict[str, list[Sample]] = {}
    for sample in all_samples():
        if sample.number in runs.get(sample.operator, {}).get(sample.kind, []):
            by_operator.setdefault(sample.operator, []).append(sample)
    return by_operator


def difference(sample: Sample) -> str:
    """What is not the same; empty if nothing is."""
    theirs = list(map(in_pairs, by_litert(sample)))
    try:
        ours = by_armpy(sample)
    except ArmpyError as error:
        return str(error)
    if sample.is_random:
        same = [(a.shape, a.dtype) for a in ours] == [(a.shape, a.dtype) for a in theirs]
        return "" if same else "dtypes or shapes differ"
    pairs = zip(ours, theirs, strict=True)
    texts = (arrays.difference(other, mine, allowed(other, sample)) for mine, other in pairs)
    return "; ".join(filter(None, texts))


def allowed(theirs: Array, sample: Sample) -> Tolerance:
    """How far armpy's output may be from LiteRT's."""
    if theirs.dtype.kind == "f":
        share = max(sample.tolerance, TOLERANCE[theirs.dtype.itemsize])
        return arrays.of_largest(theirs, share, least=1e-6)
    return Tolerance(sample.steps) if theirs.dtype.kind in "iu" else EXACT


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_gives_what_litert_gives_in_every_kind(operator: str) -> None:
    failed = list(_failures(operator))
    assert not failed, "\n".join(failed)


def _failures(operator: str) -> Iterator[str]:
    """Samples that differ but are not known to, and kinds that are known to but do not."""
    unlike: set[str] = set()
    for sample in samples()[operator]:
        text = difference(sample)
        if text and reason_for(operator, sample.kind):
            unlike.add(sample.kind)
        elif text:
            yield f"{sample}: {text}"
    for name, kind in UNLIKE:
        if name == operator and kind in facts()[name] and kind not in unlike:
            yield f"{operator} {kind} is said to differ, but does not"
