"""What the threads that run a program tell each other.

Notes
-----
One thread leads: the one that the application calls from. Workers join whenever they come; the
leader waits for none of them to wake up. For each command that is worth it, the leader publishes
its number and how many threads there are by then, does its own share, and waits until the
others have done theirs. All other commands it runs alone.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,untyped-decorator"
# What Numba compiles has no types for mypy.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.llvm.pointers import atomic_load, call_kernel, load_i64, store_i64
from armpy_numba_acc.llvm.waiting import compare_and_swap

ARGUMENTS = ("commands", "num_commands", "sync", "cancel", "times", "tickets", "finished")
"""What one execution is: addresses of its commands, of `SYNC_BYTES` bytes, of an integer that
says whether to stop, of room for one time more than there are commands (or 0), and of the
workers' tickets; `finished` is written: how many commands were run to their end."""

COMMAND_WORDS = 4
"""Integers of a command: kernel, its arguments, pieces, and whether several threads run it.

A long command is run in pieces, between which threads look whether they are to stop.
"""

LINE_BYTES = 64
"""What different threads write lies so far apart."""

PUBLISHED, DONE, JOINED, FAILURE = 0, LINE_BYTES, 2 * LINE_BYTES, 3 * LINE_BYTES
"""In the memory that threads share: command and number of threads, as `published` puts them
together; shares that workers have done; workers that have joined; what `fail` says."""

CONTROL = 4 * LINE_BYTES
"""What loops need, in the same memory; see `armpy_numba_acc.machine.call_layout`."""

SYNC_BYTES = 5 * LINE_BYTES

MOST_THREADS = 1 << 10
"""Limit for `published`; there are less."""

MOST_COMMANDS = 1 << 22
"""Of those that several threads run, for `published`; a program with more would have taken hours to
make."""

END = -1
"""Published behind the last command."""

NO_CALL, TAKEN = 0, 1
"""What a ticket can be besides the address of an execution's arguments."""

ASLEEP = 8
"""Bytes from a ticket to the integer by which its worker says that it has gone to sleep."""

BUSY = 16
"""Bytes from the first ticket to the integer that says whose all tickets are: 0, or the address
of an execution's arguments. It is taken and given back by native code, which no signal can
interrupt."""

STOP = 24
"""Bytes from a ticket to the integer that tells its worker to end once it has no execution. A
place of its own, because executions write tickets at any time."""

SPINS = 1 << 12
"""How often a thread looks before it lets others have the processor."""


@njit(inline="always")
def fail(failure, size, index):
    """Say that an index does not lie in an axis; its command is the last one that is run.

    Notes
    -----
    Two words: 0, or the axis' size plus 1; and the index that was found first.
    """
    if compare_and_swap(failure, 0, size + 1) == 0:
        store_i64(failure, 1, index)


@njit(inline="always")
def published(sequence, number, num_threads):
    """Tell workers to run a command; `sequence` tells it from the one before."""
    count = 1 + sequence % (1 << 30)
    return (count * MOST_COMMANDS + number) * MOST_THREADS + num_threads


@njit(inline="always")
def run_share(commands, number, thread, num_threads, cancel):
    """Run a thread's share of a command."""
    command = commands + 8 * COMMAND_WORDS * number
    kernel, args, pieces = load_i64(command, 0), load_i64(command, 1), load_i64(command, 2)
    for piece in range(pieces):
        if piece > 0 and atomic_load(cancel) != 0:
            break
        call_kernel(kernel, args, thread * pieces + piece, num_threads * pieces)
