"""Worker: what a thread runs that waits for executions to take part in."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.arithmetic.subnormals import flushing, restoring
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import atomic_add, atomic_load, atomic_store
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.threads.fork_join import END, MOST_COMMANDS, MOST_THREADS, run_share
from armpy_numba_acc.llvm.threads.waiting import compare_and_swap, pausing, relaxing
from armpy_numba_acc.machine.execution import (
    ASLEEP,
    DONE,
    JOINED,
    NO_CALL,
    PUBLISHED,
    STOP,
    TAKEN,
    ExecutionRecord,
)
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa, patience: int) -> Callable[[int, int, int], None]:
    """Make the function of a worker; it returns to sleep, or to stop on request.

    In place of a call it receives the address of its ticket.

    Parameters
    ----------
    patience
        How often it looks for another execution before it returns.
    """
    relax, flush, restore = relaxing(isa), flushing(isa), restoring(isa)
    pause, read = pausing(isa), reader(ExecutionRecord)

    @inlined
    def take_part(execution: int) -> None:
        """Do a share of every command that is published for so many threads."""
        call = read(execution)
        sync = call.sync
        # Counted once and for good: the leader cuts shares for all numbers up to the last one.
        thread = 1 + atomic_add(sync + JOINED, 1)
        last, spins = 0, 0
        while True:
            word = atomic_load(sync + PUBLISHED)
            if word == END:
                break
            if word == last:
                spins = pause(spins)
                continue
            last, spins = word, 0
            number, num_threads = word // MOST_THREADS % MOST_COMMANDS, word % MOST_THREADS
            # Who joined after the publication has no share, and is not waited for.
            if thread < num_threads:
                run_share(call.commands, number, thread, num_threads, call.cancel)
                atomic_add(sync + DONE, 1)

    def worker(ticket: int, thread: int, num_threads: int) -> None:
        spins, modes = 0, flush()
        while spins < patience:
            call = atomic_load(ticket)
            if call == NO_CALL:
                if atomic_load(ticket + STOP) != 0:
                    restore(modes)
                    return
                spins += 1
                relax()
            # The leader may take the ticket back at the same moment: one of the two has it.
            elif compare_and_swap(ticket, call, TAKEN) == call:
                take_part(call)
                # From here on nothing of the execution may be looked at: it is over for the leader.
                atomic_store(ticket, NO_CALL)
                spins = 0
        restore(modes)
        # An execution that engages this worker from now on wakes it; earlier ones run without it.
        atomic_store(ticket + ASLEEP, 1)

    return worker
