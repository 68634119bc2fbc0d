"""Views of packed bytes: how the elements of an array lie among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers: TypeAlias = npt.NDArray[np.int64]
    Segment: TypeAlias = list[int | list[list[int]]]

View: TypeAlias = dict[str, Any]  # Any: what JSON can hold

# Views are text that is read and checked at every load, and have to stay short.
_MOST_PARTS = 16
_MOST_SEGMENTS = 64


def packed_view(
    places: Integers,
    dtype: npt.DTypeLike,
    *,
    stored_bytes: int | None = None,
    add: int = 0,
) -> View | None:
    """Describe where the elements of an array lie among packed bytes.

    Parameters
    ----------
    places : ndarray, int64, shape of the array
        The byte at which each element begins.
    dtype : dtype
        Type of the array's elements.
    stored_bytes : int, optional
        Bytes that each element takes; those of the type if left out. More of them hold the same
        integer, or the same bits.
    add : int
        The addend of the stored number; the sum wraps around.

    Returns
    -------
    dict or None
        Plain data, for `SavedProgram.views`; None if the elements lie too irregularly.

    Notes
    -----
    The form is that of ``armpy/store/archive/packed_views.py``. The array may lie in several parts,
    one after the other along an axis; within a part, an index moves an element by as many bytes
    whatever the others are.
    """
    dtype = np.dtype(dtype)
    if not places.size:
        return None
    axis, parts = _parts(places.reshape([size for size in places.shape if size != 1] or [1]))
    if None in parts:
        return None
    return {
        "dtype": dtype.name,
        "shape": list(places.shape),
        "stored_bytes": stored_bytes or dtype.itemsize,
        "add": add % (1 << 8 * dtype.itemsize),
        "axis": axis,
        "parts": parts,
    }


def _parts(boxes: Integers) -> tuple[int, list[View | None]]:
    """Cut an array along one axis into parts; None for parts with irregular strides."""
    whole = _part(boxes)
    if whole is not None:
        return 0, [whole]
    for axis in range(boxes.ndim):
        parts = [_part(box) for box in _alike(boxes, axis)]
        if None not in parts:
            return axis, parts
    return 0, [None]


def _alike(boxes: Integers, axis: int) -> list[Integers]:
    """The array cut along an axis where what lies at an index begins to look otherwise inside."""
    rows = np.moveaxis(boxes, axis, 0).reshape(boxes.shape[axis], -1)
    inner = rows - rows[:, :1]
    cuts = np.flatnonzero((inner[1:] != inner[:-1]).any(axis=1)) + 1
    return np.split(boxes, cuts if len(cuts) < _MOST_PARTS else [], axis)


def _part(box: Integers) -> View | None:
    """A part of a view, if each index moves elements by a number of its own."""
    offset, axes = int(box.flat[0]), []
    # The last axis first: the rest is smaller by its length each time.
    while box.ndim:
        firsts = box[..., 0]
        line = box[(0,) * (box.ndim - 1)]
        if (box - firsts[..., None] != line - line[0]).any():
            return None
        axes.append(_segments(line - line[0]))
        box = firsts
    return None if None in axes else {"offset": offset, "axes": axes[::-1]}


def _segments(table: Integers) -> list[Segment] | None:
    """A table as the segments of a view; None if there would be very many."""
    segments: list[Segment] = []
    for start, digits in _split(table) or ():
        segments.append([start, [list(digit) for digit in digits]])
    return segments or None


def _split(table: Integers) -> list[tuple[int, list[tuple[int, int]]]] | None:
    """Return where each segment begins, and the count and the stride of each of its digits."""
    result: list[tuple[int, list[tuple[int, int]]]] = []
    while len(table):
        if len(table) == 1:
            result.append((int(table[0]), []))
            break
        steps = np.diff(table)
        uneven = np.flatnonzero(steps != steps[0])
        run = int(uneven[0]) + 1 if uneven.size else len(table)
        blocks = table[: len(table) // run * run].reshape(-1, run)
        others = np.flatnonzero((np.diff(blocks) != steps[0]).any(axis=1))
        num_blocks = int(others[0]) if others.size else len(blocks)
        outer = _split(blocks[:num_blocks, 0]) if num_blocks > 1 else [(int(table[0]), [])]
        if outer is None or len(result) + len(outer) > _MOST_SEGMENTS:
            return None
        result += [(start, [*digits, (run, int(steps[0]))]) for start, digits in outer]
        table = table[num_blocks * run :]
    return result
