"""Runs the commands of a program, together with the workers that have time."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,var-annotated"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.llvm.pointers import (
    atomic_load,
    atomic_store,
    load_i64,
    store_i64,
    yield_thread,
)
from armpy_numba_acc.llvm.subnormals import flushing, restoring
from armpy_numba_acc.llvm.teamwork import (
    BUSY,
    COMMAND_WORDS,
    CONTROL,
    DONE,
    END,
    FAILURE,
    JOINED,
    LINE_BYTES,
    NO_CALL,
    PUBLISHED,
    SPINS,
    published,
    run_share,
)
from armpy_numba_acc.llvm.waiting import clock_ns, compare_and_swap, relaxing
from armpy_numba_acc.machine.call_layout import CONTROL_NEXT, START, STAY
from armpy_numba_acc.machine.isa import Isa


@njit(inline="always")
def begin_times(times, num_commands, is_new):
    """Begin to take times, unless they are those of an execution that goes on; gives the time."""
    now = clock_ns()
    if is_new:
        store_i64(times, 0, now)
        for number in range(num_commands):
            store_i64(times, number + 1, 0)
    return now


@njit(inline="always")
def add_time(times, number, before):
    """Add to a command's time what has passed since; gives the time."""
    now = clock_ns()
    store_i64(times, number + 1, load_i64(times, number + 1) + now - before)
    return now


@njit(inline="always")
def end_times(times, num_commands):
    """Let each command end when it would have, run once for as long as it took in all turns."""
    for number in range(num_commands):
        store_i64(times, number + 1, load_i64(times, number) + load_i64(times, number + 1))


@njit(inline="always")
def following(sync, cancel, number):
    """The command that comes behind one; below 0 if the execution ends there."""
    if atomic_load(cancel) != 0 or atomic_load(sync + FAILURE) != 0:
        return STAY
    control = sync + CONTROL
    said = load_i64(control, CONTROL_NEXT)
    if said == 0:
        return number + 1
    if said == STAY:
        return STAY
    store_i64(control, CONTROL_NEXT, 0)
    return said - 1


@njit(inline="always")
def dismiss_all(args, sync, tickets, num_threads, pause):
    """Tell workers that this is the end, and take back tickets that nobody has taken."""
    atomic_store(sync + PUBLISHED, END)
    for worker in range(num_threads - 1):
        ticket = tickets + worker * LINE_BYTES
        if compare_and_swap(ticket, args, NO_CALL) != args:
            spins = 0
            while atomic_load(ticket) != NO_CALL:
                spins = pause(spins)
    atomic_store(tickets + BUSY, 0)


def make(isa: Isa):
    """Make the executor: what the leading thread runs.

    Notes
    -----
    Its arguments are those of `armpy_numba_acc.llvm.teamwork`; with more than one thread there
    are ``num_threads - 1`` workers. If another execution has them, it runs alone. The thread's
    floating-point modes are the caller's again whenever it returns.
    """
    relax, flush, restore = relaxing(isa), flushing(isa), restoring(isa)

    @njit(inline="always")
    def pause(spins):
        """Let a moment pass; returns how many have."""
        relax()
        if spins >= SPINS:
            yield_thread()
        return spins + 1

    @njit(inline="always")
    def wait(address, value):
        """Wait until an integer is as large as a value."""
        spins = 0
        while atomic_load(address) < value:
            spins = pause(spins)

    def executor(args, thread, num_threads):
        commands, num_commands = load_i64(args, 0), load_i64(args, 1)
        sync, cancel, times = load_i64(args, 2), load_i64(args, 3), load_i64(args, 4)
        tickets = load_i64(args, 5)
        if num_threads > 1 and compare_and_swap(tickets + BUSY, 0, args) != 0:
            num_threads = 1
        for word in (PUBLISHED, DONE, JOINED, FAILURE):
            atomic_store(sync + word, 0)
        store_i64(sync + CONTROL, CONTROL_NEXT, 0)
        for worker in range(num_threads - 1):
            atomic_store(tickets + worker * LINE_BYTES, args)
        expected, sequence, before, modes = 0, 0, 0, flush()
        finished = load_i64(args, START)
        if times != 0:
            before = begin_times(times, num_commands, finished == 0)
        while finished < num_commands and atomic_load(cancel) == 0:
            team = 1
            if num_threads > 1 and load_i64(commands, COMMAND_WORDS * finished + 3) != 0:
                team = 1 + atomic_load(sync + JOINED)
                if team > 1:
                    sequence += 1
                    expected += team - 1
                    atomic_store(sync + PUBLISHED, published(sequence, finished, team))
            run_share(commands, finished, 0, team, cancel)
            if team > 1:
                wait(sync + DONE, expected)
            if times != 0:
                before = add_time(times, finished, before)
            number = following(sync, cancel, finished)
            if number < 0:
                break
            finished = number
        if times != 0 and finished == num_commands:
            end_times(times, num_commands)
        if num_threads > 1:
            dismiss_all(args, sync, tickets, num_threads, pause)
        restore(modes)
        store_i64(args, 6, finished)

    return executor
