"""Where what is in the memory that describes one execution, for native code and for Python.

Notes
-----
The executor's words come first; `armpy_numba_acc.llvm.teamwork` says what they are. Those that
follow are for `armpy_numba_acc.kernels.python_call`.
"""

from __future__ import annotations

NUM_COMMANDS, CANCEL, FINISHED = 1, 3, 6
"""Of the executor's words, those that others look at."""

EXECUTOR = 7
"""Address of the executor."""

NUM_THREADS = 8
"""That the execution may have."""

NUM_TENSORS = 9
"""How many arrays Python has to give."""

NUM_SLOTS, SLOTS = 10, 11
"""How many arguments of commands lie in these arrays, and the address of three words for each:
the array's number, the argument's address, and what the argument is beyond the array's."""

ARRAY_TYPE = 12
"""Address of the type that every one of them has to be of."""

TO_PYTHON = 13
"""Address of the interpreter's function that makes its integers."""

LET_OTHERS, TAKE_BACK = 14, 15
"""Addresses of the interpreter's functions that let other Python threads run and end that; the
first one is 0 if the program is too short for that."""

START = 16
"""The command to begin with: 0, or the one at which a loop has let Python look for interrupts."""

NUM_WORDS = 17

CONTROL_NEXT, CONTROL_DEPTH, CONTROL_LIMIT, CONTROL_END, CONTROL_PAUSE, CONTROL_TURNS = range(6)
"""What loops need, in memory of its own: 0, or the command to run next, plus 1, or `STAY`; how many
loops lie in each other just now; how many nanoseconds the outermost one may take, and when it has
to be done, or -1; when Python wants to look for interrupts; turns of the loop that has stopped."""

STAY = -1
"""The execution ends at this command, and can go on there."""

NOT_RUN = -1
"""Given back where the arrays are not what native code can look into."""
