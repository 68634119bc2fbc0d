"""Program that a region is compiled to: commands over one arena, and constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.space import Space

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    import numpy.typing as npt

    from armpy.ops.operation import Array


class CommandInfo(NamedTuple):
    """Description of a command, for people and for profiles."""

    label: str  # layers that it computes
    kernel: str
    num_bytes: int = 0  # that it reads and writes at least
    num_operations: int = 0  # additions and multiplications, each counted
    # How many pieces each thread's share is run in; executions can be stopped in between.
    num_pieces: int = 1
    # What its time goes into, see `armpy_numba_acc.machine.work.WorkKind`.
    work: str = "floats"  # as of `WorkKind`, which no start needs
    # Operation of the first layer that it computes, and names of all of them; with where the layer
    # lies, such as ``loop/body/``. Empty if it belongs to none.
    operation: str = ""
    layer: str = ""
    part: str = ""  # what of the layer it does, such as ``pad``; empty for the layer itself

    @property
    def title(self) -> str:
        """The command for people: ``Convolution2d 'conv_3': pad``."""
        if not self.layer:
            return self.label
        return f"{self.operation} '{self.layer}'" + (f": {self.part}" if self.part else "")


class Figures(NamedTuple):
    """Numbers of all commands of a program."""

    table: npt.NDArray[np.int64]  # ndarray, int64, shape (3, commands): bytes, operations, pieces
    # Numbers of the commands whose time goes into something.
    by_work: Mapping[str, npt.NDArray[np.int64]]

    @classmethod
    def of(cls, infos: Sequence[CommandInfo]) -> Figures:
        """The numbers of some commands."""
        rows = [(info.num_bytes, info.num_operations, info.num_pieces) for info in infos]
        table = np.array(rows, np.int64).reshape(len(rows), 3).T
        return cls(table, commands_by_work(infos))


class ProgramTiming(NamedTuple):
    """Estimated time of a program, and its commands worth sharing."""

    durations_us: Sequence[float]  # of each command on one thread
    least_us: float  # see `armpy_numba_acc.program.estimate.least_shared_us`
    least_total_us: float


def commands_by_work(infos: Sequence[CommandInfo]) -> dict[str, npt.NDArray[np.int64]]:
    """Numbers of the commands whose time goes into something."""
    works = dict.fromkeys(info.work for info in infos)
    return {
        work: np.array([n for n, info in enumerate(infos) if info.work == work]) for work in works
    }


class SizedInfos(Sequence[CommandInfo]):
    """Descriptions of a program's commands, with numbers that follow from sizes.

    Parameters
    ----------
    infos : tuple of CommandInfo
        With any numbers.
    """

    def __init__(self, infos: tuple[CommandInfo, ...], figures: Figures) -> None:
        self._infos = infos
        self.figures = figures

    def __len__(self) -> int:
        return len(self._infos)

    @overload
    def __getitem__(self, index: int) -> CommandInfo: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[CommandInfo, ...]: ...

    def __getitem__(self, index: int | slice) -> CommandInfo | tuple[CommandInfo, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        num_bytes, num_operations, num_pieces = self.figures.table[:, index].tolist()
        return self._infos[index]._replace(
            num_bytes=num_bytes, num_operations=num_operations, num_pieces=num_pieces
        )

    def __iter__(self) -> Iterator[CommandInfo]:
        return (self[index] for index in range(len(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled region; two are equal only if they are one object."""

    kernels: tuple[Kernel, ...]  # each once
    command_kernels: npt.NDArray[np.int32]  # which kernel each command calls
    # Where each command's arguments begin in the two tables that follow.
    argument_starts: npt.NDArray[np.int32]
    # Numbers, or offsets into what `argument_bases` names; after those of the commands, tables.
    argument_values: npt.NDArray[np.int64]
    # -4 for the arguments themselves, -3 for what loops need, -2 for where kernels say that they
    # have failed, -1 for a number, 0 for the arena, 1 for the constants, and from 2 on the
    # program's tensors: inputs, then outputs.
    argument_bases: npt.NDArray[np.int16]
    constants: npt.NDArray[np.uint8]  # packed weights and tables
    arena_bytes: int  # working memory of one execution
    num_inputs: int
    num_outputs: int
    infos: Sequence[CommandInfo]
    isa: str  # name of the instruction set
    num_threads: int = 1  # threads that its scratch memory is for
    # Constants that other programs have as well, at addresses that are among the arguments.
    held: tuple[Array, ...] = ()
    # How constants of the region lie in `constants`: a list of `armpy.backend.packed_view` as JSON.
    views: str = "[]"

    def __str__(self) -> str:
        return f"{self.num_commands} commands for {self.isa}"

    @property
    def figures(self) -> Figures:
        """Numbers of all commands."""
        infos = self.infos
        return infos.figures if isinstance(infos, SizedInfos) else Figures.of(infos)

    @property
    def num_commands(self) -> int:
        """Number of commands."""
        return len(self.command_kernels)

    @property
    def has_loops(self) -> bool:
        """Return whether commands may be run more than once."""
        return bool((self.argument_bases == Space.CONTROL).any())


class SizedProgram(NamedTuple):
    """A program for some sizes: the numbers in which it differs from those for others."""

    program: Program  # for any sizes
    argument_values: npt.NDArray[np.int64]  # as of `Program`, and so is the rest
    arena_bytes: int
    figures: Figures

    @property
    def infos(self) -> SizedInfos:
        """Descriptions of the commands."""
        return SizedInfos(tuple(self.program.infos), self.figures)

    def __str__(self) -> str:
        return str(self.program)
