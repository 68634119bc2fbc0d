"""Runs models without the library that parses command lines, which takes as long as to run one.

Only the plainest commands are understood here: ``run FILE`` with ``--json``, ``--input`` or
``--num-threads``. All others, and whatever is wrong with these, are left to the library.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

_MOST_DIGITS = 3
"""Of a number of threads."""

_LONGEST = 64
"""Arguments of a plain command; whoever gives more does not care for milliseconds."""


def plain_run(
    arguments: Sequence[str], logs: Callable[[], AbstractContextManager[None]] = nullcontext
) -> bool:
    """Follow a command, if it is a plain one; whether it was.

    Parameters
    ----------
    arguments : sequence of str
    logs : callable
        Shows what is logged in a block.

    Raises
    ------
    ArmpyError, OSError
        What goes wrong while it runs.
    """
    understood = _understood(arguments)
    if understood is None:
        return False
    path, inputs, num_threads, as_json = understood
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        return False
    # Most commands are not plain, and need nothing of this.
    from armpy.cli.run.run_file import run_file  # noqa: PLC0415

    return run_file(path, inputs, num_threads, logs, as_json=as_json)


def _understood(
    arguments: Sequence[str],
) -> tuple[str, tuple[str, ...], int | None, bool] | None:
    """The file, the inputs, how many threads, and whether JSON is wanted; None if more is said."""
    if len(arguments) > _LONGEST or list(arguments[:1]) != ["run"]:
        return None
    paths, inputs, num_threads, as_json = [], [], None, False
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "--json":
            as_json = True
        elif argument == "--input":
            value = next(rest, "")
            if not value or value.startswith("-"):
                return None
            inputs.append(value)
        elif argument == "--num-threads" and num_threads is None:
            value = next(rest, "")
            if not value.isdecimal() or len(value) > _MOST_DIGITS or not int(value):
                return None
            num_threads = int(value)
        elif argument and not argument.startswith("-"):
            paths.append(argument)
        else:
            return None
    return (paths[0], tuple(inputs), num_threads, as_json) if len(paths) == 1 else None
