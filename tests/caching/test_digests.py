"""Digests of what compiled code depends on; NumbaAcc's tests of keys hold those of parts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from armpy.store.digests import UnknownContentsError, digest_of
from armpy.types import DataType, Priority

DIFFERENT: list[object] = [
    *(
        None,
        False,
        True,
        0,
        1,
        1.0,
        -0.0,
        "",
        "1",
        b"1",
        (),
        [],
        (1,),
        [1],
        ((1,),),
        (1, 2),
        ("12",),
    ),
    *(("1", "2"), {}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": {"a": 1}}),
    *(DataType.FLOAT32, Priority.LOW, 90),
    *(np.zeros(2, np.float32), np.zeros(2, np.int32), np.zeros((2, 1), np.float32)),
    *(np.array([1, 0], np.float32), np.float32(0), np.array([1.0, float("nan")], np.float32)),
]


def test_different_values_have_different_digests() -> None:
    digests = [digest_of(value) for value in DIFFERENT]
    for (one, first), (two, second) in combinations(zip(DIFFERENT, digests, strict=True), 2):
        assert first != second, (one, two)


def test_equal_values_have_equal_digests() -> None:
    for value in DIFFERENT:
        assert digest_of(value) == digest_of(value)
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    strided = np.arange(8, dtype=np.int32)[::2]
    assert digest_of(strided) == digest_of(strided.copy())


def test_how_values_are_divided_counts() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert digest_of((1,), (2,)) != digest_of((1, 2))
    assert digest_of("a", origin=b"b") != digest_of("a")


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array([object()]), (lambda: 0,)])
def test_what_has_no_contents_to_tell_has_no_digest(value: object) -> None:
    with pytest.raises(UnknownContentsError):
        digest_of(value)
