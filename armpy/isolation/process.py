"""One worker process, as the application sees it."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from armpy.errors import DeadObjectError
from armpy.isolation.limits import IsolationLimits
from armpy.isolation.protocol import (
    CONFIGURE,
    LOAD,
    OUT_OF_MEMORY,
    WorkerGoneError,
    error_from_fields,
    receive_answer,
    send_request,
)
from armpy.isolation.shared_block import create_block
from armpy.isolation.source import BackendSource

_log = logging.getLogger("armpy.isolation")

_CHILD = """\
import json, sys
settings = json.loads(sys.argv[1])
sys.path[:] = settings["sys_path"]
from armpy.worker.main import main
main(settings)
"""
UNKNOWN = object()
"""In the place of a culprit: one of those that were under way."""

_SHOWN_OUTPUT_BYTES = 2000
_REPORT_BYTES = 64 << 10
_FAULTING_THREAD = re.compile(r"^Current thread 0x([0-9a-f]+) ", re.MULTILINE)
_KEPT_OUTPUT_BYTES = 1 << 20


class WorkerProcess:
    """A process that has one backend, whatever becomes of it.

    Parameters
    ----------
    source : BackendSource
    limits : IsolationLimits
    options : mapping, optional
        Of scope RUNTIME; the backend is only described if they are left out.

    Attributes
    ----------
    description : dict of str to object
        What the backend says of itself.
    busy : set of object
        The executions that are under way, and preparations.
    prepared : set of int
        Numbers of the parts that it has.
    culprit : object
        The execution that has ended it; None while it runs.
    failed_s : float or None
        When it was noticed that it failed, by `time.perf_counter`.

    Raises
    ------
    ArmpyError
        What the backend raises there while it is loaded.
    DeadObjectError
        If the process ends instead.
    OSError
        If none can be started.
    """

    def __init__(
        self,
        source: BackendSource,
        limits: IsolationLimits,
        options: dict[str, Any] | None = None,  # Any: as the options are
    ) -> None:
        self._where = source.backend_id
        self._limits = limits
        self._lock = threading.Lock()
        self.busy: set[object] = set()
        self.prepared: set[int] = set()
        self.culprit: object = None
        self.failed_s: float | None = None
        self._reason = ""
        self._connection, theirs = socket.socketpair()
        self._life, their_life = socket.socketpair()
        self._output = create_block(0)
        os.ftruncate(self._output, 0)
        fcntl.fcntl(self._output, fcntl.F_SETFL, os.O_APPEND)  # so that it can be cut short
        settings = {
            "sys_path": [str(path) for path in sys.path],
            "connection": theirs.fileno(),
            "life": their_life.fileno(),
            "memory_bytes": limits.memory_bytes,
            "confined": limits.confined,
            "writable": [os.fspath(path) for path in limits.writable_paths],
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _CHILD, json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=(theirs.fileno(), their_life.fileno()),
                start_new_session=True,  # so that the terminal's interrupts are the application's
            )
        except BaseException:
            for end in (self._connection, self._life):
                end.close()
            os.close(self._output)
            raise
        finally:
            theirs.close()
            their_life.close()
        ends = self._connection, self._life
        self._finalizer = weakref.finalize(self, _end, self._process, ends, self._output)
        try:
            answer = self.request((LOAD, source), timeout_s=limits.start_timeout_s)
            self.description: dict[str, Any] = answer  # Any: read with care
            if options is not None:
                self.configure(options)
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._finalizer.alive and self._process.poll() is None

    def configure(self, options: dict[str, Any]) -> None:  # Any: as the options are
        """Set the backend up; errors as for `request`."""
        self.request((CONFIGURE, options), timeout_s=self._limits.start_timeout_s)

    def request(
        self, request: object, descriptors: Sequence[int] = (), *, timeout_s: float
    ) -> dict[str, Any]:  # Any: the reader checks
        """Ask for something and wait for the answer.

        Raises
        ------
        ArmpyError
            What went wrong there.
        DeadObjectError
            If the process has ended, or does not answer in time, and is ended therefore.
        """
        with self._lock:
            try:
                self._connection.settimeout(timeout_s)
                send_request(self._connection, request, descriptors)
                answer = receive_answer(self._connection)
            except TimeoutError as error:
                self.kill(f"it gave no answer within {timeout_s:g} s")
                raise self.dead_object() from error
            except (WorkerGoneError, OSError) as error:
                if isinstance(error, WorkerGoneError) and self.is_running:
                    self.wait_for_end(str(error))
                raise self.dead_object() from error
        if "error" not in answer:
            return answer
        failure = answer["error"]
        if isinstance(failure, dict) and failure.get("kind") == OUT_OF_MEMORY:
            self.kill("it had no memory left")
            raise self.dead_object()
        raise error_from_fields(failure)

    def wait_for_end(self, otherwise: str) -> None:
        """Give a process that has closed its connections a moment to end; then end it."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
            return
        self.kill(otherwise)

    def kill(self, reason: str) -> None:
        """End the process, as it has failed."""
        self._note_end()
        self._reason = self._reason or reason
        with suppress(ProcessLookupError):
            self._process.kill()  # who waits for its end is in no hurry: see `stop`

    def stop(self) -> None:
        """End the process and give all it had back."""
        self._finalizer()

    def dead_object(self) -> DeadObjectError:
        """The error for what it did not come to the end of."""
        self._note_end()
        error = DeadObjectError(f"the backend's process has ended: {self.reason}")
        error.where = self._where
        return error

    def _note_end(self) -> None:
        """Keep the time at which the end is noticed first."""
        if self.failed_s is None:
            self.failed_s = time.perf_counter()

    @property
    def reason(self) -> str:
        """Why it has ended, in words."""
        if self._reason:
            return self._reason
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        code = self._process.returncode
        if code is None:
            return "it closed the connection"
        if code >= 0:
            return f"it exited with code {code}"
        try:
            return f"it was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"it was ended by signal {-code}"

    def output(self, size_bytes: int = _SHOWN_OUTPUT_BYTES) -> str:
        """The last that it wrote to its standard output and error, fault reports included."""
        if not self._finalizer.alive:
            return ""
        size = os.fstat(self._output).st_size
        last = os.pread(self._output, size_bytes, max(size - size_bytes, 0))
        return last.decode(errors="replace").strip()

    def faulting_thread(self) -> int | None:
        """The thread in which a fatal signal has ended it, as its fault report says."""
        if not (found := _FAULTING_THREAD.findall(self.output(_REPORT_BYTES))):
            return None
        return int(found[-1], 16)

    def forget_output(self) -> None:
        """Forget what it has written, if that is much."""
        if self._finalizer.alive and os.fstat(self._output).st_size > _KEPT_OUTPUT_BYTES:
            os.ftruncate(self._output, 0)


def _end(
    process: subprocess.Popen[bytes], connections: Sequence[socket.socket], output: int
) -> None:
    """End a process that nobody needs, and give back what belonged to it."""
    with suppress(ProcessLookupError):
        process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(5.0)
    for connection in connections:
        connection.close()
    os.close(output)
