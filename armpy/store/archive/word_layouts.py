"""Words of four bytes that an array could have become when it was packed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from armpy.store.archive.packed_views import Array

Integers: TypeAlias = "npt.NDArray[np.int64]"

WORD_BYTES = 4

_GROUPS = {1: (((0, 1, 2, 3),),), 2: (((0, 1),), ((0, 2), (1, 3))), 4: (((0,),),), 8: (((0,),),)}
"""By bytes of a stored element: which neighbours along an axis become the words of a group."""

# Each axis more doubles the ways in which neighbours can be taken together.
_MOST_AXES = 5


class WordLayout(NamedTuple):
    """Layout of elements in words.

    Parameters
    ----------
    shape : tuple of int
        The axes whose indices move an element by a number each: those of the array, or several of
        them taken together.
    axis : int
        Along which the elements of a word lie.
    stored_bytes : int
        Of a packed element.
    group : tuple of tuple of int
        Of each word of a group, which of its elements are in it.
    """

    shape: tuple[int, ...]
    axis: int
    stored_bytes: int
    group: tuple[tuple[int, ...], ...]

    @property
    def group_size(self) -> int:
        """Elements of a group."""
        return sum(len(word) for word in self.group)

    @property
    def key(self) -> tuple[object, ...]:
        """What is alike for arrays that are packed in the same manner."""
        return self.stored_bytes, self.group, len(self.shape), self.axis

    def members(self, count: int) -> Integers:
        """Indices of each word's elements along the axis, shape (words, elements)."""
        groups = -(-count // self.group_size)
        starts = self.group_size * np.arange(groups)
        members: Integers = starts[:, None, None] + np.array(self.group)
        return members.reshape(-1, len(self.group[0]))


def layouts_of(shape: tuple[int, ...], item_bytes: int) -> Iterator[WordLayout]:
    """Every layout of an array, the most likely ones first."""
    shapes = _merged(tuple([n for n in shape if n != 1]))
    for stored_bytes in (1, 2, 4) if item_bytes < 8 else (8,):
        if stored_bytes < item_bytes:
            continue
        for group in _GROUPS[stored_bytes]:
            length = sum(len(word) for word in group)
            for axes in shapes:
                for axis in reversed(range(len(axes))) if length > 1 else (0,):
                    yield WordLayout(axes, axis, stored_bytes, group)


def _merged(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """A shape with neighbouring axes taken together: not at all, then more and more of them."""
    if not 0 < len(shape) <= _MOST_AXES:
        return [(int(np.prod(shape)),)]
    found = []
    for num_cuts in reversed(range(len(shape))):
        for cuts in itertools.combinations(range(1, len(shape)), num_cuts):
            ends = zip((0, *cuts), (*cuts, len(shape)), strict=True)
            found.append(tuple([int(np.prod(shape[begin:end])) for begin, end in ends]))
    return found


class Words:
    """The words that an array becomes by a layout.

    Parameters
    ----------
    array : ndarray, of the layout's shape
        Integers; floats by their bits.
    layout : WordLayout
    """

    def __init__(self, array: Array, layout: WordLayout) -> None:
        self.layout = layout
        self._is_short = array.dtype.itemsize == 1
        self._is_signed = array.dtype.kind == "i"
        if self._is_short:
            # Wider, as up to 255 is added, and a sum would not fit into a byte.
            array = array.astype(np.int16)
        elif layout.stored_bytes == 8:
            halves = np.ascontiguousarray(array).view("<u4").reshape(*array.shape, 2)
            array = halves[..., 0]  # the lower ones
        elif array.dtype.itemsize != layout.stored_bytes:
            array = array.astype(np.int32)
        count = array.shape[layout.axis]
        self.members = layout.members(count)
        self._is_filled = self.members >= count
        lines = np.moveaxis(array, layout.axis, -1)
        groups = self.members.ravel()
        if count % layout.group_size or len(layout.group) > 1:
            lines = lines[..., np.minimum(groups, count - 1)]
        self._elements = lines.reshape(*lines.shape[:-1], *self.members.shape)
        self.shape = array.shape

    @property
    def shifts(self) -> range:
        """What may have been added to elements when they were stored."""
        if not self._is_short:
            return range(1)
        if self.layout.stored_bytes == 1:
            return range(256)
        return range(-128, 129) if self._is_signed else range(-255, 1)

    @cached_property
    def is_telling(self) -> npt.NDArray[np.bool_]:
        """Which words may be at few places: those that are not of one element throughout."""
        elements = self._elements
        others = elements[..., 1:] != elements[..., :1]
        found: npt.NDArray[np.bool_] = np.any(
            others if others.shape[-1] else elements != 0, axis=-1
        )
        return found

    def samples(self, random: np.random.Generator, count: int) -> tuple[Array, Array]:
        """Elements of some telling words, and where they are filled up."""
        is_whole = ~self._is_filled.any(axis=1)  # the others are at many places
        rows = np.flatnonzero(self.is_telling & is_whole if is_whole.any() else self.is_telling)
        if rows.size:
            rows = random.choice(rows, count)
        flat = self._elements.reshape(-1, self._elements.shape[-1])
        return flat[rows], self._is_filled[rows % len(self.members)]

    def packed(self, elements: Array, is_filled: Any, shift: int) -> npt.NDArray[np.uint32]:
        """Elements (..., elements of a word) with a number added as words."""
        if shift:
            elements = elements + elements.dtype.type(shift)
        if is_filled.any():
            elements = np.where(is_filled, elements.dtype.type(0), elements)
        kind = f"<u{min(WORD_BYTES, self.layout.stored_bytes)}"
        stored = (
            elements
            if elements.dtype.itemsize == self.layout.stored_bytes
            else elements.astype(kind)
        )
        words: npt.NDArray[np.uint32] = np.ascontiguousarray(stored).view("<u4")[..., 0]
        return words

    def all_words(self, shift: int) -> npt.NDArray[np.uint32]:
        """All of them; the axis of the layout is the last one."""
        return self.packed(self._elements, self._is_filled, shift)
