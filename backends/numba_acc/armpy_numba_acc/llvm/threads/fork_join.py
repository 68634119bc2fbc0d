"""Fork and join: communication between the threads that run a program.

Notes
-----
Workers join an execution whenever they come; the leader waits for none of them to wake up. For each
command that is worth it, the leader publishes its number and how many threads there are by then.
All other commands it runs alone. `armpy_numba_acc.machine.execution` says where everything is.
"""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import atomic_load, call_kernel, store_i64
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.threads.waiting import compare_and_swap
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.execution import Command
from armpy_numba_acc.machine.layout import num_words

_COMMAND_BYTES = 8 * num_words(Command)
_read_command = reader(Command)

MOST_THREADS = 1 << 10
"""Limit for `published`; there are less."""

MOST_COMMANDS = 1 << 22
"""Of those that several threads run, for `published`; a program with more would have taken hours to
make."""

END = -1
"""Published after the last command."""


@inlined
def wait_for(address: Pointer, value: int, pause: Callable[[int], int]) -> None:
    """Wait until an integer is as large as a value."""
    spins = 0
    while atomic_load(address) < value:
        spins = pause(spins)


@inlined
def fail(failure: Pointer, size: int, index: int) -> None:
    """Say that an index does not lie in an axis; its command is the last one that is run.

    Two words: 0, or the axis' size plus 1; and the index that was found first.
    """
    # Only the first thread that finds one reports it: two words cannot be written at once.
    if compare_and_swap(failure, 0, size + 1) == 0:
        store_i64(failure, 1, index)


@inlined
def published(sequence: int, number: int, num_threads: int) -> int:
    """Publish a command to workers; `sequence` distinguishes it from the previous one."""
    # Never 0, which says that nothing was published; and it wraps before the sign bit is reached.
    count = 1 + sequence % (1 << 30)
    return (count * MOST_COMMANDS + number) * MOST_THREADS + num_threads


@inlined
def run_share(
    commands: Pointer, number: int, thread: int, num_threads: int, cancel: Pointer
) -> None:
    """Run a thread's share of a command."""
    command = _read_command(commands + _COMMAND_BYTES * number)
    pieces = command.num_pieces
    for piece in range(pieces):
        # Not before the first one: a share that was begun by others has to be done in whole.
        if piece > 0 and atomic_load(cancel) != 0:
            break
        call_kernel(command.function, command.args, thread * pieces + piece, num_threads * pieces)
