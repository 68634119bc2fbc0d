"""Kernel of a command: its name, and what it is specialised for."""

from __future__ import annotations

from typing import NamedTuple


class Kernel(NamedTuple):
    """A kernel with what it is specialised for.

    Parameters
    ----------
    name : str
        Its module in `armpy_numba_acc.kernels`.
    parameters : tuple of (int or str)
        What its ``make`` takes behind the instruction set.
    """

    name: str
    parameters: tuple[int | str, ...] = ()

    @property
    def symbol(self) -> str:
        """Name of the compiled function."""
        return "_".join((self.name, *map(str, self.parameters)))
