"""Slicing with strides and masks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, TypeAlias

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import DataMovement, length_of, require_operand
from armpy.ops.operation import Operand, require
from armpy.tensor import MAX_RANK, Dimension, Shape, TensorInfo, format_shape

__all__ = ["StridedSlice"]

IndexEntry: TypeAlias = int | slice | None
"""Part of a NumPy index: an element, a range of elements, a new axis."""


@dataclass(frozen=True, slots=True)
class StridedSlice(DataMovement):
    """Take every n-th element of a range along each axis.

    Notes
    -----
    input (...); begin, end, stride int32 (number of entries); the output's rank follows from the
    masks. Positions beyond the borders are moved to them, except on shrunk axes.

    References
    ----------
    Arm NN StridedSlice; NNAPI STRIDED_SLICE; TFLite STRIDED_SLICE, whose ``offset`` is
    `end_is_offset`.
    """

    begin: tuple[int, ...] | None = None
    end: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    """`begin`, `end` and `stride`: per entry, the first element, exclusive end, and step, perhaps
    negative. Negative positions count from the end. Axes without an entry are taken whole.
    """
    begin_mask: int = 0
    end_mask: int = 0
    """`begin_mask` and `end_mask`: bit i: entry i of begin or end is the border.
    """
    shrink_axis_mask: int = 0
    """Bit i: only the element at begin is taken, and the axis removed."""
    ellipsis_mask: int = 0
    """Bit i (one at most): entry i stands for all remaining axes."""
    new_axis_mask: int = 0
    """Bit i: entry i adds an axis of size 1."""
    end_is_offset: bool = False
    """Whether the end counts from the beginning."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("begin", ranks=(1,), becomes="begin"),
        Operand("end", ranks=(1,), becomes="end"),
        Operand("stride", ranks=(1,), becomes="stride"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Number of elements along each axis that is left."""
        shape = inputs[0].shape or ()
        count = self._entry_count(inputs)
        if count is None:
            return (None,)
        result: list[Dimension] = []
        for entry, dim in self._entries(shape, count):
            if entry is None:
                result.append(1)
            elif not self._bit(self.shrink_axis_mask, entry):
                result.append(self._range_length(entry, dim))
            elif dim is not None:
                self._element(entry, dim)
        return (tuple(result),)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if all of it is taken in order."""
        forward = self.stride is not None and min(self.stride, default=1) > 0
        same = inputs[0].is_fully_shaped and inputs[0].shape == outputs[0].shape
        plain = not (self.shrink_axis_mask or self.new_axis_mask)
        return 0 if forward and same and plain else None

    def index(self, shape: tuple[int, ...]) -> tuple[IndexEntry, ...]:
        """NumPy index for an input's shape; `LayerValidationError` if an attribute is unusable."""
        count = len(self.begin or ())
        result: list[IndexEntry] = []
        for entry, dim in self._entries(shape, count):
            if entry is None or dim is None:
                result.append(None)
            elif self._bit(self.shrink_axis_mask, entry):
                result.append(self._element(entry, dim))
            else:
                first, last, step = self._range(entry, dim)
                # A stop of -1 is in front of the first element here, never the last one.
                span = slice(first, None if last < 0 else last, step)
                result.append(span if _length(first, last, step) else slice(0, 0))
        return tuple(result)

    def _entry_count(self, inputs: Sequence[TensorInfo]) -> Dimension:
        """Number of entries; None if not known."""
        counts: set[int] = set()
        for i, name in enumerate(("begin", "end", "stride"), start=1):
            value: tuple[int, ...] | None = getattr(self, name)
            length = length_of(require_operand(inputs, i, name)) if value is None else len(value)
            counts.update(() if length is None else (length,))
        require(
            len(counts) <= 1,
            "begin, end and stride have different lengths",
            expected="equal numbers of entries",
            actual=" and ".join(map(str, sorted(counts))),
        )
        # Each is for an axis of the input, one of the output, or the ellipsis.
        require(
            max(counts, default=0) <= 2 * MAX_RANK + 1,
            "begin, end and stride have too many entries",
            expected=f"at most {2 * MAX_RANK + 1} entries",
            actual=max(counts, default=0),
        )
        return counts.pop() if counts else None

    def _entries(self, shape: Shape, count: int) -> Iterator[tuple[int | None, Dimension]]:
        """Pairs of (entry number, size of its axis), one per axis before shrinking.

        An axis that is taken whole has entry -1; a new axis has None in place of a number.
        """
        ellipses = [self._bit(self.ellipsis_mask, entry) for entry in range(count)]
        # An ellipsis counts more than a new axis.
        news = [
            self._bit(self.new_axis_mask, n) and not is_all for n, is_all in enumerate(ellipses)
        ]
        require(
            sum(ellipses) <= 1,
            "there is more than one ellipsis",
            expected="at most one bit in ellipsis_mask",
            actual=bin(self.ellipsis_mask),
        )
        left_over = len(shape) - (count - sum(news) - sum(ellipses))
        require(
            left_over >= 0,
            "there are more entries than axes",
            expected=f"at most {len(shape)} for an input of shape {format_shape(shape)}",
            actual=count - sum(news) - sum(ellipses),
        )
        axes = iter(shape)
        for entry in range(count):
            if ellipses[entry]:
                yield from ((-1, next(axes)) for _ in range(left_over))
            elif news[entry]:
                yield None, 1
            else:
                yield entry, next(axes)
        yield from ((-1, dim) for dim in axes)

    @staticmethod
    def _bit(mask: int, entry: int) -> bool:
        return entry >= 0 and bool(mask >> entry & 1)

    def _step(self, entry: int) -> int | None:
        """Stride of an entry; None if not known."""
        if entry < 0:
            return 1
        if self.stride is None:
            return None
        step = self.stride[entry]
        require(step != 0, "a stride is 0", expected="positive or negative strides")
        return step

    def _element(self, entry: int, dim: int) -> int:
        """Position of the only element that is taken along a shrunk axis."""
        step = self._step(entry)
        require(
            step is None or step > 0,
            "a shrunk axis has a negative stride",
            expected="a stride above 0",
            actual=step,
        )
        if self.begin is None:
            return 0
        begin = 0 if self._bit(self.begin_mask, entry) else self.begin[entry]
        require(
            -dim <= begin < dim,
            "the element of a shrunk axis is out of range",
            expected=f"-{dim} to {dim - 1}",
            actual=begin,
        )
        return begin % dim

    def _range_length(self, entry: int, dim: Dimension) -> Dimension:
        """Number of elements taken along an axis; None if not known."""
        step = self._step(entry)
        known = entry < 0 or None not in (self.begin, self.end, step)
        return _length(*self._range(entry, dim)) if known and dim is not None else None

    def _range(self, entry: int, dim: int) -> tuple[int, int, int]:
        """Return the first element, the one after the last, and the step along an axis."""
        step = self._step(entry) or 1
        if entry < 0 or self.begin is None or self.end is None:
            return 0, dim, 1
        lowest, highest = (0, dim) if step > 0 else (-1, dim - 1)
        first, last = (0, dim) if step > 0 else (dim - 1, -1)
        if not self._bit(self.begin_mask, entry):
            first = _clamped(self.begin[entry], dim, lowest, highest)
        if not self._bit(self.end_mask, entry):
            end = self.end[entry] + (first if self.end_is_offset else 0)
            last = _clamped(end, dim, lowest, highest)
        return first, last, step


def _length(first: int, last: int, step: int) -> int:
    """Return how many elements a range has; `range` would fix traced sizes."""
    return max(-((first - last) // step), 0)


def _clamped(position: int, dim: int, lowest: int, highest: int) -> int:
    """A position counted from the front and moved to the borders."""
    return min(max(position + dim if position < 0 else position, lowest), highest)
