"""What a region is compiled to: commands over one arena, and constants."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armpy.records import dataclass
from armpy_numba_acc.machine.call import Work
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.memory import Space


@dataclass(frozen=True, slots=True)
class CommandInfo:
    """What a command is, for people and for profiles.

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
        What its time goes into, see `armpy_numba_acc.machine.call.Work`.
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
    work: str = Work.FLOATS
    operation: str = ""
    layer: str = ""
    part: str = ""

    @property
    def title(self) -> str:
        """The command for people: ``Convolution2d 'conv_3': pad``."""
        if not self.layer:
            return self.label
        return f"{self.operation} '{self.layer}'" + (f": {self.part}" if self.part else "")


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """A compiled region.

    Parameters
    ----------
    kernels : tuple of Kernel
        Each once.
    command_kernels : ndarray, int32, shape (commands,)
        Which kernel each command calls.
    argument_starts : ndarray, int32, shape (commands + 1,)
        Where each command's arguments begin in the two tables that follow.
    argument_values : ndarray, int64, shape (arguments,)
        Numbers, or offsets into what `argument_bases` names.
    argument_bases : ndarray, int16, shape (arguments,)
        -3 for what loops need, -2 for where kernels say that they have failed, -1 for a number,
        0 for the arena, 1 for the constants, and from 2 on the program's tensors: inputs, then
        outputs.
    constants : ndarray, uint8
        Packed weights and tables.
    arena_bytes : int
        Working memory of one execution.
    num_inputs, num_outputs : int
    infos : tuple of CommandInfo
    isa : str
        Name of the instruction set.
    num_threads : int
        Threads that its scratch memory is for.
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
    infos: tuple[CommandInfo, ...]
    isa: str
    num_threads: int = 1

    def __str__(self) -> str:
        return f"{self.num_commands} commands for {self.isa}"

    @property
    def num_commands(self) -> int:
        """Number of commands."""
        return len(self.command_kernels)

    @property
    def has_loops(self) -> bool:
        """Whether commands may be run more than once."""
        return bool((self.argument_bases == Space.CONTROL).any())
