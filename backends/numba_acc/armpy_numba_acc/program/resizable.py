"""Programs for sizes that are traced: made again for others without lowering anything.

Notes
-----
Kernels take sizes as arguments, so that programs of one structure differ in numbers alone. Those
that follow from sizes are remembered with the `armpy.core.symbolic.Size` that they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from armpy.backend import IResizableProgram
from armpy.core.symbolic import Number, Size
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.memory import reaches
from armpy_numba_acc.program.program import (
    CommandInfo,
    Figures,
    Program,
    SizedInfos,
    commands_by_work,
)

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class SymbolicNumbers:
    """Numbers of which some follow from sizes."""

    plain: Numbers  # all of them, with zeros for those
    at: Numbers  # where those are, and which size each is
    sizes: Numbers

    @classmethod
    def of(cls, numbers: Iterable[int | Size]) -> SymbolicNumbers:
        """Some numbers."""
        every = list(numbers)
        sized = [(at, number.number) for at, number in enumerate(every) if isinstance(number, Size)]
        at, sizes = np.array(sized, np.int64).reshape(-1, 2).T
        plain = [0 if isinstance(number, Size) else number for number in every]
        return cls(np.array(plain, np.int64), at, sizes)

    def for_sizes(self, numbers: npt.NDArray[np.float64]) -> Numbers:
        """The numbers for other sizes."""
        plain = self.plain.copy()
        plain[self.at] = numbers[self.sizes]
        return plain


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
        ordered = [buffer for place in places for buffer in place]
        self.numbers = {buffer: number for number, buffer in enumerate(ordered)}
        counts = np.array([len(place) for place in places], np.int64)
        self._place_of = np.repeat(np.arange(len(places)), counts)
        self._starts = np.cumsum(counts) - counts
        self._sizes = SymbolicNumbers.of(buffer.size_bytes for buffer in ordered)

    def for_sizes(self, numbers: npt.NDArray[np.float64]) -> tuple[Numbers, int]:
        """Return where each buffer begins, by its number, and bytes of the whole arena."""
        if not len(self._starts):
            return np.zeros(0, np.int64), 0
        largest = np.maximum.reduceat(self._sizes.for_sizes(numbers), self._starts)
        ends = np.cumsum(reaches(largest))
        begins = np.concatenate([[0], ends[:-1]])
        return begins[self._place_of], int(ends[-1])


def _meets(buffer: Buffer, others: Iterable[Buffer]) -> bool:
    """Return whether a buffer lives at the same time as another one."""
    return any(buffer.first <= other.last and other.first <= buffer.last for other in others)


def _now(size: int | Size) -> int:
    """A size while it is traced; what is decided by it is right for any."""
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
        self._values = SymbolicNumbers.of(values)
        numbered = [
            (at, arena.numbers[buffer]) for at, buffer in enumerate(buffers) if buffer is not None
        ]
        self._in_arena, self._numbers = np.array(numbered, np.int64).reshape(-1, 2).T
        self._arena = arena
        infos = program.infos
        self._infos = tuple(
            info._replace(num_bytes=0, num_operations=0, num_pieces=1) for info in infos
        )
        self._num_bytes = SymbolicNumbers.of(info.num_bytes for info in infos)
        self._num_operations = SymbolicNumbers.of(info.num_operations for info in infos)
        self._num_pieces = SymbolicNumbers.of(info.num_pieces for info in infos)
        self._works = commands_by_work(infos)
        figures = (figure for info in infos for figure in _figures(info))
        every: Iterable[object] = (
            *values,
            *(buffer.size_bytes for buffer in arena.numbers),
            *figures,
        )
        self._needed = [value for value in every if isinstance(value, Size)]

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
        sizes = np.array(numbers)
        values = self._values.for_sizes(sizes)
        begins, arena_bytes = self._arena.for_sizes(sizes)
        values[self._in_arena] += begins[self._numbers]
        figures = Figures(
            self._num_bytes.for_sizes(sizes),
            self._num_operations.for_sizes(sizes),
            self._num_pieces.for_sizes(sizes),
            self._works,
        )
        infos = SizedInfos(self._infos, figures)
        resized = replace(
            self._program, argument_values=values, arena_bytes=arena_bytes, infos=infos
        )
        return resized, arena_bytes


def _figures(info: CommandInfo) -> tuple[int, int, int]:
    """Numbers of a command that follow from sizes."""
    return info.num_bytes, info.num_operations, info.num_pieces
