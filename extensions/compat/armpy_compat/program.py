"""Python programs, run in this process as `python PROGRAM` runs them."""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType


def compiled_program(path: str) -> CodeType:
    """Read and compile a program.

    Raises
    ------
    OSError
        If the file cannot be read.
    SyntaxError, ValueError
        If it is not a Python program.
    """
    with io.open_code(os.path.abspath(path)) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def run_program(path: str, arguments: Sequence[str]) -> None:
    """Run a program as the main module of this process; its errors are raised here.

    Parameters
    ----------
    path : str
    arguments : sequence of str
        The program's own, ``sys.argv[1:]``.

    Notes
    -----
    The module stays in `sys.modules`, so that the program's threads and exit handlers find it.
    """
    code = compiled_program(path)
    main = ModuleType("__main__")
    main.__dict__.update(__file__=os.path.abspath(path), __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = main
    sys.argv = [path, *arguments]
    # As Python does: the folder of the file that a symbolic link leads to.
    folder = os.path.dirname(os.path.realpath(path))
    # `python -m` puts the current folder there, unless -P is given.
    sys.path[: 0 if sys.flags.safe_path else 1] = [folder]
    exec(code, main.__dict__)
