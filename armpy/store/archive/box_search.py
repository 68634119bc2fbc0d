"""Search for the boxes of an array among packed bytes, by one layout of its words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from armpy.errors import ParserError
from armpy.store.archive.digits import completed, segments_of
from armpy.store.archive.packed_views import Recipe, read_view
from armpy.store.archive.word_layouts import WORD_BYTES, Words

if TYPE_CHECKING:
    import numpy.typing as npt

    from armpy.store.archive.packed_views import Array
    from armpy.store.archive.word_index import WordIndex
    from armpy.store.archive.word_layouts import WordLayout

Integers: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"
Unsigned: TypeAlias = "npt.NDArray[np.uint32]"

# Limits of the work, whatever is looked for: an array that is not found is written as it is.
_NUM_TRIALS = 1024
_MOST_STARTS = 4
_MOST_LINES = 24
_MOST_CELLS = 1 << 17
_MOST_PLACES = 4
_MOST_LINE_PLACES = 64
_MOST_VOTES = 1 << 9
_LONGEST_AXIS = 1 << 15
_MOST_SPLITS = 3
_MOST_REPAIRS = 2
# Not more, as a part of an array may lie elsewhere, and is cut off and looked for again.
_LEAST_RIGHT = 0.3


class _Box(NamedTuple):
    """Box of an array: a place, and by how much each index of each axis moves it."""

    offset: int
    axes: list[Integers]

    def cut(self, axis: int, indices: slice) -> _Box:
        """The part of it that has these indices of an axis."""
        axes = [t[indices] if number == axis else t for number, t in enumerate(self.axes)]
        return self._replace(axes=axes)

    def part(self) -> Recipe | None:
        """As a recipe says it, if it is regular enough."""
        axes, offset = [], self.offset
        for table in self.axes:
            offset += int(table[0])
            segments = segments_of(table - table[0])
            if segments is None:
                return None
            axes.append(segments)
        return {"offset": offset, "axes": axes}


class _Cut(NamedTuple):
    """An array in two along an axis, of which one is right."""

    axis: int
    right: slice
    wrong: slice


class BoxSearch:
    """Looks for an array.

    Parameters
    ----------
    index : WordIndex
    layout : WordLayout
    shift : int
        What is added to elements that are stored.
    """

    def __init__(self, index: WordIndex, layout: WordLayout, shift: int) -> None:
        self._index = index
        self._layout = layout
        self._shift = shift
        # The same numbers every time, so that the same model gives the same file.
        self._random = np.random.default_rng(0)

    def parts(self, array: Array) -> tuple[int, list[Recipe]]:
        """An axis, and the parts that lie one behind the other along it; none if not found."""
        axis, boxes = self._boxes(array, None, _MOST_SPLITS)
        parts = [box.part() for box in boxes]
        return axis or 0, [part for part in parts if part is not None]

    def _boxes(
        self, array: Array, axis: int | None, most_splits: int
    ) -> tuple[int | None, list[_Box]]:
        """Boxes along an axis that give an array; none where it cannot be found."""
        for box in self._candidates(Words(array, self._layout)):
            is_wrong = self._compared(box, array)
            if is_wrong is None:
                continue
            box, is_wrong = self._repaired(box, is_wrong, array)  # noqa: PLW2901
            if not is_wrong.any():
                return axis, [box]
            cut = _cut(is_wrong, axis) if most_splits else None
            if cut is None:
                continue
            rest = array[(slice(None),) * cut.axis + (cut.wrong,)]
            _, others = self._boxes(rest, cut.axis, most_splits - 1)
            if others:
                right = box.cut(cut.axis, cut.right)
                return cut.axis, [right, *others] if cut.right.start == 0 else [*others, right]
        return axis, []

    def _candidates(self, words: Words) -> Iterator[_Box]:
        """Where an array may lie: as it is, or wherever most lines of it say."""
        all_words = words.all_words(self._shift)
        for start, place in self._starts(all_words, words.is_telling):
            axes = (
                [[max(WORD_BYTES, self._layout.stored_bytes) * np.arange(all_words.size)]]
                if all_words.ndim == 1
                else []
            )
            tables = self._tables(all_words, words.is_telling, start, place)
            if tables is not None:
                axes.append(tables)
            for found in axes:
                offset = place - sum(int(t[n]) for t, n in zip(found, start, strict=True))
                if self._is_likely(all_words, offset, found):
                    yield _Box(offset, self._by_element(found, words))

    def _starts(
        self, all_words: Unsigned, is_telling: Bools
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        """Words of an array that are at few places, and these."""
        numbers = self._some_of(is_telling, _NUM_TRIALS)
        words = all_words.ravel()[numbers]
        places = self._index.places(words, _MOST_PLACES + 1)
        counts = (places >= 0).sum(axis=1)
        order = np.argsort(np.where(counts > 0, counts, _MOST_PLACES + 2), kind="stable")
        num_starts = 0
        for number in order[:_MOST_STARTS]:
            for place in places[number, : min(counts[number], _MOST_PLACES)]:
                if num_starts < _MOST_STARTS:
                    start = np.unravel_index(int(numbers[number]), all_words.shape)
                    yield tuple([int(n) for n in start]), int(place)
                    num_starts += 1

    def _tables(
        self, all_words: Unsigned, is_telling: Bools, start: tuple[int, ...], place: int
    ) -> list[Integers] | None:
        """By how much each index of each axis moves a word; None if there is an axis without."""
        found = []
        for axis in range(all_words.ndim):
            table = self._table(all_words, is_telling, start, place, axis)
            if table is None:
                return None
            found.append(table)
        return found

    def _table(
        self,
        all_words: Unsigned,
        is_telling: Bools,
        start: tuple[int, ...],
        place: int,
        axis: int,
    ) -> Integers | None:
        """By how much each index of an axis moves a word, as most lines along it say."""
        count = all_words.shape[axis]
        if count > _LONGEST_AXIS:
            return None
        span = 2 * WORD_BYTES * all_words.size + (1 << 16)
        low, high = max(0, place - span), place + span
        most_places = max(_MOST_PLACES, min(_MOST_LINE_PLACES, _MOST_VOTES // count))
        # Lines along the axis, and the words that they have at the start's index.
        lines = np.moveaxis(all_words, axis, -1).reshape(-1, count)
        numbers = self._some_of(np.moveaxis(is_telling, axis, -1)[..., start[axis]], _NUM_TRIALS)
        numbers = np.unique(numbers)
        found = self._index.places(lines[numbers, start[axis]], _MOST_PLACES + 1, low, high)
        # It is at more places than are looked at, and tells nothing.
        found[found[:, -1] >= 0] = -1
        firsts, copies = np.nonzero(found >= 0)
        fewest = np.argsort((found >= 0).sum(axis=1)[firsts], kind="stable")
        fewest = fewest[: max(1, min(_MOST_LINES, _MOST_CELLS // (count * most_places)))]
        places = found[firsts, copies][fewest]
        firsts = numbers[firsts[fewest]]
        if not len(firsts):
            return None
        found = self._index.places(lines[firsts], most_places + 1, low, high)
        found[found[..., -1] >= 0] = -1  # there are too many of them to tell anything
        moves = np.where(found >= 0, found - places[:, None, None], _NOWHERE)
        table, votes = _most_common(moves.transpose(1, 0, 2).reshape(count, -1))
        known = votes >= min(2, len(np.unique(firsts)))
        return completed(table, known)

    def _some_of(self, is_telling: Bools, most: int) -> Integers:
        """Numbers of some words that are telling."""
        numbers = np.flatnonzero(is_telling)
        return self._random.choice(numbers, most) if len(numbers) > most else numbers

    def _is_likely(self, all_words: Unsigned, offset: int, tables: list[Integers]) -> bool:
        """Whether some of the words lie where tables say."""
        numbers = np.unravel_index(self._random.integers(0, all_words.size, 64), all_words.shape)
        places = np.full(len(numbers[0]), offset)
        for table, indices in zip(tables, numbers, strict=True):
            places += table[indices]
        return bool((self._index.at(places) == all_words[numbers]).mean() >= _LEAST_RIGHT)

    def _by_element(self, tables: list[Integers], words: Words) -> list[Integers]:
        """Tables of words as tables of elements."""
        axis, size = self._layout.axis, self._layout.stored_bytes
        places = tables[-1][:, None] + size * np.arange(words.members.shape[1])
        by_element = np.zeros(words.members.max() + 1, np.int64)
        by_element[words.members] = places
        return [*tables[:axis], by_element[: words.shape[axis]], *tables[axis:-1]]

    def _compared(self, box: _Box, array: Array) -> Bools | None:
        """Which elements a box gives wrongly; None if it cannot be one of a recipe."""
        part = box.part()
        if part is None:
            return None
        recipe = {
            "dtype": array.dtype.name,
            "shape": list(array.shape),
            "stored_bytes": self._layout.stored_bytes,
            "add": -self._shift % (1 << 8 * array.dtype.itemsize),
            "axis": 0,
            "parts": [part],
        }
        try:
            is_wrong: Bools = read_view(recipe, self._index.blob) != array
        except ParserError:  # some of it would lie outside
            return self._compared_inside(box, array)
        return is_wrong

    def _compared_inside(self, box: _Box, array: Array) -> Bools:
        """The same for a box of which some lies outside the bytes, and is wrong."""
        size, blob = self._layout.stored_bytes, self._index.blob
        stored = blob[: len(blob) // size * size].view(f"<u{size}")
        numbers = np.full(array.shape, box.offset)
        for table in np.ix_(*box.axes):
            numbers += table
        numbers //= size
        is_wrong: Bools = (numbers < 0) | (numbers >= len(stored))
        found = stored[np.where(is_wrong, 0, numbers)].astype(f"<u{array.dtype.itemsize}")
        found -= found.dtype.type(self._shift % (1 << 8 * array.dtype.itemsize))
        is_wrong |= found.view(array.dtype) != array
        return is_wrong

    def _repaired(self, box: _Box, is_wrong: Bools, array: Array) -> tuple[_Box, Bools]:
        """A box with what its own rules say in place of indices that were found wrongly."""
        for _ in range(_MOST_REPAIRS):
            by_axis = _wrong_by_axis(is_wrong)
            axis = min(range(len(by_axis)), key=lambda number: by_axis[number].mean())
            table = completed(box.axes[axis], ~by_axis[axis]) if is_wrong.any() else None
            if table is None:
                break
            other = box._replace(axes=[*box.axes[:axis], table, *box.axes[axis + 1 :]])
            compared = self._compared(other, array)
            # Only what makes it better is kept: the rules may be guessed wrongly as well.
            if compared is None or compared.sum() >= is_wrong.sum():
                break
            box, is_wrong = other, compared
        return box, is_wrong


_NOWHERE = np.int64(1) << np.int64(62)


def _most_common(moves: Integers) -> tuple[Integers, Integers]:
    """Of each line the number that is there most often, and how often."""
    ordered = np.sort(moves, axis=1)
    count, length = ordered.shape
    is_new = np.ones((count, length), bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    numbers = np.arange(length)
    firsts = np.maximum.accumulate(np.where(is_new, numbers, 0), axis=1)
    votes = np.where(ordered == _NOWHERE, 0, numbers - firsts + 1)
    best = votes.argmax(axis=1)
    rows = np.arange(count)
    return ordered[rows, best], votes[rows, best]


def _wrong_by_axis(is_wrong: Bools) -> list[Bools]:
    """Of each axis the indices with something wrong."""
    found: list[Bools] = []
    for axis in range(is_wrong.ndim):
        lines = np.moveaxis(is_wrong, axis, 0)
        wrong: Bools = np.any(lines.reshape(len(lines), -1), axis=1)
        found.append(wrong)
    return found


def _cut(is_wrong: Bools, axis: int | None) -> _Cut | None:
    """Where to cut an array so that one of the two is right; along an axis, or along any."""
    for number, wrong in enumerate(_wrong_by_axis(is_wrong)):
        if axis not in (None, number):
            continue
        places = np.flatnonzero(wrong)
        first, last, count = int(places[0]), int(places[-1]) + 1, len(wrong)
        if first > 0 and (last == count or first >= count - last):
            return _Cut(number, slice(0, first), slice(first, count))
        if last < count:
            return _Cut(number, slice(last, count), slice(0, last))
    return None
