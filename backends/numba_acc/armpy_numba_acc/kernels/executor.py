"""Runs the commands of a program, together with the workers that have time."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,var-annotated"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.codegen.pointers import (
    atomic_load,
    atomic_store,
    load_i64,
    store_i64,
    yield_thread,
)
from armpy_numba_acc.codegen.subnormals import flushing, restoring
from armpy_numba_acc.codegen.teamwork import (
    BUSY,
    COMMAND_WORDS,
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
from armpy_numba_acc.codegen.waiting import clock_ns, compare_and_swap, relaxing


def make(isa: Isa):
    """Make the executor: what the leading thread runs.

    Notes
    -----
    Its arguments are those of `armpy_numba_acc.codegen.teamwork`; with more than one thread there
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

    @njit(inline="always")
    def dismiss(args, ticket):
        """Take back a ticket; a worker that has it is told already that this is the end."""
        if compare_and_swap(ticket, args, NO_CALL) != args:
            spins = 0
            while atomic_load(ticket) != NO_CALL:
                spins = pause(spins)

    def executor(args, thread, num_threads):
        commands, num_commands = load_i64(args, 0), load_i64(args, 1)
        sync, cancel, times = load_i64(args, 2), load_i64(args, 3), load_i64(args, 4)
        tickets = load_i64(args, 5)
        if num_threads > 1 and compare_and_swap(tickets + BUSY, 0, args) != 0:
            num_threads = 1
        for word in (PUBLISHED, DONE, JOINED, FAILURE):
            atomic_store(sync + word, 0)
        for worker in range(num_threads - 1):
            atomic_store(tickets + worker * LINE_BYTES, args)
        expected, finished, modes = 0, 0, flush()
        if times != 0:
            store_i64(times, 0, clock_ns())
        while finished < num_commands and atomic_load(cancel) == 0:
            team = 1
            if num_threads > 1 and load_i64(commands, COMMAND_WORDS * finished + 3) != 0:
                team = 1 + atomic_load(sync + JOINED)
                if team > 1:
                    atomic_store(sync + PUBLISHED, published(finished, team))
                    expected += team - 1
            run_share(commands, finished, 0, team, cancel)
            if team > 1:
                wait(sync + DONE, expected)
            if atomic_load(cancel) != 0 or atomic_load(sync + FAILURE) != 0:
                break
            finished += 1
            if times != 0:
                store_i64(times, finished, clock_ns())
        if num_threads > 1:
            atomic_store(sync + PUBLISHED, END)
            for worker in range(num_threads - 1):
                dismiss(args, tickets + worker * LINE_BYTES)
            atomic_store(tickets + BUSY, 0)
        restore(modes)
        store_i64(args, 6, finished)

    return executor
