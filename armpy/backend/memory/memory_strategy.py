"""Packing of tensors with lifetimes into memory."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence

from armpy.core.dataclass import dataclass


class PackingType(enum.Enum):
    """Directions in which blocks of one bin may be apart."""

    SINGLE_AXIS = 0
    """Blocks of a bin never live at the same time; all of them are at offset 0."""
    MULTI_AXIS = 1
    """Blocks of a bin that live at the same time are at different bytes."""


@dataclass(frozen=True, slots=True)
class MemBlock:
    """One tensor's need of memory."""

    # First and last step at which it must be there, both inclusive.
    start: int
    end: int
    size_bytes: int
    offset: int = 0  # byte offset in its bin, as the strategy decides
    index: int = 0  # says which tensor it is


@dataclass(frozen=True, slots=True)
class MemBin:
    """A piece of memory and the blocks in it."""

    blocks: tuple[MemBlock, ...]
    size_bytes: int


class IMemoryOptimizerStrategy(ABC):
    """Packs blocks into bins."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The strategy's name in options."""

    @property
    @abstractmethod
    def packing_type(self) -> PackingType:
        """Return the directions in which it packs."""

    @abstractmethod
    def optimize(self, blocks: Sequence[MemBlock]) -> list[MemBin]:
        """Put every block into exactly one bin.

        Parameters
        ----------
        blocks : sequence of MemBlock
            Offsets are 0.

        Returns
        -------
        list of MemBin
            Blocks with their offsets set.
        """
