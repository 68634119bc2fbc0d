"""Walks over the tickets of workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from armpy_numba_acc.llvm.calls import CallFields
from armpy_numba_acc.llvm.control import loop_while, when
from armpy_numba_acc.llvm.values import I64, CodeValue
from armpy_numba_acc.machine.core_arbiter import NUM_WORKERS
from armpy_numba_acc.machine.execution import OWNER, TICKET_BYTES, ExecutionRecord


def each_ticket(
    execution: CodeValue, visit: Callable[[CodeValue, CodeValue], CodeValue]
) -> CodeValue:
    """Go through the tickets of all workers; the sum of what ``visit(ticket, sum)`` gives."""
    call = CallFields(ExecutionRecord, execution)
    tickets, end = call.tickets, call.arbiter.load(I64, NUM_WORKERS)

    def turn(carried: list[CodeValue]) -> tuple[CodeValue, Sequence[CodeValue]]:
        worker, total = carried
        is_there = worker < end

        def look() -> list[CodeValue]:
            return [worker + 1, total + visit(tickets + worker * TICKET_BYTES, total)]

        return is_there, when(is_there, look, lambda: [worker, total])

    none = execution.code.integer(0)
    return loop_while(execution.code, [none, none], turn)[1]


def each_own(execution: CodeValue, visit: Callable[[CodeValue], None]) -> None:
    """Visit the tickets of an execution's workers."""

    def look(ticket: CodeValue, _: CodeValue) -> CodeValue:
        def enter() -> list[CodeValue]:
            visit(ticket)
            return []

        when((ticket + OWNER).load_shared().equals(execution), enter)
        return execution.code.integer(0)

    each_ticket(execution, look)
