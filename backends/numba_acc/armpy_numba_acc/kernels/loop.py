"""Begins loops, ends them, and decides which command runs next."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import load_i64, load_u8, store_i64
from armpy_numba_acc.llvm.threads.fork_join import fail
from armpy_numba_acc.llvm.threads.waiting import clock_of
from armpy_numba_acc.machine.calls.loops import Loop
from armpy_numba_acc.machine.execution import (
    CONTROL_DEPTH,
    CONTROL_END,
    CONTROL_LIMIT,
    CONTROL_NEXT,
    CONTROL_PAUSE,
    CONTROL_TURNS,
    NO_AXIS,
    STAY,
)
from armpy_numba_acc.machine.isa import Isa


def make(isa: Isa, part: str) -> Callable[[int, int, int], None]:
    """Make one of six kernels, which one thread runs.

    ``begin`` stands in front of a loop; ``test`` in front of the body, and jumps after the loop
    if there is no other turn; ``back`` after the body, and jumps to in front of the test.
    ``unless`` jumps if its flag is 0, ``skip`` always: they choose one of two branches.
    ``refuse`` fails, in a branch that does not fit its inputs; its flag is where it says so.

    The test ends the execution at its own command if the outermost loop's time is up, or if
    Python is to check for an interrupt; the execution can go on there.
    """
    read, clock_ns = reader(Loop), clock_of(isa)

    def begin(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        control = call.control
        store_i64(call.turns, 0, 0)
        depth, limit = load_i64(control, CONTROL_DEPTH), load_i64(control, CONTROL_LIMIT)
        if depth == 0:  # what lies in another loop has that one's time
            store_i64(control, CONTROL_END, clock_ns() + limit if limit >= 0 else -1)
        store_i64(control, CONTROL_DEPTH, depth + 1)

    def test(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        control, turns = call.control, load_i64(call.turns, 0)
        goes_on = turns < call.most_turns
        if call.flag != 0:
            goes_on = load_u8(call.flag, 0) != 0
        if goes_on:
            now, end = clock_ns(), load_i64(control, CONTROL_END)
            if now >= load_i64(control, CONTROL_PAUSE) or (end >= 0 and now >= end):
                store_i64(control, CONTROL_TURNS, turns)
                store_i64(control, CONTROL_NEXT, STAY)
        else:
            store_i64(control, CONTROL_DEPTH, load_i64(control, CONTROL_DEPTH) - 1)
            store_i64(control, CONTROL_NEXT, call.target + 1)  # 0 is not a jump

    def back(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        store_i64(call.turns, 0, load_i64(call.turns, 0) + 1)
        store_i64(call.control, CONTROL_NEXT, call.target + 1)

    def unless(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        if load_u8(call.flag, 0) == 0:
            store_i64(call.control, CONTROL_NEXT, call.target + 1)

    def skip(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        store_i64(call.control, CONTROL_NEXT, call.target + 1)

    def refuse(args: int, shares: int, num_shares: int) -> None:
        fail(read(args).flag, NO_AXIS, 0)

    parts = {
        "begin": begin,
        "test": test,
        "back": back,
        "unless": unless,
        "skip": skip,
        "refuse": refuse,
    }
    return parts[part]
