"""Programs for sizes that are traced: made again for others without lowering anything.

Notes
-----
Kernels take sizes as arguments, so that programs of one structure differ in numbers alone. Those
that follow from sizes are remembered with the `armpy.core.symbolic.Size` that they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from armpy.backend import IResizableProgram
from armpy.core.symbolic import Number, Size, is_traced
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.memory import reach
from armpy_numba_acc.program.program import (
    Figures,
    Program,
    SizedInfos,
    commands_by_work,
)

_SIZED = ("num_bytes", "num_operations", "num_pieces")
"""What of a command's description follows from sizes, in the order of `Figures`."""


class Arena:
    """Arena of buffers whose sizes follow from others: those that share a place never meet.

    A place is as large as the largest buffer that it is shared by. Which share one is decided for
    the sizes that are traced, the largest first.

    Parameters
    ----------
    buffers : sequence of Buffer
        Of the arena; those that no command touches have no place.

    References
    ----------
    Pisarchyk, Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020 (shared
    objects).
    """

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        used = [buffer for buffer in buffers if buffer.first >= 0]
        places: list[list[Buffer]] = []
        for buffer in sorted(used, key=lambda buffer: -_now(buffer.size_bytes)):
            place = next((placed for placed in places if not _meets(buffer, placed)), None)
            if place is None:
                places.append([buffer])
            else:
                place.append(buffer)
        self.place_of = {buffer: number for number, place in enumerate(places) for buffer in place}
        self._sizes = [_largest([buffer.size_bytes for buffer in place]) for place in places]

    def begins(self, numbers: Sequence[Number]) -> tuple[list[int], int]:
        """Return where each place begins, and bytes of the whole arena."""
        # Python's integers: as few as these take NumPy longer.
        begins, end = [], 0
        for plain, traced in self._sizes:
            begins.append(end)
            end += reach(max([plain, *[int(numbers[number]) for number in traced]]))
        return begins, end


def _largest(sizes: Iterable[int | Size]) -> tuple[int, list[int]]:
    """The largest of sizes that are plain, or 0, and the numbers of the others."""
    plain = [size for size in sizes if not isinstance(size, Size)]
    return max(plain, default=0), [size.number for size in sizes if isinstance(size, Size)]


def _meets(buffer: Buffer, others: Iterable[Buffer]) -> bool:
    """Return whether a buffer lives at the same time as another one."""
    return any(buffer.first <= other.last and other.first <= buffer.last for other in others)


def _now(size: int | Size) -> int:
    """A size while it is traced; decisions by it hold for any size."""
    return size.now if isinstance(size, Size) else size  # type: ignore[return-value]


class ResizableProgram(IResizableProgram):
    """A program for traced sizes.

    Parameters
    ----------
    program : Program
        With zeros for what follows from sizes.
    values : sequence of (int or Size)
        Its arguments; without the places of buffers in the arena.
    buffers : sequence of (Buffer or None)
        Which buffer of the arena each argument lies in.
    """

    def __init__(
        self,
        program: Program,
        values: Sequence[int | Size],
        buffers: Sequence[Buffer | None],
        arena: Arena,
    ) -> None:
        self._program = program
        self._arena = arena
        infos = program.infos
        figures = [getattr(info, name) for name in _SIZED for info in infos]
        # All in one array, as each operation on a small one takes as long as on a large one.
        every = [*values, *figures]
        self._plain = np.array([0 if is_traced(number) else number for number in every], np.int64)
        # A table of 0, sizes and where places begin; two of these are added to each number.
        sizes = {number.number: None for number in every if isinstance(number, Size)}
        self._sizes = list(sizes)
        at = {number: 1 + index for index, number in enumerate(self._sizes)}
        self._first = np.array([at[n.number] if isinstance(n, Size) else 0 for n in every])
        self._second = np.zeros(len(every), np.int64)
        self._second[: len(buffers)] = [
            0 if buffer is None else 1 + len(at) + arena.place_of[buffer] for buffer in buffers
        ]
        self._infos = tuple(
            info._replace(num_bytes=0, num_operations=0, num_pieces=1) for info in infos
        )
        self._works = commands_by_work(infos)
        sized = [buffer.size_bytes for buffer in arena.place_of]
        self._needed = [number for number in (*every, *sized) if isinstance(number, Size)]

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena of a program without sizes."""
        return 0

    def __str__(self) -> str:
        return f"{self._program}, for any sizes of a kind"

    def needed(self) -> Sequence[Size]:
        """All sizes that numbers follow from."""
        return self._needed

    def for_sizes(self, numbers: Sequence[Number]) -> tuple[Program, int]:
        """The program for other sizes, and bytes of its arena."""
        begins, arena_bytes = self._arena.begins(numbers)
        table = np.array([0, *[numbers[size] for size in self._sizes], *begins], np.int64)
        every = table.take(self._first)
        every += table.take(self._second)
        every += self._plain
        num_values = len(self._program.argument_bases)
        num_bytes, num_operations, num_pieces = every[num_values:].reshape(len(_SIZED), -1)
        figures = Figures(num_bytes, num_operations, num_pieces, self._works)
        resized = replace(
            self._program,
            argument_values=every[:num_values],
            arena_bytes=arena_bytes,
            infos=SizedInfos(self._infos, figures),
            template=self,
        )
        return resized, arena_bytes
