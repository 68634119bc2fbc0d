"""What a worker thread runs: waits for executions to take part in."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,var-annotated"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from numba import njit

from armpy_numba_acc.llvm.pointers import (
    atomic_add,
    atomic_load,
    atomic_store,
    load_i64,
    yield_thread,
)
from armpy_numba_acc.llvm.subnormals import flushing, restoring
from armpy_numba_acc.llvm.teamwork import (
    ASLEEP,
    DONE,
    END,
    JOINED,
    MOST_COMMANDS,
    MOST_THREADS,
    NO_CALL,
    PUBLISHED,
    SPINS,
    STOP,
    TAKEN,
    run_share,
)
from armpy_numba_acc.llvm.waiting import compare_and_swap, relaxing
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa, patience: int):
    """Make the function of a worker; it returns to sleep or, if it is told so, to stop.

    Parameters
    ----------
    isa : Isa
    patience : int
        How often it looks for another execution before it returns.

    Notes
    -----
    In place of arguments it takes the address of its ticket.
    """
    relax, flush, restore = relaxing(isa), flushing(isa), restoring(isa)

    @njit(inline="always")
    def take_part(args):
        """Do a share of every command that is published for so many threads."""
        commands, sync, cancel = load_i64(args, 0), load_i64(args, 2), load_i64(args, 3)
        thread = 1 + atomic_add(sync + JOINED, 1)
        last, spins = 0, 0
        while True:
            word = atomic_load(sync + PUBLISHED)
            if word == END:
                break
            if word == last:
                relax()
                spins += 1
                if spins > SPINS:
                    yield_thread()
                continue
            last, spins = word, 0
            number, num_threads = word // MOST_THREADS % MOST_COMMANDS, word % MOST_THREADS
            if thread < num_threads:
                run_share(commands, number, thread, num_threads, cancel)
                atomic_add(sync + DONE, 1)

    def worker(ticket, thread, num_threads):
        spins, modes = 0, flush()
        while spins < patience:
            call = atomic_load(ticket)
            if call == NO_CALL:
                if atomic_load(ticket + STOP) != 0:
                    restore(modes)
                    return
                spins += 1
                relax()
            elif compare_and_swap(ticket, call, TAKEN) == call:
                take_part(call)
                atomic_store(ticket, NO_CALL)
                spins = 0
        restore(modes)
        atomic_store(ticket + ASLEEP, 1)

    return worker
