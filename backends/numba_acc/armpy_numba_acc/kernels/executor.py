"""Executor: runs the commands of a program, together with the workers that have time."""

from __future__ import annotations

from armpy_numba_acc.llvm.arithmetic.subnormals import flushing, restoring
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.llvm.pointers import (
    atomic_load,
    atomic_store,
    load_i64,
    store_i64,
)
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.threads.core_arbiter import (
    arbiter_definitions,
    claim_cores,
    release_cores,
    share_cores,
)
from armpy_numba_acc.llvm.threads.fork_join import (
    publish,
    run_claims,
    run_shares,
    withdraw,
)
from armpy_numba_acc.llvm.threads.joining import await_shares
from armpy_numba_acc.llvm.threads.waiting import clock_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.execution import (
    CONTROL,
    CONTROL_NEXT,
    FAILURE,
    STAY,
    Command,
    ExecutionRecord,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.layout import num_words, word_of

_FINISHED, _TEAM = (word_of(ExecutionRecord, field) for field in ("finished", "team"))
_COMMAND_WORDS, _NUM_SHARES = num_words(Command), word_of(Command, "num_shares")


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
    """Add the time passed since to a command's; return the time."""
    store_i64(times, number + 1, load_i64(times, number + 1) + now - before)
    return now


@inlined
def end_times(times: Pointer, num_commands: int) -> None:
    """Let each command end when it would have, run once for as long as it took in all turns."""
    for number in range(num_commands):
        store_i64(times, number + 1, load_i64(times, number) + load_i64(times, number + 1))


@inlined
def following(sync: Pointer, cancel: Pointer, number: int) -> int:
    """The command that comes after one; below 0 if the execution ends there."""
    if atomic_load(cancel) != 0 or atomic_load(sync + FAILURE) != 0:
        return STAY
    control = sync + CONTROL
    said = load_i64(control, CONTROL_NEXT)
    if said == 0:
        return number + 1
    if said == STAY:
        # Left as it is: Python distinguishes a stopped loop from a cancellation by it.
        return STAY
    store_i64(control, CONTROL_NEXT, 0)
    return said - 1


def make(isa: Isa) -> LinkedKernel:
    """Make the executor, which the leading thread runs.

    In place of a call it receives an `ExecutionRecord`. It begins when the arbiter lets it in, and
    has as many workers then as are its fair share and free; when others wait, it lets workers go
    between commands. It waits for no worker that has claimed nothing. The thread's floating-point
    modes are the caller's again whenever it returns.
    """
    clock_ns = clock_of(isa)
    flush, restore = flushing(isa), restoring(isa)
    read = reader(ExecutionRecord)

    def executor(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        commands, sync = call.commands, call.sync
        # The last execution's contents.
        atomic_store(sync + FAILURE, 0)
        store_i64(sync + CONTROL, CONTROL_NEXT, 0)
        granted = 1 if call.arbiter == 0 else claim_cores(args)
        if granted == 0:
            store_i64(args, _FINISHED, call.start)
            return
        before, modes = 0, flush()
        finished = call.start
        if call.times != 0:
            before = begin_times(call.times, call.num_commands, finished == 0, clock_ns())
        while finished < call.num_commands and atomic_load(call.cancel) == 0:
            num_shares = load_i64(commands, _COMMAND_WORDS * finished + _NUM_SHARES)
            if granted > 1 and num_shares != 0:
                granted = share_cores(args, granted)
            if granted > 1 and num_shares != 0:
                team = load_i64(args, _TEAM)
                publication = publish(team, commands, finished, call.cancel, granted)
                num_shares -= run_claims(team, publication, 0)
                num_shares -= withdraw(team, publication)
                # The next command reads what all shares of this one have written.
                await_shares(args, num_shares)
            else:
                run_shares(commands, finished, 0, 0, 0, call.cancel)
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
        if call.arbiter != 0:
            release_cores(args, granted)

    return LinkedKernel(executor, arbiter_definitions(isa))
