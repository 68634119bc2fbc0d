"""Kernel of a command: its name and its specialisation."""

from __future__ import annotations

from typing import NamedTuple


class Kernel(NamedTuple):
    """A kernel with its specialisation."""

    name: str  # its module in `armpy_numba_acc.kernels`
    parameters: tuple[int | str, ...] = ()  # what its ``make`` takes after the instruction set

    @property
    def symbol(self) -> str:
        """Name of the compiled function."""
        return "_".join((self.name, *map(str, self.parameters)))
