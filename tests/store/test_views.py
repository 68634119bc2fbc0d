"""Arrays read out of packed bytes: views that are made, and views of hostile files."""

import copy
import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armpy.backend import packed_view
from armpy.errors import ParserError
from armpy.store.archive.packed_views import DTYPES, read_view
from armpy_testing.effort import effort


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def _noise(size: int = 5000) -> np.ndarray:
    return np.random.default_rng(99).integers(0, 256, size).astype(np.uint8)


def _read(view: Any, blob: np.ndarray) -> np.ndarray:
    """What a view gives, having been a file's text in between."""
    assert view is not None
    return read_view(json.loads(json.dumps(view)), blob)


def _places(*shape: int) -> np.ndarray:
    """Places of the elements of an array of 4 bytes each, one after the other."""
    return 4 * np.arange(np.prod(shape)).reshape(shape)


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _assert_same(actual: np.ndarray, wanted: np.ndarray) -> None:
    assert actual.dtype == wanted.dtype
    assert actual.shape == wanted.shape
    assert actual.tobytes() == wanted.tobytes()


def test_what_lies_irregularly_has_no_view() -> None:
    places = 4 * np.random.default_rng(2).permutation(900).reshape(30, 30)
    assert packed_view(places, np.float32) is None
    assert packed_view(np.zeros((0, 3), np.int64), np.float32) is None


def test_integers_may_be_stored_wider_and_lessened() -> None:
    weights = np.random.default_rng(1).integers(0, 256, (6, 8)).astype(np.uint8)
    blob = _bytes(weights.T.astype(np.int16) - 131)
    places = 2 * np.arange(48).reshape(8, 6).T
    _assert_same(_read(packed_view(places, np.uint8, stored_bytes=2, add=131), blob), weights)


def test_nan_and_negative_zero_keep_their_bits() -> None:
    weights = _floats(20, 20)
    weights[3, 4], weights[5] = np.nan, -0.0
    weights.view(np.uint32)[7, 7] = 0x7FC12345
    _assert_same(_read(packed_view(_places(20, 20).T, np.float32), _bytes(weights.T)), weights)


_SHAPES = st.lists(st.integers(1, 12), min_size=1, max_size=4)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(data=st.data(), shape=_SHAPES, dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_what_was_moved_and_filled_up_is_read_again(
    data: Any, shape: list[int], dtype: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    size = np.dtype(dtype).itemsize
    weights = random.integers(0, 2 if dtype == "bool" else 256, (*shape, size), np.uint8)
    weights = weights.view(dtype)[..., 0]
    order = data.draw(st.permutations(range(len(shape))))
    pads = [(0, data.draw(st.integers(0, 3))) for _ in shape]
    packed = np.pad(weights, pads).transpose(order)
    places = size * np.arange(packed.size).reshape(packed.shape).transpose(np.argsort(order))
    places = places[tuple(map(slice, shape))]
    _assert_same(_read(packed_view(places, dtype), _bytes(packed)), weights)


def test_truths_are_zeros_and_ones() -> None:
    recipe = {**_SOUND, "dtype": "bool", "add": 0}
    assert read_view(recipe, np.tile(np.array([0, 1], np.uint8), 50)).sum() == 12
    for byte in (10, 27, 58, 60, 63, 65):
        blob = np.zeros(100, np.uint8)
        blob[byte] = 2
        with pytest.raises(ParserError, match="bytes of 0 and 1"):
            read_view(recipe, blob)


_SOUND: dict[str, Any] = {
    "dtype": "int8",
    "shape": [4, 6],
    "stored_bytes": 1,
    "add": 128,
    "axis": 0,
    "parts": [
        {"offset": 10, "axes": [[[0, [[3, 6]]]], [[0, [[2, 3], [3, 1]]]]]},
        {"offset": 60, "axes": [[[0, []]], [[3, [[3, 1]]], [0, [[3, -1]]]]]},
    ],
}


def test_a_recipe_is_read_as_documented() -> None:
    blob = np.arange(100, dtype=np.uint8)
    expected = [*range(10, 28), 63, 64, 65, 60, 59, 58]
    view = read_view(_SOUND, blob)
    assert view.shape == (4, 6)
    assert [int(n) + 128 for n in view.ravel()] == expected


_HOSTILE: list[tuple[list[Any], Any, str]] = [
    ([], None, "an object with"),
    (["dtype"], "object", "one of bool"),
    (["dtype"], ["int8"], "one of bool"),
    (["dtype"], "float32", "at least 4 bytes"),
    (["shape"], [5, 6], "30 elements"),
    (["shape"], [-4, -6], "an integer from 1"),
    (["shape"], [2**40, 2**40], "elements, in 100 bytes"),
    (["shape"], [1] * 60, "a list of 0 to 16"),
    (["shape"], [4.0, 6], "an integer"),
    (["shape"], [True, 24], "an integer"),
    (["stored_bytes"], 3, "1, 2, 4 or 8 bytes"),
    (["stored_bytes"], True, "1, 2, 4 or 8 bytes"),
    (["add"], 256, "an integer from 0 to 255"),
    (["add"], -1, "an integer from 0"),
    (["axis"], 2, "an integer from 0 to 1"),
    (["axis"], 1, "parts that lie side by side"),
    (["parts"], [], "a list of 1"),
    (["parts", 0], {}, "a part with offset and axes"),
    (["parts", 0, "offset"], -1, "an integer from 0"),
    (["parts", 0, "offset"], 83, "places among 100 bytes"),
    (["parts", 0, "offset"], 2**60, "an integer from 0"),
    (["parts", 0, "axes", 0, 0, 1, 0, 1], 2**47, "places among 100 bytes"),
    (["parts", 0, "axes", 0, 0, 1, 0, 1], -6, "places among 100 bytes"),
    (["parts", 0, "axes", 0, 0, 0], -11, "places among 100 bytes"),
    (["parts", 0, "axes", 0, 0, 1, 0], [2**40, 0], "elements, in 100 bytes"),
    (["parts", 0, "axes", 0, 0, 1, 0], [0, 1], "an integer from 1"),
    (["parts", 0, "axes", 0, 0, 1], [[1, 0]] * 30, "a list of 0 to 24"),
    (["parts", 0, "axes", 0], [[0, []]] * 5000, "a list of 1 to 4096"),
    (["parts", 0, "axes"], [[[0, []]] * 100, [[0, []]] * 100], "pieces"),
    (["parts", 1, "axes"], [[[0, [[6, 1]]]]], "parts that lie side by side"),
    (["parts", 1, "axes", 1, 1, 1, 0], [3, -(2**20)], "places among 100 bytes"),
]


@pytest.mark.parametrize(("path", "value", "match"), _HOSTILE)
def test_a_hostile_recipe_is_refused(path: list[Any], value: Any, match: str) -> None:
    recipe: Any = copy.deepcopy(_SOUND)
    if path:
        inside = recipe
        for step in path[:-1]:
            inside = inside[step]
        inside[path[-1]] = value
    else:
        recipe = value
    with pytest.raises(ParserError, match=re.escape(match)):
        read_view(recipe, np.arange(100, dtype=np.uint8))


@pytest.mark.slow
def test_lists_without_end_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (endless, deep):
        with pytest.raises(ParserError, match="cannot be read"):
            read_view({**_SOUND, "parts": value}, _noise())


_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=effort(300, quick=60))
@given(data=st.data(), value=_JUNK)
def test_a_changed_recipe_is_refused_or_reads_among_the_bytes(data: Any, value: Any) -> None:
    recipe: Any = copy.deepcopy(_SOUND)
    inside: Any = recipe
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(inside[key], dict | list) or not inside[key] or data.draw(st.booleans()):
            break
        inside = inside[key]
    inside[key] = data.draw(st.integers(-20, 100)) if data.draw(st.booleans()) else value
    blob = np.arange(100, dtype=np.uint8)
    try:
        view = read_view(recipe, blob)
    except ParserError:
        return
    assert view.nbytes <= 100
    assert set(view.tobytes()) <= {(byte + recipe["add"]) % 256 for byte in range(100)}
