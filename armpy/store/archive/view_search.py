"""Finds out how arrays can be read out of bytes that were packed in an unknown order.

Whatever packs weights moves whole blocks: an element's place is a sum of one number per axis, or of
axes that are taken together. These numbers are found by looking up words of the array, four bytes
each, among those of the packed bytes: lines through the same place of an array differ from each
other by the same numbers wherever they lie. What was found is compared with the array bit by bit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armpy.errors import ParserError
from armpy.store.archive.box_search import BoxSearch
from armpy.store.archive.packed_views import DTYPES, Recipe, read_view
from armpy.store.archive.word_index import WordIndex
from armpy.store.archive.word_layouts import Words, layouts_of

if TYPE_CHECKING:
    from armpy.store.archive.packed_views import Array, Bytes

LEAST_BYTES = 128
"""Smaller arrays are not looked for: a recipe is as long."""

_FEW_SAMPLES = 16
_MANY_SAMPLES = 512
_FEW_LAYOUTS = 6
_MOST_FAILED = 24
"""How many arrays are looked for in vain before others are by the likely layouts alone."""
_MOST_SHIFTS = 24
_LEAST_HITS = 0.75


def find_views(constants: Sequence[Array], blob: Bytes) -> list[Recipe | None]:
    """Find out how arrays can be read out of packed bytes.

    Parameters
    ----------
    constants : sequence of ndarray
        Of any types and shapes.
    blob : ndarray, uint8, shape (bytes,)

    Returns
    -------
    list of (dict or None)
        For each array a recipe, with which `read_view` has given the same bits; None where none was
        found, or where it would be hardly smaller than the array.

    Notes
    -----
    Nothing need be known of what packed them. The work is bounded by the sizes of what is given;
    the same input gives the same recipes.
    """
    if not any(_is_worth_it(constant) for constant in constants):
        return [None] * len(constants)
    searcher = _Searcher(WordIndex(np.ascontiguousarray(blob)))
    found = []
    for constant in constants:
        recipe = searcher.recipe_of(constant) if _is_worth_it(constant) else None
        is_short = recipe is not None and len(json.dumps(recipe)) < constant.nbytes
        found.append(recipe if is_short else None)
    return found


def _is_worth_it(constant: Array) -> bool:
    """Whether an array is looked for."""
    return constant.dtype.name in DTYPES and constant.nbytes >= LEAST_BYTES


class _Searcher:
    """Looks for arrays among the same bytes."""

    def __init__(self, index: WordIndex) -> None:
        self._index = index
        self._num_failed = 0
        self._keys: list[tuple[object, ...]] = []

    def recipe_of(self, constant: Array) -> Recipe | None:
        """A recipe that gives the array, if one is found."""
        size = constant.dtype.itemsize
        plain = np.ascontiguousarray(constant)
        bits = plain if plain.dtype.kind in "iu" else plain.view(f"<u{size}")
        if (bits == bits.flat[0]).all():
            return self._repeated(constant, bits.flat[0])
        layouts = list(layouts_of(bits.shape, size))
        # A model's arrays are packed alike as a rule, so what has worked is tried first.
        layouts.sort(key=lambda one: self._keys.index(one.key) if one.key in self._keys else 99)
        for layout in layouts[: None if self._num_failed < _MOST_FAILED else _FEW_LAYOUTS]:
            boxed = bits.reshape(layout.shape)
            words = Words(boxed, layout)
            shift = self._shift_of(words)
            if shift is None:
                continue
            axis, parts = BoxSearch(self._index, layout, shift).parts(boxed)
            if not parts:
                continue
            recipe = _recipe(constant, layout.stored_bytes, shift, axis, parts)
            if self._gives(recipe, plain):
                self._keys = [layout.key, *(key for key in self._keys if key != layout.key)]
                return recipe
        self._num_failed += len(layouts) > _FEW_LAYOUTS
        return None

    def _repeated(self, constant: Array, element: np.generic) -> Recipe | None:
        """A recipe of an array that has one number everywhere."""
        size = element.itemsize
        blob = self._index.blob
        places = np.flatnonzero(blob[: len(blob) // size * size].view(element.dtype) == element)
        if not places.size or constant.size * size > len(blob):
            return None
        part = {"offset": int(places[0]) * size, "axes": [[[0, [[constant.size, 0]]]]]}
        return _recipe(constant, size, 0, 0, [part])

    def _gives(self, recipe: Recipe, wanted: Array) -> bool:
        """Whether a recipe gives an array, bit for bit."""
        try:
            found = read_view(recipe, self._index.blob)
        except ParserError:  # an array of truths that are neither 0 nor 1
            return False
        is_alike = found.shape == wanted.shape and found.dtype == wanted.dtype
        # By bits, as NaN is not equal to itself and -0 is equal to 0.
        return is_alike and found.tobytes() == wanted.tobytes()

    def _shift_of(self, words: Words) -> int | None:
        """What was added to the elements, if most words of a layout are there then."""
        shifts: Sequence[int] = words.shifts
        for count in (_FEW_SAMPLES, _MANY_SAMPLES):
            elements, is_filled = words.samples(np.random.default_rng(0), count)
            if not len(elements):
                return None
            made = [words.packed(elements, is_filled, shift) for shift in shifts]
            hits = self._index.has(np.stack(made)).mean(axis=1)
            if hits.max() < _LEAST_HITS:
                return None
            # Of small numbers most words are there whatever is added: more of them must tell.
            best = np.argsort(-hits, kind="stable")[:_MOST_SHIFTS]
            shifts = [shifts[number] for number in best if hits[number] >= _LEAST_HITS]
        return shifts[0]


def _recipe(
    constant: Array, stored_bytes: int, shift: int, axis: int, parts: list[Recipe]
) -> Recipe:
    """A recipe of an array whose elements are stored with a number added."""
    return {
        "dtype": constant.dtype.name,
        "shape": list(constant.shape),
        "stored_bytes": stored_bytes,
        "add": -shift % (1 << 8 * constant.dtype.itemsize),
        "axis": axis,
        "parts": parts,
    }
