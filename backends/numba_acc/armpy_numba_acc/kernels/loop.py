"""Begins loops, ends them, and says what is to run next."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# What Numba compiles has no types for mypy: everything is an integer or an address.

from __future__ import annotations

from armpy_numba_acc.llvm.pointers import load_i64, load_u8, store_i64
from armpy_numba_acc.llvm.waiting import clock_ns
from armpy_numba_acc.machine.execution import (
    CONTROL_DEPTH,
    CONTROL_END,
    CONTROL_LIMIT,
    CONTROL_NEXT,
    CONTROL_PAUSE,
    CONTROL_TURNS,
    STAY,
)
from armpy_numba_acc.machine.isa import Isa

ARGUMENTS = ("control", "turns", "flag", "most_turns", "target")
"""`control` is what `armpy_numba_acc.machine.execution` says, `turns` where the turns are
counted. There is another turn as long as the byte at `flag` is not 0 or, if that is no address,
for `most_turns`. `target` is the command that a jump leads to."""


def make(isa: Isa, part: str):
    """Make one of three kernels, which one thread runs.

    Notes
    -----
    ``begin`` stands in front of a loop; ``test`` in front of the body, and jumps behind the loop
    if there is no other turn; ``back`` behind the body, and jumps to what is in front of the test.

    The test ends the execution at its own command if the outermost loop's time is up, or if
    Python is to look whether somebody interrupts; the execution can go on there.
    """

    def begin(args, thread, num_threads):
        control, turns = load_i64(args, 0), load_i64(args, 1)
        store_i64(turns, 0, 0)
        depth, limit = load_i64(control, CONTROL_DEPTH), load_i64(control, CONTROL_LIMIT)
        if depth == 0:
            store_i64(control, CONTROL_END, clock_ns() + limit if limit >= 0 else -1)
        store_i64(control, CONTROL_DEPTH, depth + 1)

    def test(args, thread, num_threads):
        control, turns = load_i64(args, 0), load_i64(load_i64(args, 1), 0)
        flag, most_turns = load_i64(args, 2), load_i64(args, 3)
        goes_on = turns < most_turns
        if flag != 0:
            goes_on = load_u8(flag, 0) != 0
        if goes_on:
            now, end = clock_ns(), load_i64(control, CONTROL_END)
            if now >= load_i64(control, CONTROL_PAUSE) or (end >= 0 and now >= end):
                store_i64(control, CONTROL_TURNS, turns)
                store_i64(control, CONTROL_NEXT, STAY)
        else:
            store_i64(control, CONTROL_DEPTH, load_i64(control, CONTROL_DEPTH) - 1)
            store_i64(control, CONTROL_NEXT, load_i64(args, 4) + 1)

    def back(args, thread, num_threads):
        control, turns = load_i64(args, 0), load_i64(args, 1)
        store_i64(turns, 0, load_i64(turns, 0) + 1)
        store_i64(control, CONTROL_NEXT, load_i64(args, 4) + 1)

    return {"begin": begin, "test": test, "back": back}[part]
