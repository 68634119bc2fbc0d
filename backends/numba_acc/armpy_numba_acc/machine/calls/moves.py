"""Calls of kernels that move elements, or repeat them."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class Copy(Call):
    """Copy bytes."""

    source: Pointer
    target: Pointer
    size: int


@dataclass(frozen=True, slots=True)
class Fill(Call):
    """Fill memory with one element; `pattern` is 8 bytes of it."""

    target: Pointer
    size: int
    pattern: int


@dataclass(frozen=True, slots=True)
class NestedMove(Call):
    """Arguments at the head of all moves between two tensors."""

    source: Pointer
    target: Pointer
    table: Pointer  # the outer loops: `num_dims` times length, source and target pitch in bytes
    num_dims: int
    num_items: int  # how often they turn all together


@dataclass(frozen=True, slots=True)
class MoveRuns(NestedMove):
    """Move runs of `run` bytes between two tensors with pitches of their own.

    The inner two loops walk over rows and columns; all pitches are in bytes. The kernel is made
    for runs of `size` bytes, or for any if that is 0.
    """

    parameters = ("size",)

    rows: int
    source_row: int
    target_row: int
    columns: int
    source_column: int
    target_column: int
    run: int
    size: int = 0


@dataclass(frozen=True, slots=True)
class MoveTiles(NestedMove):
    """Transpose tensors by square tiles of `length` elements of `size` bytes.

    `width` elements lie side by side in the source and `target_pitch` bytes apart in the target,
    `height` elements the other way round. Both are `length` at least.
    """

    parameters = ("size", "length")

    size: int
    length: int
    width: int
    target_pitch: int
    height: int
    source_pitch: int


@dataclass(frozen=True, slots=True)
class ZipStreams(NestedMove):
    """Interleave streams of elements, or take them apart: `direction` is ``in`` or ``out``.

    The `count` streams have `length` elements of `size` bytes each and begin `pitch` bytes apart
    on one side; on the other one, elements of all streams alternate.
    """

    parameters = ("size", "count", "direction")

    size: int
    count: int
    direction: str
    length: int
    pitch: int
