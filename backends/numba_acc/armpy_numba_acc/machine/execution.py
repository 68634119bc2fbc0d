"""Layout of the memory that describes one execution, for native code and for Python.

Notes
-----
One thread leads: the one that the application calls from. For each command that is worth it, it
publishes the command, which it and its workers claim shares of, and waits for the shares that
others have claimed (`armpy_numba_acc.llvm.threads.fork_join`). They communicate through a team:
the memory that belongs to one of its workers. That memory is the process's, so that workers may
look at it at any time, and no thread waits for one that does nothing.
"""

from __future__ import annotations

from armpy_numba_acc.machine.layout import MemoryLayout, Pointer


class ExecutionRecord(MemoryLayout):
    """Arguments of the executor, then those of `armpy_numba_acc.kernels.python_call`.

    Parameters
    ----------
    commands, num_commands : Pointer, int
        A `Command` each.
    sync : Pointer
        `SYNC_BYTES` that the threads share.
    cancel : Pointer
        An integer that says whether to stop.
    times : Pointer
        Room for one time more than there are commands, or 0.
    tickets : Pointer
        The workers', `TICKET_BYTES` each.
    finished : int
        Written: how many commands were run to their end.
    num_threads : int
        That the execution may have, the caller's among them; of them workers, the first ones that
        no other execution has.
    num_tensors : int
        How many arrays Python has to give.
    num_slots, slots : int, Pointer
        Arguments of commands that lie in these arrays: a `Slot` each.
    array_type : Pointer
        The type that every one of the arrays has to be of.
    to_python : Pointer
        The interpreter's function that makes its integers.
    let_others, take_back : Pointer
        The interpreter's functions that let other Python threads run and end that; the first one
        is 0 if the program is too short for that.
    start : int
        The command to begin with: 0, or the one at which a loop has let Python look for interrupts.
    arbiter : Pointer
        The process's `armpy_numba_acc.machine.core_arbiter.CoreArbiter`; 0 if the program is too
        short for that.
    is_patient : int
        Whether it waits for its turn. Otherwise it is counted there only.
    acquire, release : Pointer
        The interpreter's functions that take a lock within some time, and free it.
    turn : Pointer
        The interpreter's lock that is free once it is the execution's turn.
    granted, next : int, Pointer
        Written: how many threads it has then, and the execution that waits after it.
    team : Pointer
        Written: the ticket of its first worker.
    """

    commands: Pointer
    num_commands: int
    sync: Pointer
    cancel: Pointer
    times: Pointer
    tickets: Pointer
    finished: int
    executor: Pointer
    num_threads: int
    num_tensors: int
    num_slots: int
    slots: Pointer
    array_type: Pointer
    to_python: Pointer
    let_others: Pointer
    take_back: Pointer
    start: int
    arbiter: Pointer
    is_patient: int
    acquire: Pointer
    release: Pointer
    turn: Pointer
    granted: int
    next: Pointer
    team: Pointer


class Command(MemoryLayout):
    """A command as the executor sees it.

    Parameters
    ----------
    function, args : Pointer
        The kernel's code, and the words of its call.
    num_pieces : int
        In which it is run at least; in between, threads look whether they are to stop.
    num_shares : int
        Of which threads claim some at a time; 0 if one thread runs it alone.
    """

    function: Pointer
    args: Pointer
    num_pieces: int
    num_shares: int


class Slot(MemoryLayout):
    """An argument that lies in one of the caller's arrays.

    Parameters
    ----------
    number : int
        Of the array.
    target : Pointer
        Where the argument is written.
    offset : int
        The argument's meaning beyond the address of the array's elements.
    """

    number: int
    target: Pointer
    offset: int


LINE_BYTES = 64
"""What different threads write lies so far apart: a cache line."""

FAILURE, CONTROL = (LINE_BYTES * line for line in range(2))
"""Offsets in an execution's own memory: which index was out of range; what loops need."""

NO_AXIS = -2
"""The size in a failure where no index was out of range: a branch does not fit its inputs."""

NO_REGION = -3
"""The size in a failure where a region cannot be used; its number stands for the index."""

SYNC_BYTES = 2 * LINE_BYTES

CONTROL_NEXT, CONTROL_DEPTH, CONTROL_LIMIT, CONTROL_END, CONTROL_PAUSE, CONTROL_TURNS = range(6)
"""What loops need: 0, or the command to run next, plus 1, or `STAY`; how many loops lie in each
other just now; how many nanoseconds the outermost one may take, and when it has to be done, or -1;
when Python wants to look for interrupts; turns of the loop that has stopped."""

STAY = -1
"""The execution ends at this command, and can go on there."""

NOT_RUN = -1
"""Given back where the arrays are not what native code can look into."""

TICKET_BYTES = 4 * LINE_BYTES
"""Of each worker, at multiples of it. The first integer, which leaders write, is 0 or the address
of a team plus the worker's number in it."""

ASLEEP, OWNER, STOP, SLEEP_LOCK, ACQUIRE, NATIVE_ID, FETCHED = (8 * n for n in range(1, 8))
"""Offsets from a ticket: whether its worker sleeps; whose it is, 0 or the address of an execution,
taken and given back by native code, which no signal can interrupt; whether the worker is to end;
the interpreter's lock that it sleeps on, and the interpreter's function that takes it; the worker's
number for the system; whether the leader has fetched it to its own core."""

PUBLISHED, COMMAND, COMMANDS, CANCEL, TEAM_THREADS = (
    LINE_BYTES + 8 * number for number in range(5)
)
"""Offsets from a team, written by its leader: how many commands were published ever; the command's
number; a `Command` each; an integer that says whether to stop; threads, the leader among them."""

HAS_CLAIMED = 3 * LINE_BYTES
"""Offset from a ticket: whether its worker may have claimed shares that are not done."""

CLAIMS, DONE = 2 * LINE_BYTES, 2 * LINE_BYTES + 8
"""Offsets from a team: shares that are not claimed, as
`armpy_numba_acc.llvm.threads.fork_join.claims_of` puts them together; how many workers have done
of the shares that they have claimed."""
