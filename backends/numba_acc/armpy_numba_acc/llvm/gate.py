"""The gate that long executions pass: how they share processors.

Notes
-----
`armpy_numba_acc.machine.gate` says what lies where.
"""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.pointers import (
    acquire_lock,
    atomic_load,
    atomic_store,
    call_address,
    load_i64,
    store_i64,
)
from armpy_numba_acc.llvm.primitives import inlined
from armpy_numba_acc.llvm.waiting import compare_and_swap
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.execution import Execution, word_of
from armpy_numba_acc.machine.gate import (
    ACTIVE,
    CROWD,
    FIRST,
    LAST,
    LIMIT,
    LOCK,
    PEAK,
    RUNNING,
    SEATS,
    SINCE,
    WAIT_US,
    WAITING,
    WINDOW_NS,
)

_WANTED, _GRANTED, _NEXT, _TURN = (
    word_of(Execution, field) for field in ("num_threads", "granted", "next", "turn")
)

_ACQUIRED = 1
"""CPython's ``PY_LOCK_ACQUIRED``."""


@inlined
def lock_gate(gate: Pointer, pause: Callable[[int], int]) -> None:
    """Begin to change a gate, which takes less than a microsecond."""
    spins = 0
    while compare_and_swap(gate + 8 * LOCK, 0, 1) != 0:
        spins = pause(spins)


@inlined
def unlock_gate(gate: Pointer) -> None:
    """End it."""
    atomic_store(gate + 8 * LOCK, 0)


@inlined
def add_to(gate: Pointer, word: int, number: int) -> None:
    """Add to a word of a gate that is locked."""
    atomic_store(gate + 8 * word, load_i64(gate, word) + number)


@inlined
def fair_share(gate: Pointer, wanted: int, num_sharers: int) -> int:
    """Threads for an execution that begins now, of a gate that is locked."""
    # Whoever is alone has what it was told to have, were it more than there are processors.
    if num_sharers == 1:
        return wanted
    limit = load_i64(gate, LIMIT)
    return max(1, min(wanted, limit // num_sharers, limit - load_i64(gate, RUNNING)))


@inlined
def has_seat(gate: Pointer) -> bool:
    """Whether one more execution may begin, of a gate that is locked."""
    return load_i64(gate, ACTIVE) < load_i64(gate, SEATS)


@inlined
def remember(gate: Pointer, num_executions: int, now: int) -> None:
    """Remember how many executions there are now, of a gate that is locked."""
    passed = now - load_i64(gate, SINCE)
    if passed >= WINDOW_NS:
        peak = load_i64(gate, PEAK)
        store_i64(gate, CROWD, 0 if passed >= 2 * WINDOW_NS else peak)
        store_i64(gate, PEAK, 0)
        store_i64(gate, SINCE, now)
    store_i64(gate, PEAK, max(load_i64(gate, PEAK), num_executions))


@inlined
def num_sharers_of(gate: Pointer) -> int:
    """Executions that share the processors, of a gate that is locked."""
    count = load_i64(gate, ACTIVE) + load_i64(gate, WAITING)
    return max(count, load_i64(gate, CROWD), load_i64(gate, PEAK))


@inlined
def let_in(gate: Pointer, execution: Pointer) -> int:
    """Count an execution as being under way; gives its number of threads."""
    add_to(gate, ACTIVE, 1)
    granted = fair_share(gate, load_i64(execution, _WANTED), num_sharers_of(gate))
    add_to(gate, RUNNING, granted)
    return granted


@inlined
def admit(gate: Pointer) -> int:
    """Let those in for whom there is room now, of a gate that is locked; a chain to `wake`."""
    head = last = 0
    while load_i64(gate, FIRST) != 0 and has_seat(gate):
        execution = load_i64(gate, FIRST)
        store_i64(gate, FIRST, load_i64(execution, _NEXT))
        add_to(gate, WAITING, -1)
        store_i64(execution, _GRANTED, let_in(gate, execution))
        if head == 0:
            head = execution
        last = execution
    if load_i64(gate, FIRST) == 0:
        store_i64(gate, LAST, 0)
    if last != 0:
        store_i64(last, _NEXT, 0)
    return head


@inlined
def wake(chain: int, release: Pointer) -> None:
    """Wake the threads whose executions have been let in."""
    while chain != 0:
        execution = chain
        # Behind this the execution may end at any time.
        chain = load_i64(execution, _NEXT)
        call_address(release, load_i64(execution, _TURN))


@inlined
def leave_queue(gate: Pointer, execution: Pointer) -> None:
    """Take an execution out that waits, of a gate that is locked."""
    before, each = 0, load_i64(gate, FIRST)
    while each != execution:
        before, each = each, load_i64(each, _NEXT)
    behind = load_i64(execution, _NEXT)
    if before == 0:
        store_i64(gate, FIRST, behind)
    else:
        store_i64(before, _NEXT, behind)
    if behind == 0:
        store_i64(gate, LAST, before)
    add_to(gate, WAITING, -1)


@inlined
def join_queue(gate: Pointer, execution: Pointer) -> None:
    """Put an execution behind all others that wait, of a gate that is locked."""
    store_i64(execution, _GRANTED, 0)
    store_i64(execution, _NEXT, 0)
    last = load_i64(gate, LAST)
    if last == 0:
        store_i64(gate, FIRST, execution)
    else:
        store_i64(last, _NEXT, execution)
    store_i64(gate, LAST, execution)
    add_to(gate, WAITING, 1)


@inlined
def await_turn(execution: Pointer, call: Execution, pause: Callable[[int], int]) -> int:
    """Sleep until others let an execution in; its number of threads, or 0 if it was cancelled."""
    # Who lets it in sets the number first, and its lock is free once for each time it is let in.
    while acquire_lock(call.acquire, call.turn, WAIT_US) != _ACQUIRED:
        if atomic_load(call.cancel) != 0:
            lock_gate(call.gate, pause)
            has_waited = load_i64(execution, _GRANTED) == 0
            if has_waited:
                leave_queue(call.gate, execution)
            unlock_gate(call.gate)
            if has_waited:
                return 0
    return load_i64(execution, _GRANTED)


@inlined
def enter(execution: Pointer, call: Execution, now: int, pause: Callable[[int], int]) -> int:
    """Begin an execution when it is its turn; its number of threads, or 0 if it was cancelled."""
    gate = call.gate
    lock_gate(gate, pause)
    remember(gate, load_i64(gate, ACTIVE) + load_i64(gate, WAITING) + 1, now)
    is_free = load_i64(gate, FIRST) == 0 and has_seat(gate)
    granted = 0
    if is_free or call.is_patient == 0:
        granted = let_in(gate, execution)
    else:
        join_queue(gate, execution)
    unlock_gate(gate)
    if granted == 0:
        granted = await_turn(execution, call, pause)
    return granted


@inlined
def give_back(call: Execution, num_threads: int, pause: Callable[[int], int]) -> None:
    """Let others have threads."""
    lock_gate(call.gate, pause)
    add_to(call.gate, RUNNING, -num_threads)
    unlock_gate(call.gate)


@inlined
def leave(call: Execution, num_threads: int, now: int, pause: Callable[[int], int]) -> None:
    """Let others have threads and seat, at the end of an execution."""
    gate = call.gate
    lock_gate(gate, pause)
    remember(gate, load_i64(gate, ACTIVE) + load_i64(gate, WAITING), now)
    add_to(gate, RUNNING, -num_threads)
    add_to(gate, ACTIVE, -1)
    chain = admit(gate)
    unlock_gate(gate)
    wake(chain, call.release)


@inlined
def surplus_of(call: Execution, num_threads: int) -> int:
    """How many threads an execution should give back, as others wait."""
    gate = call.gate
    num_sharers = atomic_load(gate + 8 * ACTIVE) + atomic_load(gate + 8 * WAITING)
    if num_sharers == 1:
        return 0
    surplus: int = num_threads - max(1, load_i64(gate, LIMIT) // num_sharers)
    return max(0, surplus)
