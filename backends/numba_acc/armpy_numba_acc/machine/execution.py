"""Layout of the memory that describes one execution, for native code and for Python.

Notes
-----
One thread leads: the one that the application calls from. It forks and joins workers: for each
command that is worth it, it publishes the command's number, does a share of its own, and waits
until the others have done theirs (`armpy_numba_acc.llvm.threads.fork_join`). They communicate
through the execution's `SYNC_BYTES`; workers are found through the process's tickets.
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
        The workers', `LINE_BYTES` each.
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


class Command(MemoryLayout):
    """A command as the executor sees it.

    Parameters
    ----------
    function, args : Pointer
        The kernel's code, and the words of its call.
    num_pieces : int
        In which each thread's share is run; in between, threads look whether they are to stop.
    is_parallel : int
        Whether several threads run it.
    """

    function: Pointer
    args: Pointer
    num_pieces: int
    is_parallel: int


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

PUBLISHED, DONE, JOINED, FAILURE, CONTROL = (LINE_BYTES * line for line in range(5))
"""Offsets in the memory that threads share: command and number of threads, as
`armpy_numba_acc.llvm.threads.fork_join.published` puts them together; shares that workers have
done; workers that have joined; which index was out of range; what loops need."""

SYNC_BYTES = 5 * LINE_BYTES

CONTROL_NEXT, CONTROL_DEPTH, CONTROL_LIMIT, CONTROL_END, CONTROL_PAUSE, CONTROL_TURNS = range(6)
"""What loops need: 0, or the command to run next, plus 1, or `STAY`; how many loops lie in each
other just now; how many nanoseconds the outermost one may take, and when it has to be done, or -1;
when Python wants to look for interrupts; turns of the loop that has stopped."""

STAY = -1
"""The execution ends at this command, and can go on there."""

NOT_RUN = -1
"""Given back where the arrays are not what native code can look into."""

NO_CALL, TAKEN = 0, 1
"""What a ticket can be besides the address of an execution."""

ASLEEP, OWNER, STOP = 8, 16, 24
"""Offsets from a ticket: by the first integer its worker says that it has gone to sleep. The second
one says whose the ticket is: 0, or the address of an execution; it is taken and given back by
native code, which no signal can interrupt. The third one asks the worker to end
once it has no execution: a place of its own, because executions write tickets at any time."""
