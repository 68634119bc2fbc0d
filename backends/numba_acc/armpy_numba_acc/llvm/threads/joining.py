"""Join: waiting of a leader for the shares that its workers have claimed.

Notes
-----
A worker that another process keeps from its core would be waited for until the system lets it go
on, which takes milliseconds. On Linux the leader fetches it to its own core, which is idle anyway;
a fetched worker sleeps once it has done its shares, and the leader lets it go where it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from armpy_numba_acc.llvm.calls import CallFields
from armpy_numba_acc.llvm.control import loop_while, when
from armpy_numba_acc.llvm.primitives import Definition, linked
from armpy_numba_acc.llvm.threads.tickets import each_own
from armpy_numba_acc.llvm.threads.waiting import SPINS, pause
from armpy_numba_acc.llvm.values import I32, I64, Code, CodeValue
from armpy_numba_acc.machine.execution import (
    DONE,
    FETCHED,
    HAS_CLAIMED,
    NATIVE_ID,
    ExecutionRecord,
)
from armpy_numba_acc.machine.isa import Isa

_AWAIT = "armpy_await_shares"

await_shares = linked(_AWAIT, 2)
"""``(execution, count)`` waits until workers have done so many shares of a published command."""

_MASK_WORDS = 16
"""Of a set of processors: up to 1024. Where there are more, no worker is fetched."""


def await_definition(isa: Isa) -> Definition:
    """Return the function that `await_shares` calls."""

    def write(code: Code, execution: CodeValue, count: CodeValue) -> None:
        done = CallFields(ExecutionRecord, execution).team + DONE

        def turn(carried: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
            (spins,) = carried
            is_open = done.load_shared() < count

            def wait() -> list[CodeValue]:
                pause(code, isa, spins)
                if "linux" in isa.triple:
                    fetches = spins.equals(SPINS)
                    when(fetches, lambda: _fetch_all(code, isa, execution, done, count))
                return [spins + 1]

            return is_open, when(is_open, wait, lambda: [spins])

        loop_while(code, [code.integer(0)], turn)

    return Definition(_AWAIT, 2, write)


def _fetch_all(
    code: Code, isa: Isa, execution: CodeValue, done: CodeValue, count: CodeValue
) -> list[CodeValue]:
    """Fetch workers one after the other, until they have done their shares."""
    old, here = code.stack(I64, _MASK_WORDS), code.stack(I64, _MASK_WORDS)
    size_bytes = code.integer(8 * _MASK_WORDS)
    for word in range(_MASK_WORDS):
        here.store(code.integer(0), word)
    cpu = code.call("sched_getcpu", I32).unsigned(I64) % (64 * _MASK_WORDS)
    here.store(code.integer(1) << cpu % 64, cpu / 64)

    def visit(ticket: CodeValue) -> None:
        def is_busy() -> CodeValue:
            has_claimed = (ticket + HAS_CLAIMED).load_shared().differs(0)
            return has_claimed & (done.load_shared() < count)

        def place(function: str, mask: CodeValue) -> CodeValue:
            thread = (ticket + NATIVE_ID).load(I64).narrowed(I32)
            return code.call(f"sched_{function}affinity", I32, thread, size_bytes, mask)

        def fetch() -> list[CodeValue]:
            (ticket + FETCHED).store_shared(1)
            place("set", here)

            def turn(_: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
                pause(code, isa, code.integer(SPINS))
                return is_busy(), []

            loop_while(code, [], turn)
            place("set", old)
            return []

        def look() -> list[CodeValue]:
            when(place("get", old) >= 0, fetch)
            return []

        when(is_busy(), look)

    each_own(execution, visit)
    return []
