"""One worker process, as the application sees it."""

from __future__ import annotations

import errno
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from armpy.core.dataclass import dataclass
from armpy.core.processes.fitness import UnfitError, hold_standard_streams
from armpy.core.processes.kept_process import (
    KeptProcess,
    end_in_words,
    exit_code_of,
    read_until_stopped,
    wait_readable,
)
from armpy.core.processes.protocol import (
    WorkerGoneError,
    error_from_fields,
    printable,
    receive_answer,
    send_request,
)
from armpy.core.resident_memory import machine_memory_bytes
from armpy.errors import DeadObjectError

_RECORD = re.compile(rb"\x1e(\d\d?) ([^\n\x1e]*)\n")
_FAULTING_THREAD = re.compile(r"^Current thread 0x([0-9a-f]+) ", re.MULTILINE)
_END_S = 0.5
"""Time that a process has to end after it has closed its connections."""
_LONGEST_S = 1e6
"""Longest wait for an answer: the system cannot wait for any number of seconds."""
_CHECK_S = 30.0
_STOP_S = 15.0
"""Time that a process has to stop when it is asked to; it takes some milliseconds."""
_MOST_WAITED = 3.0
"""Factor by which a process may exceed its limit that waits for a processor all the time."""
_MOST_WAITED_AT_END = 20.0
"""The same at its end: one that is thought to hang instead is reported as another failure."""
KEPT_BYTES = 64 << 10
"""Bytes that are kept of what a process writes to its standard output and error."""
_REST_S = 0.2
"""Time to wait for the rest of that output; a process of the worker's own may hold the pipe open.
"""


def default_memory_bytes() -> int:
    """Memory of its own that a worker may have where nobody says how much.

    A quarter of the machine's is left to the application and the system.
    """
    return machine_memory_bytes() * 3 // 4


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Limits and rights of a worker."""

    memory_bytes: int | None = 0
    """Memory of its own that the process may have; three quarters of the machine's if None, 0 for
    no limit.
    """
    confined: bool = False
    """Whether the process gives up rights."""
    writable: tuple[str, ...] = ()
    """Directories that it can write to then, besides armpy's cache."""
    writes_bytecode: bool = True
    """Whether the process writes compiled files beside the modules that it imports."""
    ends_in_order: bool = False
    """Whether the interpreter tidies up at the end, with all that the code in it wants done then;
    else the process leaves at once.
    """


class Worker:
    """A process that answers requests, whatever becomes of it.

    It is started anew with the same interpreter and ``sys.path``, but without Python's own
    environment variables and without standard input, and ends with the last reference to this, or
    with the application, together with all that it has started: on POSIX by a keeper in between, on
    Windows by a job, see `armpy.core.processes.kept_process`.
    A child that is forked from the application has none of its workers: their answers would
    go to whichever process reads first.

    Raises
    ------
    OSError
        If no process can be started.
    """

    def __init__(
        self,
        handler: str,  # ``"module:function"``; see `armpy.core.processes.child.main`
        settings: WorkerSettings | None = None,
        *,
        where: str = "",  # whose it is, for messages
        log: logging.Logger | None = None,  # gets what `record_line` writes in the process
    ) -> None:
        settings = settings or WorkerSettings()
        self._where = where
        self._lock = threading.Lock()  # one request at a time: answers come in their order
        self._reason = ""
        # When it was noticed that it failed, by `time.perf_counter`.
        self.failed_s: float | None = None
        self.is_late = False  # whether it was ended as it gave no answer in time
        self._pid: int | None = None
        # The number comes once, and can be asked for by the thread that waits for an answer.
        self._pid_lock = threading.Lock()
        flags = ["-I"] if settings.writes_bytecode else ["-I", "-B"]
        with ExitStack() as ours, ExitStack() as others:
            # The worker's standard streams would take the numbers of what it is passed.
            for descriptor in hold_standard_streams():
                others.callback(os.close, descriptor)
            self._connection, theirs = _sockets(ours, others)
            output, their_output = os.pipe()
            others.callback(os.close, their_output)
            self._output = Output(output, log)
            ours.callback(self._output.stop)
            memory_bytes = settings.memory_bytes
            if memory_bytes is None:
                memory_bytes = default_memory_bytes()
            request = {
                "sys_path": [str(path) for path in sys.path],
                "handler": handler,
                "memory_bytes": memory_bytes,
                "confined": settings.confined,
                "writable": settings.writable,
                "ends_in_order": settings.ends_in_order,
            }
            self._kept = KeptProcess(flags, request, theirs, their_output)
            ours.pop_all()
        self._process = self._kept.process
        self._finalizer = weakref.finalize(self, _end, self._kept, self._connection, self._output)
        _workers.add(self)

    @property
    def pid(self) -> int:
        """The process's number; the keeper's if there is one that does not send it in time."""
        with self._pid_lock:
            if self._pid is None:
                self._pid = self._kept.worker_pid(_STOP_S)
            return self._pid

    @property
    def is_running(self) -> bool:
        """Return whether it has neither ended nor been killed."""
        is_alive = self._finalizer.alive and not self._reason
        return is_alive and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Exit code of a process that has ended by itself; else None.

        Below 0 if a signal has ended it, or on Windows an exception.
        """
        if self._reason:
            return None
        _await(self._ends, self.pid, _END_S, _MOST_WAITED_AT_END)
        return exit_code_of(self._process)

    def _ends(self, timeout_s: float) -> bool:
        """Return whether the process ends in time."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
            return True
        return False

    def request(
        self,
        request: object,  # of the form of JSON
        attached: Sequence[int | socket.socket] = (),  # files and sockets for the process
        *,
        timeout_s: float,
        # Whether time for which the process waits for a processor is left out of its limit.
        is_own_time: bool = False,
    ) -> dict[str, Any]:  # Any: the reader checks
        """Ask for something and wait for the answer.

        Raises
        ------
        ArmpyError
            Error of the call in the worker.
        DeadObjectError
            If the process has ended, or does not answer in time, and is ended therefore.
        """
        with self._lock:
            try:
                self._connection.settimeout(min(timeout_s, _LONGEST_S))
                send_request(self._connection, request, attached, self._process)
                if is_own_time:
                    await_answer(self._connection, self.pid, timeout_s)
                answer = receive_answer(self._connection, min(timeout_s, _LONGEST_S))
            except TimeoutError as error:
                self.is_late = True
                self.kill(f"it gave no answer within {timeout_s:.3g} s")
                raise self.dead_object() from error
            except (WorkerGoneError, OSError) as error:
                if self.exit_code is None:  # half a request or answer may be under way
                    self.kill(str(error))
                raise self.dead_object() from error
        if "error" not in answer:
            return answer
        try:
            failure = error_from_fields(answer["error"])
        except WorkerGoneError as error:
            self.kill(str(error))
            raise self.dead_object() from error
        except UnfitError as error:
            self.retire(str(error))
            raise self.dead_object() from error
        raise failure

    def retire(self, reason: str) -> None:
        """End the process, as it says itself that it cannot serve any more."""
        self.kill(reason)

    def finish(self, timeout_s: float) -> int | None:
        """Let the process end by itself; its exit code, None if it does not in time."""
        with suppress(OSError):  # it has ended
            self._connection.shutdown(socket.SHUT_WR)
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def kill(self, reason: str) -> None:
        """End the process, as it has failed; `stop` waits for its end."""
        self._note_end()
        self._reason = self._reason or reason
        if self._finalizer.alive:
            self._kept.give_up()

    def stop(self) -> None:
        """End the process and its children, and release its resources."""
        self._finalizer()

    def leave_to_parent(self) -> None:
        """Have nothing to do with the process any more, in a child that was forked."""
        if self._finalizer.detach() is not None:
            self._reason = "it belongs to the process that this one was forked from"
            self._process.poll()  # which notes that it is none of this one's
            self._connection.close()
            self._kept.close()

    def dead_object(self) -> DeadObjectError:
        """The error for unfinished work."""
        self._note_end()
        return DeadObjectError(f"the backend's process has ended: {self.reason}", where=self._where)

    def _note_end(self) -> None:
        if self.failed_s is None:
            self.failed_s = time.perf_counter()

    @property
    def reason(self) -> str:
        """Why it has ended, in words."""
        if self._reason:
            return self._reason
        code = self.exit_code
        if code is None:
            return "it closed the connection"
        return f"it exited with code {code}" if code >= 0 else end_in_words(code)

    def output(self) -> str:
        """The last that it wrote to its standard output and error, fault reports included."""
        return self._output.text(has_ended=not self.is_running)

    def faulting_thread(self) -> int | None:
        """The thread in which a fatal signal has ended it, as its fault report says."""
        threads = _FAULTING_THREAD.findall(self.output())
        return int(threads[-1], 16) if threads else None


class Output:
    """Reads a pipe until its end, and keeps the last of it.

    Raises
    ------
    OSError
        If the process can have no more descriptors or threads.
    """

    def __init__(
        self,
        # The pipe's end to read from, which is closed when there is no more to read, and where this
        # cannot be made.
        descriptor: int,
        log: logging.Logger | None = None,  # gets the records in it, which are not kept
    ) -> None:
        self._kept = bytearray()
        self._is_stopped = False
        with ExitStack() as ends:
            ends.callback(os.close, descriptor)
            stopped, self._stop = os.pipe()
            ends.callback(os.close, stopped)
            ends.callback(os.close, self._stop)
            # It does not refer to this object, which could never be collected then.
            about = descriptor, stopped, self._kept, log
            self._thread = threading.Thread(target=_keep_tail, args=about, daemon=True)
            try:
                self._thread.start()
            except RuntimeError as error:
                # The same kind as for descriptors: callers ask only whether the system had enough.
                raise OSError(errno.EAGAIN, str(error)) from error
            # From here on the thread closes two of them, and `stop` the third.
            ends.pop_all()

    def text(self, *, has_ended: bool = False) -> str:
        """Return the kept output; of a process that has ended, all of it."""
        if has_ended:
            self._thread.join(_REST_S)
        # The stored part may begin in the midst of a character.
        return bytes(self._kept).decode(errors="replace")

    def stop(self) -> None:
        """Read the available bytes and stop, even if other processes still hold the other end."""
        if not self._is_stopped:
            self._is_stopped = True
            os.close(self._stop)
            self._thread.join()


def _keep_tail(descriptor: int, stopped: int, tail: bytearray, log: logging.Logger | None) -> None:
    try:
        for chunk in read_until_stopped(descriptor, stopped):
            tail += chunk
            if log is not None and b"\n" in chunk:
                for level, text in _RECORD.findall(tail):
                    log.log(int(level), "%s", printable(text.decode(errors="replace")))
                tail[:] = _RECORD.sub(b"", tail)
            del tail[:-KEPT_BYTES]
    finally:
        os.close(descriptor)
        os.close(stopped)


def record_line(level: int, text: str) -> bytes:
    """A log record as a process writes it to its standard error for the application's log."""
    # A write of at most 4 KiB to a pipe does not mix with those of other threads.
    return b"\x1e%d %b\n" % (level, " ".join(text.splitlines()).encode(errors="replace")[:4000])


def _sockets(ours: ExitStack, theirs: ExitStack) -> tuple[socket.socket, socket.socket]:
    mine, other = socket.socketpair()
    return ours.enter_context(mine), theirs.enter_context(other)


def _end(kept: KeptProcess, connection: socket.socket, output: Output) -> None:
    kept.give_up()
    try:
        kept.process.wait(_STOP_S)
    except subprocess.TimeoutExpired:  # the process is stopped, or gets no processor time
        kept.process.kill()  # if it is a keeper, the system ends the worker with it
        kept.process.wait()
    connection.close()
    kept.close()
    output.stop()


# For forks alone: a worker ends with the last reference that its user has, not with this one.
_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for worker in [*_workers]:
        worker.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def starved_s(pid: int) -> float:
    """Return how long a process waited for a processor; 0 where the system does not measure it.

    References
    ----------
    Linux kernel, ``Documentation/scheduler/sched-stats.rst``: the second number of
    ``/proc/PID/schedstat``, in nanoseconds, of the main thread.
    """
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) * 1e-9
    return 0.0


def await_answer(connection: socket.socket, pid: int, timeout_s: float) -> None:
    """Wait until there is something to read from a process.

    Time for which the process wanted a processor and others had them does not count, up to three
    times the limit: slow work on a busy machine has not hung.

    Raises
    ------
    TimeoutError
        If nothing came in time.
    """
    if not _await(partial(wait_readable, connection), pid, timeout_s, _MOST_WAITED):
        raise TimeoutError


def _await(
    is_done: Callable[[float], bool],  # waits so many seconds for what it returns
    pid: int,
    timeout_s: float,
    most: float,  # factor by which starved processes may exceed the limit
) -> bool:
    """Return whether something is done in time; a process's wait for processors does not count."""
    start, starved = time.monotonic(), starved_s(pid)
    end = start + timeout_s
    while not is_done(max(end - time.monotonic(), 0.0)):
        later = min(starved_s(pid) - starved, (most - 1) * timeout_s) + start + timeout_s
        if later <= time.monotonic():
            return False
        end = later
    return True


def find_in_force() -> dict[str, str]:
    """Return the limits in force in a confined worker on this machine, by name, in words.

    Where no worker can be started, the only entry says why.
    """
    try:
        # In a process of its own, as rights that are given up never come back.
        worker = Worker("armpy.core.processes.child:Checker", WorkerSettings(None, confined=True))
    except OSError as error:
        return {"processes": f"none can be started: {error}"}
    try:
        answer = worker.request(None, timeout_s=_CHECK_S)
    except DeadObjectError as error:
        return {"processes": error.failed}
    finally:
        worker.stop()
    return {str(name): str(text) for name, text in answer.items()}
