"""Program that a region is compiled to: commands over one arena, and constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.space import Space

if TYPE_CHECKING:  # what is imported here is paid for at every start of a prepared model
    import numpy.typing as npt

    from armpy.ops.operation import Array


class CommandInfo(NamedTuple):
    """Description of a command, for people and for profiles.

    Parameters
    ----------
    label : str
        Layers that it computes.
    kernel : str
    num_bytes : int
        That it reads and writes at least.
    num_operations : int
        Additions and multiplications, each counted.
    num_pieces : int
        How many pieces each thread's share is run in; executions can be stopped in between.
    work : str
        What its time goes into, see `armpy_numba_acc.machine.work.WorkKind`.
    operation, layer : str
        Operation of the first layer that it computes, and names of all of them; with where the
        layer lies, such as ``loop/body/``. Empty if it belongs to none.
    part : str
        What of the layer it does, such as ``pad``; empty for the layer itself.
    """

    label: str
    kernel: str
    num_bytes: int = 0
    num_operations: int = 0
    num_pieces: int = 1
    work: str = "floats"  # as of `WorkKind`, which no start needs
    operation: str = ""
    layer: str = ""
    part: str = ""

    @property
    def title(self) -> str:
        """The command for people: ``Convolution2d 'conv_3': pad``."""
        if not self.layer:
            return self.label
        return f"{self.operation} '{self.layer}'" + (f": {self.part}" if self.part else "")


class Figures(NamedTuple):
    """Numbers of all commands of a program.

    Parameters
    ----------
    num_bytes, num_operations, num_pieces : ndarray, int64, shape (commands,)
    by_work : mapping of str to ndarray
        Numbers of the commands whose time goes into something.
    """

    num_bytes: npt.NDArray[np.int64]
    num_operations: npt.NDArray[np.int64]
    num_pieces: npt.NDArray[np.int64]
    by_work: Mapping[str, npt.NDArray[np.int64]]

    @classmethod
    def of(cls, infos: Sequence[CommandInfo]) -> Figures:
        """The numbers of some commands."""
        return cls(
            np.array([info.num_bytes for info in infos], np.int64),
            np.array([info.num_operations for info in infos], np.int64),
            np.array([info.num_pieces for info in infos], np.int64),
            commands_by_work(infos),
        )


class ProgramTiming(NamedTuple):
    """Estimated time of a program, and what is worth sharing of it.

    Parameters
    ----------
    durations_us : ndarray, float64, shape (commands,)
        Of each command on one thread.
    least_us, least_total_us : float
        See `armpy_numba_acc.program.estimate.least_shared_us`.
    """

    durations_us: npt.NDArray[np.float64]
    least_us: float
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
    figures : Figures
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
        return self._infos[index]._replace(
            num_bytes=int(self.figures.num_bytes[index]),
            num_operations=int(self.figures.num_operations[index]),
            num_pieces=int(self.figures.num_pieces[index]),
        )

    def __iter__(self) -> Iterator[CommandInfo]:
        return (self[index] for index in range(len(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled region; two are equal only if they are one object.

    Parameters
    ----------
    kernels : tuple of Kernel
        Each once.
    command_kernels : ndarray, int32, shape (commands,)
        Which kernel each command calls.
    argument_starts : ndarray, int32, shape (commands + 1,)
        Where each command's arguments begin in the two tables that follow.
    argument_values : ndarray, int64, shape (arguments,)
        Numbers, or offsets into what `argument_bases` names; behind those of the commands, tables.
    argument_bases : ndarray, int16, shape (arguments,)
        -4 for the arguments themselves, -3 for what loops need, -2 for where kernels say that they
        have failed, -1 for a number,
        0 for the arena, 1 for the constants, and from 2 on the program's tensors: inputs, then
        outputs.
    constants : ndarray, uint8
        Packed weights and tables.
    arena_bytes : int
        Working memory of one execution.
    num_inputs, num_outputs : int
    infos : sequence of CommandInfo
    isa : str
        Name of the instruction set.
    num_threads : int
        Threads that its scratch memory is for.
    held : tuple of ndarray
        Constants that other programs have as well, at addresses that are among the arguments.
    views : str
        How constants of the region lie in `constants`: a list of `armpy.backend.packed_view` as
        JSON.
    """

    kernels: tuple[Kernel, ...]
    command_kernels: npt.NDArray[np.int32]
    argument_starts: npt.NDArray[np.int32]
    argument_values: npt.NDArray[np.int64]
    argument_bases: npt.NDArray[np.int16]
    constants: npt.NDArray[np.uint8]
    arena_bytes: int
    num_inputs: int
    num_outputs: int
    infos: Sequence[CommandInfo]
    isa: str
    num_threads: int = 1
    held: tuple[Array, ...] = ()
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
        """Whether commands may be run more than once."""
        return bool((self.argument_bases == Space.CONTROL).any())
