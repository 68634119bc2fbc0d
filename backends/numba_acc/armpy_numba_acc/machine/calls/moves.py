"""Calls of kernels that move elements, or repeat them."""

from __future__ import annotations

from armpy.records import dataclass
from armpy_numba_acc.machine.call import Call, Pointer


@dataclass(frozen=True, slots=True)
class Copy(Call):
    """Copy bytes."""

    source: Pointer
    target: Pointer
    size: int


@dataclass(frozen=True, slots=True)
class MoveRuns(Call):
    """Move runs of `run` bytes between two tensors with pitches of their own.

    Parameters
    ----------
    table : Pointer
        The outer loops: `num_dims` times length, source and target pitch.
    num_items : int
        How often they turn all together.
    rows, columns : int
        The inner two loops; all pitches are in bytes.
    """

    source: Pointer
    target: Pointer
    table: Pointer
    num_dims: int
    num_items: int
    rows: int
    source_row: int
    target_row: int
    columns: int
    source_column: int
    target_column: int
    run: int


@dataclass(frozen=True, slots=True)
class MoveElements(Call):
    """Move elements of `size` bytes; as `MoveRuns` otherwise."""

    parameters = ("size",)

    size: int
    source: Pointer
    target: Pointer
    table: Pointer
    num_dims: int
    num_items: int
    rows: int
    source_row: int
    target_row: int
    columns: int
    source_column: int
    target_column: int
