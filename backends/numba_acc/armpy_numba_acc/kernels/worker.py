"""Worker: what a thread runs that takes part in executions."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.arithmetic.subnormals import flushing, restoring
from armpy_numba_acc.llvm.pointers import atomic_add, atomic_load, atomic_store
from armpy_numba_acc.llvm.threads.fork_join import run_claims
from armpy_numba_acc.llvm.threads.waiting import compare_and_swap, relaxing, take_lock
from armpy_numba_acc.machine.execution import (
    ACQUIRE,
    ASLEEP,
    DONE,
    FETCHED,
    HAS_CLAIMED,
    PUBLISHED,
    SLEEP_LOCK,
    STOP,
    TICKET_BYTES,
)
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa, patience: int) -> Callable[[int, int, int], None]:
    """Make the function of a worker, which returns when it is asked to stop.

    In place of a call it receives the address of its ticket. It may be interrupted anywhere for any
    time: no thread waits for it but where it has claimed shares.

    Parameters
    ----------
    patience
        How often it looks for something to do before it sleeps.
    """
    relax, flush, restore = relaxing(isa), flushing(isa), restoring(isa)

    def worker(ticket: int, shares: int, num_shares: int) -> None:
        modes, spins, invitation, seen = flush(), 0, 0, 0
        while atomic_load(ticket + STOP) == 0:
            team = invitation // TICKET_BYTES * TICKET_BYTES
            publication = atomic_load(team + PUBLISHED) if team != 0 else seen
            # After the publication: as long as it is invited, the publication is its team's.
            current = atomic_load(ticket)
            if current != invitation:
                invitation, seen = current, 0
            elif publication != seen:
                seen = publication
                atomic_store(ticket + HAS_CLAIMED, 1)
                num_done = run_claims(team, publication, invitation % TICKET_BYTES)
                if num_done > 0:
                    atomic_add(team + DONE, num_done)
                atomic_store(ticket + HAS_CLAIMED, 0)
                # One that is on the leader's core gives it back at once.
                spins = patience if atomic_load(ticket + FETCHED) != 0 else 0
                atomic_store(ticket + FETCHED, 0)
            elif spins < patience:
                relax()
                spins += 1
            elif compare_and_swap(ticket + ASLEEP, 0, 1) != 0:
                # It has looked once more since: a leader that comes now wakes it.
                take_lock(atomic_load(ticket + ACQUIRE), atomic_load(ticket + SLEEP_LOCK))
                atomic_store(ticket + ASLEEP, 0)
                spins = 0
        restore(modes)

    return worker
