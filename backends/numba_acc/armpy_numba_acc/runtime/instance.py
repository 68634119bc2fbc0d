"""A program with memory of its own: what one execution at a time runs on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armpy.errors import ExecutionTimeoutError
from armpy.ops.operation import Array
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.kernels import Kernel
from armpy_numba_acc.lowering.estimate import (
    PARALLEL_COMMAND_US,
    PARALLEL_PROGRAM_US,
    estimated_us,
)
from armpy_numba_acc.lowering.memory import Space
from armpy_numba_acc.lowering.program import Program
from armpy_numba_acc.runtime.alignment import (
    address_of,
    aligned,
    is_aligned,
    quick_address_of,
)
from armpy_numba_acc.runtime.cancellation import Cancellation
from armpy_numba_acc.runtime.threads import FUNCTION, WORKER, Pool, pool
from armpy_numba_acc.store.objects import kernel_addresses

EXECUTOR = Kernel("executor")
"""What the thread that an application calls from runs."""

_SYNC_BYTES = 192
"""`armpy_numba_acc.codegen.teamwork` says what is in it."""

_CANCEL, _FINISHED = 3, 6
"""Places of the executor's arguments."""


class Code:
    """A program's kernels in memory; shared by its instances.

    Parameters
    ----------
    program : Program
    isa : Isa
        The one that the program is for.

    Attributes
    ----------
    num_threads : int
        Threads that are worth their while for this program.
    """

    def __init__(self, program: Program, isa: Isa) -> None:
        self.program = program
        self.isa = isa
        durations_us = np.array([estimated_us(info, isa) for info in program.infos])
        self.is_parallel = durations_us >= PARALLEL_COMMAND_US
        is_worth_it = durations_us[self.is_parallel].sum() >= PARALLEL_PROGRAM_US
        self.num_threads = program.num_threads if is_worth_it else 1
        needed = [*program.kernels, EXECUTOR]
        if self.num_threads > 1:
            needed.append(WORKER)  # the first execution will ask for it
        addresses = kernel_addresses(needed, isa)
        self.executor = FUNCTION(addresses[EXECUTOR])
        self.kernels = [addresses[kernel] for kernel in program.kernels]
        self.constants = program.constants
        if not is_aligned(self.constants):
            self.constants = aligned(program.constants.nbytes, zeroed=False)
            self.constants[:] = program.constants
        self.pool: Pool = pool()
        if self.num_threads > 1:
            self.pool.hold(self)


class Instance:
    """Working memory of one execution at a time.

    Parameters
    ----------
    code : Code
    is_profiled : bool
        Whether the time of every command is taken.

    Attributes
    ----------
    times_ns : ndarray, int64, shape (commands + 1,), or None
        When the last execution began and when each command had come to its end, by the clock
        of `time.perf_counter`.
    """

    def __init__(self, code: Code, *, is_profiled: bool = False) -> None:
        program = code.program
        self._code = code
        self._arena = aligned(program.arena_bytes)
        self._arguments = program.argument_values.copy()
        bases = program.argument_bases
        self._arguments[bases == Space.ARENA] += address_of(self._arena)
        self._arguments[bases == Space.CONSTANTS] += address_of(code.constants)
        self._commands = self._make_commands()
        self._sync = aligned(_SYNC_BYTES)
        self._never = Cancellation()
        self.times_ns: npt.NDArray[np.int64] | None = None
        if is_profiled:
            self.times_ns = np.zeros(program.num_commands + 1, np.int64)
        call = np.array(
            [
                address_of(self._commands),
                program.num_commands,
                address_of(self._sync),
                self._never.address,
                0 if self.times_ns is None else address_of(self.times_ns),
                code.pool.tickets,
                0,
            ],
            np.int64,
        )
        self._address = address_of(call)
        self._call = call.data
        self._view = self._arguments.data
        self._slots = [
            [(int(slot), int(program.argument_values[slot])) for slot in np.flatnonzero(bases == b)]
            for b in range(Space.TENSORS, Space.TENSORS + program.num_inputs + program.num_outputs)
        ]
        self._bound: list[Array | None] = [None] * len(self._slots)

    def _make_commands(self) -> npt.NDArray[np.int64]:
        """The executor's table, as `armpy_numba_acc.codegen.teamwork` says."""
        code, program = self._code, self._code.program
        start = address_of(self._arguments)
        commands = np.empty((program.num_commands, 4), np.int64)
        commands[:, 0] = [code.kernels[number] for number in program.command_kernels]
        commands[:, 1] = start + 8 * program.argument_starts[:-1].astype(np.int64)
        commands[:, 2] = [info.num_pieces for info in program.infos]
        commands[:, 3] = code.is_parallel
        return commands

    def run(self, tensors: Sequence[Array], cancellation: Cancellation | None = None) -> None:
        """Execute once.

        Parameters
        ----------
        tensors : sequence of ndarray
            Inputs, then outputs; C-contiguous.
        cancellation : Cancellation, optional
            What stops the execution.

        Raises
        ------
        ExecutionTimeoutError
            If it was stopped.
        """
        for number, array in enumerate(tensors):
            if array is not self._bound[number]:
                self._bind(number, array)
        if cancellation is None:
            self._execute()
        else:
            self._execute_until(cancellation)

    def _execute(self) -> None:
        """Run the program, on several threads if it is worth it and they have time."""
        code = self._code
        num_threads = code.num_threads
        if num_threads > 1:
            num_threads = code.pool.engage(num_threads, code.isa)
        code.executor(self._address, 0, num_threads)

    def _execute_until(self, cancellation: Cancellation) -> None:
        """Run the program unless it is stopped."""
        self._call[_CANCEL] = cancellation.address
        try:
            self._execute()
        finally:
            self._call[_CANCEL] = self._never.address
        num_commands = self._code.program.num_commands
        if self._call[_FINISHED] < num_commands:
            raise ExecutionTimeoutError(
                "the execution was stopped",
                expected=f"{num_commands} commands",
                actual=f"{self._call[_FINISHED]} came to their end",
            )

    def _bind(self, number: int, array: Array) -> None:
        """Put an array's address into the arguments that point to it."""
        address = quick_address_of(array)
        view = self._view
        for slot, offset in self._slots[number]:
            view[slot] = address + offset
        self._bound[number] = array

    def release(self) -> None:
        """Forget the caller's arrays."""
        self._bound = [None] * len(self._slots)
