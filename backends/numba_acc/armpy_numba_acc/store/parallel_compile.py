"""Other processes that compile kernels at the same time, and leave them on disk."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, TypeAlias

from armpy.core.processes.helper import end_with_owner, start_sending
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.cores import usable_cores

KERNELS_PER_PROCESS = 4
"""As many have to be missing for each: starting one takes as long as compiling two or three."""

_MOST = 3
_END_S = 20.0
"""How long those that are at their last kernels are waited for; a kernel takes a second."""

_CHILD = """\
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from armpy_numba_acc.store.parallel_compile import main
main(sys.stdin.buffer, int(sys.argv[1]))
"""

_log = logging.getLogger("armpy.NumbaAcc")

Work: TypeAlias = Callable[[Sequence[Kernel], Isa], None]
"""Compiles those kernels that no other process is compiling; a function of a module."""


class CompileWorkers:
    """Processes that share the compilation of a list, each from its own place in it.

    They are new interpreters that import neither ``__main__`` nor anything of the application.
    Their results are on disk, and the caller compiles modules that they fail on; they report
    nothing else.
    """

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, kernels: Sequence[Kernel], isa: Isa, count: int, work: Work) -> None:
        """Start some, or as many as the system lets."""
        for number in range(1, count + 1):
            first = number * len(kernels) // (count + 1)
            # Each begins elsewhere, so that they meet late and seldom wait for one kernel.
            turned = [*kernels[first:], *kernels[:first]]
            message = pickle.dumps([*map(str, sys.path)]) + pickle.dumps((isa, turned, work))
            try:
                self._processes.append(_started())
                start_sending(self._processes[-1], message)
            # Limits on processes, threads and memory are no reason to fail: this process compiles.
            except (OSError, RuntimeError) as error:
                _log.info("kernels are compiled by fewer processes: %s", error)
                return

    def finish(self) -> None:
        """Wait until they have nothing left to do; end those that take too long, or are stopped."""
        limit_s = time.perf_counter() + _END_S
        for process in self._processes:
            try:
                process.wait(max(0.0, limit_s - time.perf_counter()))
            except subprocess.TimeoutExpired:
                text = "process %d has not compiled its kernels within %g s: compiling them here"
                _log.warning(text, process.pid, _END_S)
                process.kill()  # which releases its locks

    def stop(self) -> None:
        """End those that are not at their end."""
        for process in self._processes:
            process.kill()
            process.wait()  # briefly: the system ends it, whatever it does
            if process.stdin is not None:
                with contextlib.suppress(OSError):  # it has ended before it had read all
                    process.stdin.close()


@contextlib.contextmanager
def compile_workers(
    kernels: Sequence[Kernel], isa: Isa, num_processes: int, work: Work
) -> Iterator[CompileWorkers]:
    """Have other processes compile a part of some kernels.

    Parameters
    ----------
    kernels
        In an order in which neighbours have much in common; this process begins with the first.
    num_processes
        Limit for all that compile, this one included.
    work : callable
        Done by the other processes.
    """
    workers = CompileWorkers()
    limit = min(num_processes, usable_cores(), 1 + _MOST, len(kernels) // KERNELS_PER_PROCESS)
    try:
        if limit > 1 and _is_python(sys.executable):
            workers.start(kernels, isa, limit - 1, work)
        yield workers
    finally:
        workers.stop()


def main(stream: BinaryIO, owner: int) -> None:
    """Compile kernels that no other process is compiling, until the application ends or has all.

    Parameters
    ----------
    stream
        Gives an instruction set, kernels and the work, pickled, and comes to its end with the
        application.
    owner
        Process id of the application.
    """
    isa, kernels, work = pickle.load(stream)
    end_with_owner(stream, owner)
    try:
        work(kernels, isa)
    finally:
        os._exit(0)  # without waiting for the thread that reads


def _started() -> subprocess.Popen[bytes]:
    """A process that waits for work."""
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _CHILD, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # So that the terminal's interrupts are the application's. Those of a process that has
        # stepped back stay in its session, as the system may weigh only sessions by priorities.
        start_new_session=not _has_stepped_back(),
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


def _has_stepped_back() -> bool:
    """Return whether this process has a lower priority than others."""
    return hasattr(os, "nice") and os.nice(0) > 0


def _is_python(executable: str | None) -> bool:
    """Return whether an interpreter can be started anew: applications that embed one cannot."""
    name = os.path.basename(executable or "").lower()
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)
