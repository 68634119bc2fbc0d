"""The ``armpy`` command, called in this process."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout

from armpy.cli.__main__ import main


def armpy_command(arguments: Sequence[str]) -> int:
    """Run ``armpy`` with these arguments, as the installed script does.

    Output goes to `sys.stdout` and `sys.stderr`, where pytest's `capsys` reads it.

    Returns
    -------
    int
        The exit code: 0, 1 for a failure, 2 for a wrong command line.
    """
    return main(arguments)


def armpy_output(arguments: Sequence[str]) -> tuple[int, str]:
    """Run ``armpy`` with these arguments and capture both streams.

    Returns
    -------
    code : int
        As of `armpy_command`.
    output : str
        The text on stdout and stderr, in the order of writing.
    """
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = armpy_command(arguments)
    return code, output.getvalue()
