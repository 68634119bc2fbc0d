"""Fork and join: communication between the threads that run a program.

Notes
-----
The leader publishes a command; it and its workers claim its shares, the leader from the front,
workers from the back, so that two threads run the same part of each command and find it in their
caches. A claim is a part of what is left: the first ones are large, the last ones are small, so
that all threads end at about the same time, however fast each one is. The leader waits for shares
that were claimed, and for no worker else: one that comes late finds less to do, or nothing.
`armpy_numba_acc.machine.execution` says where everything is.
"""

from __future__ import annotations

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import (
    atomic_load,
    atomic_store,
    call_kernel,
    load_i64,
    store_i64,
)
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.threads.sharing import MOST_SHARES, shares_of
from armpy_numba_acc.llvm.threads.waiting import compare_and_swap
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.execution import (
    CANCEL,
    CLAIMS,
    COMMAND,
    COMMANDS,
    DONE,
    PUBLISHED,
    TEAM_THREADS,
    Command,
)
from armpy_numba_acc.machine.layout import num_words

_COMMAND_BYTES = 8 * num_words(Command)
_read_command = reader(Command)

_MOST_TAGS = 1 << 31
"""Publications that a claim distinguishes. They take an hour at least, for which no worker that has
read a publication is interrupted."""


@inlined
def fail(failure: Pointer, size: int, index: int) -> None:
    """Say that an index does not lie in an axis; its command is the last one that is run.

    Two words: 0, or the axis' size plus 1; and the index that was found first.
    """
    # Only the first thread that finds one reports it: two words cannot be written at once.
    if compare_and_swap(failure, 0, size + 1) == 0:
        store_i64(failure, 1, index)


@inlined
def claims_of(publication: int, first: int, last: int) -> int:
    """Put together the shares of a published command that are not claimed: not the last one."""
    return (publication % _MOST_TAGS * MOST_SHARES + first) * MOST_SHARES + last


@inlined
def run_shares(
    commands: Pointer, number: int, thread: int, first: int, last: int, cancel: Pointer
) -> None:
    """Run some of a command's shares; all of them if `last` is 0."""
    command = _read_command(commands + _COMMAND_BYTES * number)
    num_shares = max(command.num_shares, command.num_pieces)
    step = num_shares // command.num_pieces
    last = last if last > 0 else num_shares
    at = first
    while at < last:
        count = min(step, last - at)
        call_kernel(command.function, command.args, shares_of(at, count, thread), num_shares)
        at += count
        if atomic_load(cancel) != 0:
            break


@inlined
def claim_size(num_left: int, num_threads: int) -> int:
    """Return how many of the shares that are left a thread claims at once."""
    # Half of what is fair: a thread that is a third as fast as another one ends no later than it.
    return max(num_left // (2 * num_threads), 1)


@inlined
def run_claims(team: Pointer, publication: int, thread: int) -> int:
    """Claim shares of a published command and run them, until none is left; return how many."""
    done = 0
    tag = claims_of(publication, 0, 0)
    while True:
        claims = atomic_load(team + CLAIMS)
        # Not another publication's: `claims` is read at once, and compared when it is written.
        first, last = (claims - tag) // MOST_SHARES, claims % MOST_SHARES
        if first < 0 or first >= last:
            break
        count = claim_size(last - first, atomic_load(team + TEAM_THREADS))
        begin = first if thread == 0 else last - count
        changed = claims + count * MOST_SHARES if thread == 0 else claims - count
        if compare_and_swap(team + CLAIMS, claims, changed) == claims:
            # The leader waits for this claim: until then its execution's memory stays.
            commands, cancel = load_i64(team, COMMANDS // 8), load_i64(team, CANCEL // 8)
            number = load_i64(team, COMMAND // 8)
            run_shares(commands, number, thread, begin, begin + count, cancel)
            done += count
            if atomic_load(cancel) != 0:
                break
    return done


@inlined
def publish(
    team: Pointer, commands: Pointer, number: int, cancel: Pointer, num_threads: int
) -> int:
    """Let workers claim shares of a command; return its publication's number."""
    publication = load_i64(team, PUBLISHED // 8) + 1
    store_i64(team, COMMAND // 8, number)
    store_i64(team, COMMANDS // 8, commands)
    store_i64(team, CANCEL // 8, cancel)
    store_i64(team, TEAM_THREADS // 8, num_threads)
    store_i64(team, DONE // 8, 0)
    num_shares = _read_command(commands + _COMMAND_BYTES * number).num_shares
    # Last of all: from here on workers may claim.
    atomic_store(team + CLAIMS, claims_of(publication, 0, num_shares))
    atomic_store(team + PUBLISHED, publication)
    return publication


@inlined
def withdraw(team: Pointer, publication: int) -> int:
    """Leave nothing of a command to be claimed; return how many shares were left."""
    nothing = claims_of(publication, 0, 0)
    claims = atomic_load(team + CLAIMS)
    while compare_and_swap(team + CLAIMS, claims, nothing) != claims:
        claims = atomic_load(team + CLAIMS)
    num_left: int = claims % MOST_SHARES - claims // MOST_SHARES % MOST_SHARES
    return num_left
