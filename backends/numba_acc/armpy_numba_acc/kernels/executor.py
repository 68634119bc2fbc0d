"""Executor: runs the commands of a program, together with the workers that have time."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.fork_join import END, SPINS, published, run_share
from armpy_numba_acc.llvm.pointers import (
    atomic_load,
    atomic_store,
    load_i64,
    store_i64,
)
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.subnormals import flushing, restoring
from armpy_numba_acc.llvm.waiting import clock_of, compare_and_swap, relaxing, yielding
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.execution import (
    BUSY,
    CONTROL,
    CONTROL_NEXT,
    DONE,
    FAILURE,
    JOINED,
    LINE_BYTES,
    NO_CALL,
    PUBLISHED,
    STAY,
    Command,
    Execution,
    num_words,
    word_of,
)
from armpy_numba_acc.machine.isa import Isa

_FINISHED = word_of(Execution, "finished")
_COMMAND_WORDS, _IS_PARALLEL = num_words(Command), word_of(Command, "is_parallel")


@inlined
def begin_times(times: Pointer, num_commands: int, is_new: bool, now: int) -> int:
    """Begin to take times, unless they are those of an execution that goes on; gives the time."""
    if is_new:
        store_i64(times, 0, now)
        for number in range(num_commands):
            store_i64(times, number + 1, 0)
    return now


@inlined
def add_time(times: Pointer, number: int, before: int, now: int) -> int:
    """Add to a command's time what has passed since; gives the time."""
    store_i64(times, number + 1, load_i64(times, number + 1) + now - before)
    return now


@inlined
def end_times(times: Pointer, num_commands: int) -> None:
    """Let each command end when it would have, run once for as long as it took in all turns."""
    for number in range(num_commands):
        store_i64(times, number + 1, load_i64(times, number) + load_i64(times, number + 1))


@inlined
def following(sync: Pointer, cancel: Pointer, number: int) -> int:
    """The command that comes behind one; below 0 if the execution ends there."""
    if atomic_load(cancel) != 0 or atomic_load(sync + FAILURE) != 0:
        return STAY
    control = sync + CONTROL
    said = load_i64(control, CONTROL_NEXT)
    if said == 0:
        return number + 1
    if said == STAY:
        # Left as it is: Python tells by it that a loop has stopped, not a cancellation.
        return STAY
    store_i64(control, CONTROL_NEXT, 0)
    return said - 1


@inlined
def dismiss_all(
    execution: int, call: Execution, num_threads: int, pause: Callable[[int], int]
) -> None:
    """Tell workers that this is the end, and take back tickets that nobody has taken."""
    atomic_store(call.sync + PUBLISHED, END)
    for worker in range(num_threads - 1):
        ticket = call.tickets + worker * LINE_BYTES
        # Whoever exchanges the ticket first has it: the worker, which takes part, or the leader.
        if compare_and_swap(ticket, execution, NO_CALL) != execution:
            # The worker may still look at `sync`, which is the caller's to free behind this.
            spins = 0
            while atomic_load(ticket) != NO_CALL:
                spins = pause(spins)
    # Last of all: from here on another execution may write the tickets.
    atomic_store(call.tickets + BUSY, 0)


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the executor: what the leading thread runs.

    Notes
    -----
    In place of a call it is told an `Execution`; with more than one thread there are
    ``num_threads - 1`` workers. If another execution has them, it runs alone. The thread's
    floating-point modes are the caller's again whenever it returns.
    """
    relax, flush, restore = relaxing(isa), flushing(isa), restoring(isa)
    yield_thread, clock_ns = yielding(isa), clock_of(isa)
    read = reader(Execution)

    @inlined
    def pause(spins: int) -> int:
        """Let a moment pass; returns how many have."""
        relax()
        if spins >= SPINS:
            yield_thread()
        return spins + 1

    @inlined
    def wait(address: Pointer, value: int) -> None:
        """Wait until an integer is as large as a value."""
        spins = 0
        while atomic_load(address) < value:
            spins = pause(spins)

    def executor(args: int, thread: int, num_threads: int) -> None:
        call = read(args)
        commands, sync = call.commands, call.sync
        # One execution at a time has the workers: no two write one ticket.
        if num_threads > 1 and compare_and_swap(call.tickets + BUSY, 0, args) != 0:
            num_threads = 1
        # What the last execution has left here. Nobody looks yet: no ticket says that there is one.
        for word in (PUBLISHED, DONE, JOINED, FAILURE):
            atomic_store(sync + word, 0)
        store_i64(sync + CONTROL, CONTROL_NEXT, 0)
        # Workers join from here on, at any time, also while commands run.
        for worker in range(num_threads - 1):
            atomic_store(call.tickets + worker * LINE_BYTES, args)
        expected, sequence, before, modes = 0, 0, 0, flush()
        finished = call.start
        if call.times != 0:
            before = begin_times(call.times, call.num_commands, finished == 0, clock_ns())
        while finished < call.num_commands and atomic_load(call.cancel) == 0:
            team = 1
            is_parallel = load_i64(commands, _COMMAND_WORDS * finished + _IS_PARALLEL)
            if num_threads > 1 and is_parallel != 0:
                # Those who come later sit this command out: shares are cut for the team.
                team = 1 + atomic_load(sync + JOINED)
                if team > 1:
                    sequence += 1
                    expected += team - 1
                    atomic_store(sync + PUBLISHED, published(sequence, finished, team))
            run_share(commands, finished, 0, team, call.cancel)
            if team > 1:
                # The next command reads what all shares of this one have written.
                wait(sync + DONE, expected)
            if call.times != 0:
                before = add_time(call.times, finished, before, clock_ns())
            number = following(sync, call.cancel, finished)
            if number < 0:
                break
            finished = number
        if call.times != 0 and finished == call.num_commands:
            end_times(call.times, call.num_commands)
        if num_threads > 1:
            dismiss_all(args, call, num_threads, pause)
        restore(modes)
        store_i64(args, _FINISHED, finished)

    return executor
