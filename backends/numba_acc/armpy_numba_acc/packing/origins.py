"""Origins of packed elements: which of them are a constant's, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from armpy import backend
from armpy.core.dataclass import dataclass

if TYPE_CHECKING:
    from armpy.backend.memory.packed_view import View

Array = npt.NDArray[Any]  # Any: of every type


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """Origin of some packed elements: a constant, and how its elements were moved."""

    shape: tuple[int, ...]  # of the constant
    # The constant's axes in the order in which they lie in memory, the outermost first.
    axes: tuple[int, ...]
    # Of the constant.
    dtype: np.dtype[Any]  # Any: of every type
    # The packer: gives the elements of an array of this shape, of any type, as rows in the order in
    # which they are stored, with zeros in between.
    moved: Callable[[Array], Array]
    stored_bytes: int  # of an element
    begin: int = 0  # bytes in front of the first row
    pitch: int = 0  # bytes from one row to the next
    # The number that gives the constant's elements when it is added to the stored ones.
    add: int = 0
    group: object = None  # the same for all origins that are parts of one constant
    # Neighbours along the last axis that stay so: `moved` takes one element in place of them, too.
    together: int = 1

    @classmethod
    def of(
        cls,
        constant: Array,
        moved: Callable[[Array], Array],
        stored_bytes: int,
        begin: int = 0,
        pitch: int = 0,
        add: int = 0,
        together: int = 1,
    ) -> Origin:
        """The origin of a constant's elements; nothing of the array itself is kept."""
        axes = _axes_in_memory(constant)
        sizes = stored_bytes, begin, pitch, add, None, together
        return cls(constant.shape, axes, constant.dtype, moved, *sizes)

    @classmethod
    def plain(cls, constant: Array, add: int = 0) -> Origin:
        """The origin of elements that are stored in the constant's own order."""
        return cls.of(constant, _as_one_row, constant.itemsize, add=add)

    def after(self, part: Part, add: int = 0) -> Origin:
        """The same elements' origin, if they were a part of a constant before, and lessened."""
        pack, choose = self.moved, part.chosen
        return replace(
            self,
            shape=part.constant.shape,
            axes=_axes_in_memory(part.constant),
            dtype=part.constant.dtype,
            moved=lambda values: pack(choose(values)),
            add=self.add + add,
            group=part.group,
        )

    def places(self, offset: int) -> Array:
        """Places of the elements among packed bytes, from an offset on; -1 for absent ones."""
        shape = [self.shape[axis] for axis in self.axes]
        is_in_order = self.axes == tuple(range(len(shape)))
        together = self.together if is_in_order else 1
        shape[-1:] = [count // together for count in shape[-1:]]
        stored_bytes = self.stored_bytes * together
        size = int(np.prod(shape))
        # The packer itself says where elements go: they are numbers here, 0 where there is none.
        elements = np.arange(1, size + 1, dtype=np.int32).reshape(shape)
        packed = self.moved(elements.transpose(np.argsort(self.axes)))
        numbers = packed.reshape(len(packed), -1)
        starts = offset + self.begin + self.pitch * np.arange(len(numbers), dtype=np.int64)
        places = starts[:, None] + stored_bytes * np.arange(numbers.shape[1])
        if places[-1, -1] < 1 << 31:
            places = places.astype(np.int32)  # all is faster with these
        by_number = np.full(size + 1, -1, places.dtype)
        # Backwards, so that the first of several copies counts.
        by_number[numbers.ravel()[::-1]] = places.ravel()[::-1]
        by_word: Array = by_number[1:].reshape(shape)
        if together == 1:
            return by_word
        neighbours = self.stored_bytes * np.arange(together, dtype=places.dtype)
        by_element: Array = by_word[..., None] + neighbours
        return by_element.reshape(self.shape)


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A part of a constant that is packed by itself."""

    constant: Array  # ndarray
    chosen: Callable[[Array], Array]  # gives the part of an array of this shape, of any type
    group: object = None  # the same for all parts of the constant


def views_of(origins: Iterable[tuple[int, Origin]]) -> list[View]:
    """Return how constants lie among packed bytes, each origin from an offset on.

    A constant of which some elements are not there has no view, nor one that lies irregularly.
    """
    groups: dict[object, list[tuple[int, Origin]]] = {}
    for number, (offset, origin) in enumerate(origins):
        key = number if origin.group is None else (origin.group, origin.add)
        groups.setdefault(key, []).append((offset, origin))
    views = []
    for parts in groups.values():
        places = reduce(np.maximum, [origin.places(offset) for offset, origin in parts])
        _, first = parts[0]
        view = None
        if places.min(initial=0) >= 0:
            view = backend.packed_view(
                places, first.dtype, stored_bytes=first.stored_bytes, add=first.add
            )
        if view is not None:
            views.append(view)
    return views


@dataclass(frozen=True, eq=False, slots=True)
class PackedArray:
    """Packed elements, and what can be read out of them again."""

    array: Array  # ndarray
    origins: tuple[Origin, ...] = ()

    @property
    def pitch(self) -> int:
        """Bytes of each of its rows."""
        return self.array.nbytes // len(self.array)

    def after(self, part: Part, add: int = 0) -> PackedArray:
        """The same, its first origin being a part of a constant; see `Origin.after`."""
        first, *others = self.origins
        return PackedArray(self.array, (first.after(part, add), *others))

    def of(self, part: Part | None) -> PackedArray:
        """The same if its first origin is a part of a constant, and not one itself."""
        return self if part is None or not self.origins else self.after(part)


def _axes_in_memory(array: Array) -> tuple[int, ...]:
    """Axes of an array, those with the largest strides first."""
    return tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))


def _as_one_row(values: Array) -> Array:
    """Elements in their own order."""
    return values.reshape(1, -1)
