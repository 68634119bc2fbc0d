"""Arrays that are read out of packed bytes by a recipe, so that a file holds them once.

A recipe is what JSON can hold::

    {"dtype": "int8", "shape": [64, 3, 3, 16],
     "stored_bytes": 1, "add": 128, "axis": 0,
     "parts": [{"offset": 4096,
                "axes": [[[0, [[4, 9216], [16, 4]]]], [[0, [[9, 256]]]], ...]}]}

``parts`` lie one after the other along ``axis``. Each has one list per axis, of *segments* that
lie one after the other along that axis: the offset in bytes of the segment in the part, and
``[count, stride]`` of its indices as numbers of several digits, the last one changing quickest. An
element's place is ``offset`` plus those of the axes, in bytes. There an unsigned integer of
``stored_bytes`` lies; ``add`` is added and bits beyond the type cut off. The axes may be
others than those of ``shape``, as long as the elements are as many and in the same order.
"""

from __future__ import annotations

import itertools
import math
import reprlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from armpy.errors import ParserError

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]  # Any: of the types below
    Bytes: TypeAlias = npt.NDArray[np.uint8]

Recipe: TypeAlias = dict[str, Any]  # Any: what JSON can hold

DTYPES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "float16",
    "int32",
    "uint32",
    "float32",
    "int64",
    "uint64",
    "float64",
)
"""Types of elements that arrays can have."""

_KEYS = {"dtype", "shape", "stored_bytes", "add", "axis", "parts"}
_LARGEST = 1 << 48
_MOST_DIMENSIONS = 16
_MOST_DIGITS = 24
_MOST_PIECES = 4096
"""Limits that no recipe of a sound file reaches."""


class Segment(NamedTuple):
    """Indices of an axis that lie regularly: where the first one is, and their digits."""

    start: int
    digits: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Return how many indices it is for."""
        return math.prod(count for count, _ in self.digits)

    @property
    def lowest(self) -> int:
        """The place of the element that lies in front of all others."""
        return self.start + sum(min(0, (count - 1) * stride) for count, stride in self.digits)

    @property
    def highest(self) -> int:
        """The place of the last element in memory."""
        return self.start + sum(max(0, (count - 1) * stride) for count, stride in self.digits)


class ViewPart(NamedTuple):
    """A box of the array."""

    offset: int
    axes: tuple[tuple[Segment, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return tuple([sum(segment.size for segment in axis) for axis in self.axes])

    @property
    def num_pieces(self) -> int:
        """Return how many strided views it is put together from."""
        return math.prod(len(axis) for axis in self.axes)


class PackedView(NamedTuple):
    """A recipe that was checked."""

    dtype: np.dtype[Any]  # Any: one of `DTYPES`
    shape: tuple[int, ...]
    stored: np.dtype[Any]  # Any: an unsigned integer
    add: int
    axis: int
    parts: tuple[ViewPart, ...]

    @property
    def is_plain(self) -> bool:
        """Return whether the bytes can be taken as they are."""
        is_single = len(self.parts) == 1 and self.parts[0].num_pieces == 1
        return is_single and not self.add and self.stored.itemsize == self.dtype.itemsize


def read_view(
    recipe: Recipe,  # of whatever a file holds; all of it is checked
    blob: Bytes,  # uint8, shape (bytes,); c-contiguous
) -> Array:
    """Read an array out of packed bytes.

    The result is not to be written to: a view of the bytes where one strided view says it all and
    nothing is to be added, else a copy.

    Raises
    ------
    ParserError
        If the recipe is of another form, reads outside the bytes, or makes more of them than there
        are.
    """
    # Checked as a whole, before memory is taken for anything that it says.
    view = checked(recipe, blob.size)
    if view.is_plain:
        pieces = list(_pieces(view.parts[0], view.stored, blob))
        stored = pieces[0][1]
    else:
        stored = _put_together(view, blob)
    # What NumPy does with other bytes in a bool is not defined.
    if view.dtype.kind == "b" and (stored > 1).any():
        _refuse("bytes of 0 and 1", "others")
    array: Array = stored.view(view.dtype).reshape(view.shape)
    array.flags.writeable = False
    return array


def _put_together(view: PackedView, blob: Bytes) -> Array:
    """Copy all pieces to where they belong: unsigned integers of the type's size."""
    shape = list(view.parts[0].shape)
    shape[view.axis] = sum(part.shape[view.axis] for part in view.parts)
    result = np.empty(shape, f"<u{view.dtype.itemsize}")
    begin = 0
    for part in view.parts:
        end = begin + part.shape[view.axis]
        place: list[slice] = [slice(None)] * len(shape)
        place[view.axis] = slice(begin, end)
        box = result[tuple(place)]
        for where, piece in _pieces(part, view.stored, blob):
            # Longer parts are cut off on purpose.
            box[where] = piece.astype(result.dtype, copy=False).reshape(box[where].shape)
        begin = end
    if view.add:
        result += result.dtype.type(view.add)
    return result


def _pieces(
    part: ViewPart, stored: np.dtype[Any], blob: Bytes
) -> Iterator[tuple[tuple[slice, ...], Array]]:
    """Return the place of each piece in a part's box, and a view of it with an axis per digit."""
    named = []
    for axis in part.axes:
        ends = list(itertools.accumulate(segment.size for segment in axis))
        named.append([(slice(end - s.size, end), s) for s, end in zip(axis, ends, strict=True)])
    for chosen in itertools.product(*named):
        digits = [digit for _, segment in chosen for digit in segment.digits]
        offset = part.offset + sum(segment.start for _, segment in chosen)
        shape, strides = [count for count, _ in digits], [stride for _, stride in digits]
        yield (
            tuple([where for where, _ in chosen]),
            np.ndarray(shape, stored, blob.data, offset, strides),
        )


def checked(recipe: object, size_bytes: int) -> PackedView:
    """Check a recipe, so that nothing of it reads outside some bytes."""
    if type(recipe) is not dict or recipe.keys() != _KEYS:
        _refuse(f"an object with {', '.join(sorted(_KEYS))}", recipe)
    name, stored_bytes = recipe["dtype"], recipe["stored_bytes"]
    if type(name) is not str or name not in DTYPES:
        _refuse(f"one of {', '.join(DTYPES)}", name)
    dtype = np.dtype(name).newbyteorder("<")
    # By exact type here and below: JSON's true is an int to `isinstance`.
    if type(stored_bytes) is not int or stored_bytes not in (1, 2, 4, 8):
        _refuse("1, 2, 4 or 8 bytes of an element", stored_bytes)
    if stored_bytes < dtype.itemsize:
        _refuse(f"at least {dtype.itemsize} bytes of an element", stored_bytes)
    shape = tuple([_number(n, 1) for n in _items(recipe["shape"], 0, _MOST_DIMENSIONS)])
    add = _number(recipe["add"], 0, (1 << 8 * dtype.itemsize) - 1)
    if add and dtype.kind not in "iu":
        _refuse("nothing added to values other than integers", add)
    parts = tuple([_part(part) for part in _items(recipe["parts"], 1, _MOST_PIECES)])
    axis = _number(recipe["axis"], 0, len(parts[0].axes) - 1)
    if sum(part.num_pieces for part in parts) > _MOST_PIECES:
        _refuse(f"at most {_MOST_PIECES} pieces", sum(part.num_pieces for part in parts))
    sides = {(len(part.axes), *part.shape[:axis], *part.shape[axis + 1 :]) for part in parts}
    if len(sides) != 1:
        _refuse("parts that lie side by side", sides)
    num_elements = sum(math.prod(part.shape) for part in parts)
    # Strides of 0 could make an array of any size out of few bytes.
    if num_elements != math.prod(shape) or num_elements * stored_bytes > size_bytes:
        limit = f"{math.prod(shape)} elements, in {size_bytes} bytes"
        _refuse(limit, f"{num_elements} of {stored_bytes} bytes each")
    for part in parts:
        lowest = part.offset + sum(min(s.lowest for s in axis) for axis in part.axes)
        highest = part.offset + sum(max(s.highest for s in axis) for axis in part.axes)
        if lowest < 0 or highest + stored_bytes > size_bytes:
            _refuse(f"places among {size_bytes} bytes", f"{lowest} to {highest + stored_bytes}")
    return PackedView(dtype, shape, np.dtype(f"<u{stored_bytes}"), add, axis, parts)


def _part(record: object) -> ViewPart:
    """A box, its form checked."""
    if type(record) is not dict or record.keys() != {"offset", "axes"}:
        _refuse("a part with offset and axes", record)
    axes = []
    for axis in _items(record["axes"], 1, _MOST_DIMENSIONS):
        axes.append(tuple([_segment(item) for item in _items(axis, 1, _MOST_PIECES)]))
    if sum(max(len(s.digits) for s in axis) for axis in axes) > _MOST_DIGITS:
        _refuse(f"at most {_MOST_DIGITS} digits", sum(len(axis) for axis in axes))
    return ViewPart(_number(record["offset"], 0), tuple(axes))


def _segment(record: object) -> Segment:
    """A segment, its form checked."""
    start, digits = _items(record, 2, 2)
    steps = []
    for digit in _items(digits, 0, _MOST_DIGITS):
        count, stride = _items(digit, 2, 2)
        steps.append((_number(count, 1), _number(stride, -_LARGEST)))
    return Segment(_number(start, -_LARGEST), tuple(steps))


def _items(record: object, least: int, most: int) -> list[object]:
    if type(record) is not list or not least <= len(record) <= most:
        _refuse(f"a list of {least} to {most}", record)
    return record


def _number(record: object, least: int, most: int = _LARGEST) -> int:
    """An integer within bounds."""
    if type(record) is not int or not least <= record <= most:
        _refuse(f"an integer from {least} to {most}", record)
    return record


def _refuse(expected: str, actual: object) -> NoReturn:
    """Describe the fault of a recipe."""
    raise ParserError(
        "a constant cannot be read out of packed bytes",
        where="recipe",
        expected=expected,
        actual=reprlib.repr(actual),
    )
