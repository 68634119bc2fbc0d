"""Executor: runs the commands of a program, together with the workers that have time."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.fork_join import END, pausing, published, run_share, wait_for
from armpy_numba_acc.llvm.gate import enter, give_back, leave, surplus_of
from armpy_numba_acc.llvm.pointers import (
    atomic_load,
    atomic_store,
    load_i64,
    store_i64,
)
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.subnormals import flushing, restoring
from armpy_numba_acc.llvm.waiting import clock_of, compare_and_swap
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.execution import (
    CONTROL,
    CONTROL_NEXT,
    DONE,
    FAILURE,
    JOINED,
    LINE_BYTES,
    NO_CALL,
    OWNER,
    PUBLISHED,
    STAY,
    Command,
    Execution,
    num_words,
    word_of,
)
from armpy_numba_acc.machine.gate import NUM_WORKERS
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
def invite(execution: int, call: Execution, num_workers: int, pause: Callable[[int], int]) -> int:
    """Tell workers that there is something to do, if no other execution has them; how many."""
    # What others have left here. Nobody looks yet: no ticket says that there is an execution.
    for word in (PUBLISHED, DONE, JOINED):
        atomic_store(call.sync + word, 0)
    num_invited = 0
    for worker in range(load_i64(call.gate, NUM_WORKERS)):
        if num_invited == num_workers:
            break
        ticket = call.tickets + worker * LINE_BYTES
        if compare_and_swap(ticket + OWNER, 0, execution) == 0:
            # It joins from here on, at any time, also while commands run.
            atomic_store(ticket, execution)
            num_invited += 1
    if num_invited < num_workers:
        give_back(call, num_workers - num_invited, pause)
    return num_invited


@inlined
def dismiss(execution: int, call: Execution, pause: Callable[[int], int]) -> None:
    """Tell workers that this is the end, and take back tickets that nobody has taken."""
    atomic_store(call.sync + PUBLISHED, END)
    for worker in range(load_i64(call.gate, NUM_WORKERS)):
        ticket = call.tickets + worker * LINE_BYTES
        if atomic_load(ticket + OWNER) == execution:
            # Whoever exchanges the ticket first has it: the worker, which takes part, or the
            # leader.
            if compare_and_swap(ticket, execution, NO_CALL) != execution:
                # The worker may still look at `sync`, which is the caller's to free behind this.
                spins = 0
                while atomic_load(ticket) != NO_CALL:
                    spins = pause(spins)
            # Last of all: from here on another execution may write the ticket.
            atomic_store(ticket + OWNER, 0)


@inlined
def begin(
    execution: int, call: Execution, clock_ns: Callable[[], int], pause: Callable[[int], int]
) -> int:
    """Begin when it is the execution's turn; how many threads it has, or 0 if it was cancelled."""
    # What the last execution has left here.
    atomic_store(call.sync + FAILURE, 0)
    store_i64(call.sync + CONTROL, CONTROL_NEXT, 0)
    granted = 1
    if call.gate != 0:
        granted = enter(execution, call, clock_ns(), pause)
        if granted > 1:
            granted = 1 + invite(execution, call, granted - 1, pause)
    return granted


@inlined
def let_others(execution: int, call: Execution, granted: int, pause: Callable[[int], int]) -> int:
    """Let go of workers that others should have, between commands; how many threads are left."""
    surplus = surplus_of(call, granted)
    if surplus > 0:
        dismiss(execution, call, pause)
        give_back(call, surplus, pause)
        granted = 1 + invite(execution, call, granted - surplus - 1, pause)
    return granted


@inlined
def end(
    execution: int,
    call: Execution,
    granted: int,
    clock_ns: Callable[[], int],
    pause: Callable[[int], int],
) -> None:
    """Let others have all threads."""
    if granted > 1:
        dismiss(execution, call, pause)
    if call.gate != 0:
        leave(call, granted, clock_ns(), pause)


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the executor: what the leading thread runs.

    Notes
    -----
    In place of a call it is told an `Execution`. It begins when the gate lets it, and has as many
    workers then as are its fair share and free; when others wait, it lets workers go between
    commands. The thread's floating-point modes are the caller's again whenever it returns.
    """
    pause, clock_ns = pausing(isa), clock_of(isa)
    flush, restore = flushing(isa), restoring(isa)
    read = reader(Execution)

    def executor(args: int, thread: int, num_threads: int) -> None:
        call = read(args)
        commands, sync = call.commands, call.sync
        granted = begin(args, call, clock_ns, pause)
        if granted == 0:
            store_i64(args, _FINISHED, call.start)
            return
        expected, sequence, before, modes = 0, 0, 0, flush()
        finished = call.start
        if call.times != 0:
            before = begin_times(call.times, call.num_commands, finished == 0, clock_ns())
        while finished < call.num_commands and atomic_load(call.cancel) == 0:
            team = 1
            is_parallel = load_i64(commands, _COMMAND_WORDS * finished + _IS_PARALLEL)
            if granted > 1 and is_parallel != 0:
                left = let_others(args, call, granted, pause)
                if left != granted:
                    granted, expected = left, 0
                # Those who come later sit this command out: shares are cut for the team.
                team = 1 + atomic_load(sync + JOINED)
                if team > 1:
                    sequence += 1
                    expected += team - 1
                    atomic_store(sync + PUBLISHED, published(sequence, finished, team))
            run_share(commands, finished, 0, team, call.cancel)
            if team > 1:
                # The next command reads what all shares of this one have written.
                wait_for(sync + DONE, expected, pause)
            if call.times != 0:
                before = add_time(call.times, finished, before, clock_ns())
            number = following(sync, call.cancel, finished)
            if number < 0:
                break
            finished = number
        if call.times != 0 and finished == call.num_commands:
            end_times(call.times, call.num_commands)
        restore(modes)
        store_i64(args, _FINISHED, finished)
        end(args, call, granted, clock_ns, pause)

    return executor
