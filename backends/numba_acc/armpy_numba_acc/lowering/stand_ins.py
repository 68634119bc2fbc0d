"""Arrays that stand for tensors, of which only shapes and strides matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from types import EllipsisType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.core.symbolic import is_traced
from armpy.ops.operation import Array

Index: TypeAlias = slice | int | EllipsisType


@dataclass(frozen=True, slots=True)
class Strided:
    """Array without its elements, for sizes that are traced.

    It has a part of the attributes of arrays. Code that uses any other attribute fails or has to
    ask for the sizes.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    offset_bytes: int = 0  # after the beginning of the whole

    @classmethod
    def contiguous(cls, shape: Sequence[int], itemsize: int) -> Strided:
        """A whole array."""
        strides = [itemsize]
        for size in reversed(shape[1:]):
            strides.append(strides[-1] * size)
        return cls(tuple(shape), tuple(reversed(strides[: len(shape)])), itemsize)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    def transpose(self, *axes: int | Sequence[int]) -> Strided:
        """Axes in another order."""
        order = _in_one(axes)
        shape = tuple(self.shape[axis] for axis in order)
        strides = tuple(self.strides[axis] for axis in order)
        return replace(self, shape=shape, strides=strides)

    def swapaxes(self, one: int, other: int) -> Strided:
        """Two axes in each other's place."""
        order = list(range(self.ndim))
        order[one], order[other] = order[other], order[one]
        return self.transpose(order)

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Strided:
        items: list[Any] = list(index) if isinstance(index, tuple) else [index]  # Any: see `Index`
        if Ellipsis not in items:
            items.append(Ellipsis)
        at = items.index(Ellipsis)
        items[at : at + 1] = [slice(None)] * (self.ndim - len(items) + 1)
        shape, strides, offset = [], [], self.offset_bytes
        for item, size, stride in zip(items, self.shape, self.strides, strict=True):
            if not isinstance(item, slice):
                offset = offset + _from_front(item, size) * stride
                continue
            step = 1 if item.step is None else item.step
            lowest, highest = (0, size) if step > 0 else (-1, size - 1)
            ends = (lowest, highest) if step > 0 else (highest, lowest)
            limits = zip((item.start, item.stop), ends, strict=True)
            start, stop = (
                otherwise if limit is None else min(max(_from_front(limit, size), lowest), highest)
                for limit, otherwise in limits
            )
            shape.append(max(-((start - stop) // step), 0))
            strides.append(step * stride)
            offset = offset + start * stride
        return Strided(tuple(shape), tuple(strides), self.itemsize, offset)

    def reshape(self, *shape: int | Sequence[int]) -> Strided:
        """Axes taken apart or joined, which only a view of the same elements can have."""
        wanted = _in_one(shape)
        if self.size == 0:
            contiguous = Strided.contiguous(wanted, self.itemsize)
            return replace(contiguous, offset_bytes=self.offset_bytes)
        strides: list[int] = []
        old = [pair for pair in zip(self.shape, self.strides, strict=True) if pair[0] != 1]
        for size in reversed(wanted):
            if size == 1:
                strides.append(self.itemsize)
                continue
            if not old:
                raise NotImplementedError("another number of elements")
            length, stride = old.pop()
            while length % size != 0 or length < size:  # joined
                if not old or old[-1][1] != length * stride:
                    raise NotImplementedError("a copy")
                length = old.pop()[0] * length
            strides.append(stride)
            if length != size:
                old.append((length // size, stride * size))
        if old:
            raise NotImplementedError("another number of elements")
        return replace(self, shape=tuple(wanted), strides=tuple(reversed(strides)))

    def __array__(self, *_: object, **__: object) -> NoReturn:
        """There are no elements.

        Raises
        ------
        TypeError
            Always: NumPy would make something else of it.
        """
        raise TypeError("it has no elements")


def _in_one(sizes: tuple[int | Sequence[int], ...]) -> tuple[int, ...]:
    first = sizes[0] if sizes else ()
    return tuple(first) if isinstance(first, Sequence) else sizes  # type: ignore[return-value]


def _from_front(position: int, size: int) -> int:
    """Return a position that may be counted from the end, from the front."""
    return position if position >= 0 else position + size


def stand_in_of(shape: Sequence[int], itemsize: int, *others: int) -> Array:
    """An array, or a `Strided` in its place where sizes are traced; its elements mean nothing.

    Parameters
    ----------
    *others
        Sizes that it is cut at.
    """
    if is_traced(*shape, *others):
        return Strided.contiguous(tuple(shape), itemsize)  # type: ignore[return-value]
    return np.empty(tuple(shape), f"V{itemsize}")


def broadcast(part: Array, shape: Sequence[int]) -> Array:
    """A part that is repeated as NumPy does."""
    if not isinstance(part, Strided):
        return np.broadcast_to(part, tuple(shape))
    added = len(shape) - part.ndim
    pairs = zip(part.shape, part.strides, shape[added:], strict=True)
    strides = [stride if size == wanted else 0 for size, stride, wanted in pairs]
    return replace(part, shape=tuple(shape), strides=(*[0] * added, *strides))


def offset_within(part: Array, whole: Array) -> int:
    """Return the offset in bytes of a part's first element from the start of the whole."""
    if isinstance(part, Strided) and isinstance(whole, Strided):
        return part.offset_bytes - whole.offset_bytes
    return int(part.ctypes.data - whole.ctypes.data)
