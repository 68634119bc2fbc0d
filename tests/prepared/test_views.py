"""Arrays read out of packed bytes: recipes that are found, and recipes of hostile files."""

import copy
import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armpy.errors import ParserError
from armpy.store.archive.packed_views import DTYPES, read_view
from armpy.store.archive.view_search import find_views


def _bytes(*arrays: Any) -> np.ndarray:
    """Arrays one behind the other, each at a multiple of 64."""
    parts = []
    for array in arrays:
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        parts.append(np.pad(data, (0, -len(data) % 64 + 64)))
    return np.concatenate(parts)


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def _integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-127, 128, shape).astype(np.int8)


def _noise(size: int = 5000) -> np.ndarray:
    return np.random.default_rng(99).integers(0, 256, size).astype(np.uint8)


def _found(constant: np.ndarray, blob: np.ndarray) -> np.ndarray:
    """What the recipe that is found gives, having been a file's text in between."""
    (recipe,) = find_views([constant], blob)
    assert recipe is not None
    return read_view(json.loads(json.dumps(recipe)), blob)


def _assert_same(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes()


def test_panels_of_columns_with_a_bias_ahead_of_each_are_found() -> None:
    weights, bias, width = _floats(70, 3, 3, 20), _floats(70), 32
    columns = np.zeros((96, 181), np.float32)
    columns[:70, 0], columns[:70, 1:] = bias, weights.reshape(70, -1)
    blob = _bytes(_noise(), columns.reshape(3, width, 181).swapaxes(1, 2), _noise())
    _assert_same(_found(weights, blob), weights)
    _assert_same(_found(bias, blob), bias)


def test_groups_of_four_bytes_are_found_whatever_was_added() -> None:
    weights = _integers(48, 5, 12)
    for added in (0, 128, 23):
        stored = weights.view(np.uint8) + np.uint8(added)
        groups = stored.reshape(3, 16, 5, 3, 4).transpose(0, 2, 3, 1, 4)
        _assert_same(_found(weights, _bytes(_noise(), groups)), weights)


def test_bytes_stored_as_words_are_found() -> None:
    weights = _integers(64, 40).view(np.uint8)
    stored = weights.astype(np.int16) - 131
    groups = stored.reshape(4, 16, 10, 4).transpose(0, 2, 1, 3)
    _assert_same(_found(weights, _bytes(_noise(), groups)), weights)


def test_depth_that_is_filled_up_to_whole_groups_is_found() -> None:
    weights = _integers(32, 9, 3)
    filled = np.pad(weights, ((0, 0), (0, 0), (0, 1)))
    _assert_same(_found(weights, _bytes(filled.transpose(1, 0, 2))), weights)


def test_columns_whose_last_ones_are_laid_out_otherwise_are_found_in_parts() -> None:
    weights = _floats(40, 50)
    first, second = weights[:32].reshape(2, 16, 50).swapaxes(1, 2), weights[32:]
    blob = _bytes(first, second)
    (recipe,) = find_views([weights], blob)
    assert recipe is not None
    assert len(recipe["parts"]) == 2
    _assert_same(read_view(recipe, blob), weights)


def test_vectors_that_are_left_over_behind_panels_are_found() -> None:
    weights, bias = _floats(672, 28), _floats(672)
    lines = np.concatenate([bias[:, None], weights], axis=1)
    blob = _bytes(lines[:640].reshape(5, 128, 29).swapaxes(1, 2))[: 640 * 29 * 4]
    blob = np.concatenate([blob, _bytes(lines[640:].reshape(2, 16, 29).swapaxes(1, 2))])
    _assert_same(_found(weights, blob), weights)
    _assert_same(_found(bias, blob), bias)


def test_columns_of_zeros_are_found_between_others() -> None:
    weights = _integers(64, 64)
    weights[np.random.default_rng(1).permutation(64)[:50]] = 0
    groups = weights.reshape(4, 16, 16, 4).swapaxes(1, 2)
    _assert_same(_found(weights, _bytes(_noise(), groups)), weights)


def test_a_number_that_is_everywhere_is_read_from_one_place() -> None:
    _assert_same(
        _found(np.full(300, 7, np.int32), _bytes(_noise(), np.int32(7))), np.full(300, 7, np.int32)
    )


def test_integers_of_64_bits_and_truths_are_found() -> None:
    numbers = np.random.default_rng(3).integers(-(2**50), 2**50, (20, 30))
    _assert_same(_found(numbers, _bytes(_noise(), numbers.T)), numbers)
    truths = numbers % 2 == 0
    _assert_same(_found(truths, _bytes(_noise(), truths)), truths)


def test_truths_are_zeros_and_ones() -> None:
    recipe = {**_SOUND, "dtype": "bool", "add": 0}
    assert read_view(recipe, np.tile(np.array([0, 1], np.uint8), 50)).sum() == 12
    for byte in (10, 27, 58, 60, 63, 65):
        blob = np.zeros(100, np.uint8)
        blob[byte] = 2
        with pytest.raises(ParserError, match="bytes of 0 and 1"):
            read_view(recipe, blob)


def test_filters_with_dead_channels_are_found_in_words() -> None:
    random = np.random.default_rng(5)
    weights = np.clip(random.normal(113, 30, (3, 3, 256)), 1, 255).astype(np.uint8)
    weights[..., random.permutation(256)[:60]] = 110
    filled = np.pad(weights.astype(np.int16) - 110, ((0, 1), (0, 0), (0, 0)))
    # axes: upper pair of rows, odd row, column, block, part, quarter, lane
    order = filled.reshape(2, 2, 3, 4, 4, 4, 4).transpose(3, 2, 5, 1, 4, 6, 0)
    _assert_same(_found(weights, _bytes(_noise(), order)), weights)


def test_one_strided_view_is_not_copied_and_not_writable() -> None:
    weights = _floats(30, 40)
    blob = _bytes(weights.T)
    (recipe,) = find_views([weights], blob)
    assert recipe is not None
    found = read_view(recipe, blob)
    assert np.shares_memory(found, blob)
    assert not found.flags.writeable


def test_nan_and_negative_zero_keep_their_bits() -> None:
    weights = _floats(20, 20)
    weights[3, 4], weights[5] = np.nan, -0.0
    weights.view(np.uint32)[7, 7] = 0x7FC12345
    _assert_same(_found(weights, _bytes(weights.T)), weights)


def test_what_is_not_there_is_not_found() -> None:
    changed = _floats(30, 40)
    blob = _bytes(changed.T)
    changed[7, 7] += 1
    others = [changed, _integers(20, 30), np.zeros(3, np.float32), _floats(400) * 2]
    assert (
        find_views([*others, np.zeros((), np.float32), np.zeros(99, "M8[s]")], blob) == [None] * 6
    )


def test_no_bytes_hold_nothing() -> None:
    assert find_views([_floats(99)], np.zeros(0, np.uint8)) == [None]
    assert find_views([], _noise()) == []


_SHAPES = st.lists(st.integers(1, 12), min_size=1, max_size=4)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), shape=_SHAPES, dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_what_is_found_is_what_was_packed(
    data: Any, shape: list[int], dtype: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    size = np.dtype(dtype).itemsize
    weights = random.integers(0, 2 if dtype == "bool" else 256, (*shape, size), np.uint8)
    weights = weights.view(dtype)[..., 0]
    order = data.draw(st.permutations(range(len(shape))))
    pads = [(0, data.draw(st.integers(0, 3))) for _ in shape]
    blob = _bytes(_noise(200), np.pad(weights, pads).transpose(order))
    (recipe,) = find_views([weights], blob)
    if recipe is not None:
        _assert_same(read_view(json.loads(json.dumps(recipe)), blob), weights)


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
    found = read_view(_SOUND, blob)
    assert found.shape == (4, 6)
    assert [int(n) + 128 for n in found.ravel()] == expected


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


@settings(deadline=None, max_examples=300)
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
        found = read_view(recipe, blob)
    except ParserError:
        return
    assert found.nbytes <= 100
    assert set(found.tobytes()) <= {(byte + recipe["add"]) % 256 for byte in range(100)}
