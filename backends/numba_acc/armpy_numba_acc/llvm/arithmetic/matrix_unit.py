"""Matrix unit: the operations on its tiles, and the instructions for them (Intel AMX).

Notes
-----
A unit has eight tiles of up to 16 rows of 64 bytes. A configuration of 64 bytes says what each has:
byte 0 is 1 (the palette), from byte 16 on the bytes of each tile's rows in 16 bits, from byte 48 on
the number of its rows. The configuration is a thread's: nothing else works before `configure` and
after `release`.

References
----------
Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Literal

from armpy_numba_acc.llvm.values import I8, Code, CodeValue

Operands = Literal["bytes", "bfloat16"]
"""The factors: unsigned with signed bytes, four of each lane; or two of bfloat16."""


class MatrixUnit(ABC):
    """Operations on tiles, which are known by their numbers.

    Parameters
    ----------
    state : CodeValue
        Address of memory that a unit may have, the same from `begin` to `release`.
    """

    def __init__(self, code: Code, state: CodeValue) -> None:
        self.code, self.state = code, state

    def begin(self) -> None:
        """Say that the unit is not configured yet; the state may be anything."""
        return

    @abstractmethod
    def configure(self, place: CodeValue) -> None:
        """Take the configuration at an address; all tiles become zeros."""

    @abstractmethod
    def release(self) -> None:
        """Give the tiles back."""

    @abstractmethod
    def zero(self, tile: int) -> None:
        """Make zeros of a tile's elements."""

    @abstractmethod
    def load(self, tile: int, place: CodeValue, pitch: CodeValue) -> None:
        """Load a tile whose rows are so many bytes apart in memory."""

    @abstractmethod
    def store(self, tile: int, place: CodeValue, pitch: CodeValue) -> None:
        """Store a tile's rows so many bytes apart."""

    @abstractmethod
    def dot(self, operands: Operands, total: int, elements: int, weights: int) -> None:
        """Add a matrix product of two tiles to a third one: int32, or float32 of bfloat16."""


class Amx(MatrixUnit):
    """The instructions."""

    def configure(self, place: CodeValue) -> None:
        self.code.call("llvm.x86.ldtilecfg", None, _pointer(place))

    def release(self) -> None:
        self.code.call("llvm.x86.tilerelease", None)

    def zero(self, tile: int) -> None:
        self._run("tilezero", tile)

    def load(self, tile: int, place: CodeValue, pitch: CodeValue) -> None:
        self._run("tileloadd64", tile, _pointer(place), pitch)

    def store(self, tile: int, place: CodeValue, pitch: CodeValue) -> None:
        self._run("tilestored64", tile, _pointer(place), pitch)

    def dot(self, operands: Operands, total: int, elements: int, weights: int) -> None:
        name = "tdpbusd" if operands == "bytes" else "tdpbf16ps"
        number = partial(self.code.constant, I8)
        self._run(name, total, number(elements), number(weights))

    def _run(self, name: str, tile: int, *others: CodeValue) -> None:
        """An instruction whose first operand is a tile."""
        self.code.call(f"llvm.x86.{name}", None, self.code.constant(I8, tile), *others)


def _pointer(place: CodeValue) -> CodeValue:
    """An address as LLVM's own functions take it."""
    return place.converted("inttoptr", I8.as_pointer())
