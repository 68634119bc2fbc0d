"""Programs for sizes that are traced: made again for others without lowering anything.

Notes
-----
Kernels take sizes as arguments, so that programs of one structure differ in numbers alone. Those
that follow from sizes are remembered with the `armpy.core.symbolic.Size` that they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.backend import IResizableProgram
from armpy.core.symbolic import Number, Size
from armpy_numba_acc.program.program import Figures, Program, SizedProgram, commands_by_work

_SIZED = ("num_bytes", "num_operations", "num_pieces")
"""What of a command's description follows from sizes, in the order of `Figures.table`."""


class ResizableProgram(IResizableProgram):
    """A program for traced sizes.

    Parameters
    ----------
    program : Program
        Without arguments.
    values : sequence of (int or Size)
        Its arguments.
    needed_bytes : int or Size
        Of the arena.

    Attributes
    ----------
    program : Program
        All that programs for any sizes have in common.
    """

    def __init__(
        self, program: Program, values: Sequence[int | Size], needed_bytes: int | Size
    ) -> None:
        infos = program.infos
        plain_infos = [info._replace(num_bytes=0, num_operations=0, num_pieces=1) for info in infos]
        self.program = replace(program, infos=tuple(plain_infos))
        self._works = commands_by_work(infos)
        self._num_values = len(values)
        # All in one array, as each operation on a small one takes as long as on a large one; many
        # numbers are equal, and computed once.
        every = [*values, *[getattr(info, name) for name in _SIZED for info in infos]]
        self._needed = [number for number in (*every, needed_bytes) if isinstance(number, Size)]
        keys = [(n.number, -1) if isinstance(n, Size) else (-1, n) for n in every]
        sizes = dict.fromkeys([key for key in keys if key[1] == -1 and key[0] >= 0])
        plain = dict.fromkeys([key for key in keys if key[0] == -1])
        places = {key: place for place, key in enumerate([*sizes, *plain])}
        self._sizes = [number for number, _ in sizes]
        self._plain = np.array([number for _, number in plain], np.int64)
        self._places = np.array([places[key] for key in keys], np.intp)
        self._arena = needed_bytes

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena of a program without sizes."""
        return 0

    def __str__(self) -> str:
        return f"{self.program}, for any sizes of a kind"

    def needed(self) -> Sequence[Size]:
        """All sizes that numbers follow from."""
        return self._needed

    def for_sizes(self, numbers: Sequence[Number]) -> tuple[SizedProgram, int]:
        """The program for other sizes, and bytes of its arena."""
        sizes = np.array([numbers[size] for size in self._sizes], np.int64)
        every = np.concatenate((sizes, self._plain)).take(self._places)
        num_values, arena = self._num_values, self._arena
        figures = Figures(every[num_values:].reshape(len(_SIZED), -1), self._works)
        arena_bytes = int(numbers[arena.number]) if isinstance(arena, Size) else arena
        return SizedProgram(self.program, every[:num_values], arena_bytes, figures), arena_bytes
