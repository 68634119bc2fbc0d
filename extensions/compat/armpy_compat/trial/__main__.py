"""Runs a program and records what it does with its engine; `armpy try` starts it twice.

Usage::

    python -P -m armpy_compat.trial own|armpy|armpy+tensorflow FOLDER BEGAN PROGRAM [arguments]
"""

from __future__ import annotations

import atexit
import io
import os
import random
import sys
import time
from typing import Any, NoReturn

import numpy as np

import armpy_compat
from armpy_compat.program import run_program
from armpy_compat.trial.engine_calls import watchers
from armpy_compat.trial.imports import ImportWatcher, is_importable
from armpy_compat.trial.recorder import Recorder

_MODULES = ("onnxruntime", "litert", "pyarmnn")
"""Modules of armpy_compat that stand for engines."""


class WatchedInput(io.TextIOWrapper):
    """Standard input that knows whether it was read."""

    was_read = False

    @property
    def buffer(self) -> Any:  # Any: of the type that was wrapped
        """The bytes below, which a program that asks for them reads."""
        self.was_read = True
        return super().buffer

    def read(self, size: int | None = -1, /) -> str:
        """Read as every file."""
        self.was_read = True
        return super().read(size)

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        """Read a line as every file."""
        self.was_read = True
        return super().readline(size)

    def __next__(self) -> str:  # type: ignore[override]
        self.was_read = True
        return super().__next__()


def main() -> None:
    """Run the program of the command line on one side, and write the record at exit."""
    side, folder, began, path, *arguments = sys.argv[1:]
    recorder = Recorder(folder, float(began))
    facts: dict[str, Any] = recorder.facts  # Any: members of the record
    facts["ended"] = {"type": "", "text": "", "module": "", "cause": ""}
    watcher = ImportWatcher(watchers(recorder), recorder.add_missing)
    if side != "own":
        armpy_compat.install(with_absent=False)
    if side == "armpy+tensorflow":
        armpy_compat.install_as_tensorflow()
    sys.meta_path.insert(0, watcher)
    # Programs that draw numbers draw the same ones on both sides.
    random.seed(0)
    np.random.seed(0)
    stdin = sys.stdin = WatchedInput(sys.stdin.buffer, encoding=sys.stdin.encoding)
    start, processor_start = time.perf_counter(), time.process_time()

    def finish() -> None:
        """Run after threads and exit handlers of the program."""
        facts["program_s"] = time.perf_counter() - start
        facts["processor_s"] = time.process_time() - processor_start
        facts["reads_input"] = stdin.was_read
        facts["engines"] = sorted(watcher.imported)
        facts["is_armpy"] = any(f"armpy_compat.{name}" in sys.modules for name in _MODULES)
        recorder.forget_missing(is_importable)
        recorder.write()

    def leave(status: int) -> NoReturn:
        """Leave without exit handlers, but with the record."""
        finish()
        leave_at_once(status)

    atexit.register(finish)
    leave_at_once, os._exit = os._exit, leave
    try:
        run_program(path, arguments)
    except SystemExit:
        raise
    except BaseException as error:
        facts["ended"] = {
            "type": type(error).__name__,
            "text": str(error),
            "module": getattr(error, "name", None) or "",
            "cause": _first_cause(error),
        }
        raise


def _first_cause(error: BaseException) -> str:
    """The exception that caused an exception, through others too; empty if there is none.

    Errors of C functions often say only that there is a cause.
    """
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
    return f"{type(chain[-1]).__name__}: {chain[-1]}" if len(chain) > 1 else ""


if __name__ == "__main__":
    main()
