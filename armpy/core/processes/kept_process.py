"""Processes of workers, on POSIX and Windows: how they start, are waited for, and end.

Notes
-----
On POSIX a *keeper* stands between the application and the worker, which ends all that the worker
has started. On Windows the worker is in a *job* of the application's, which the system ends with
the last handle of the job: the application's.

References
----------
Windows: "Job Objects", ``SetInformationJobObject``, ``JOBOBJECT_EXTENDED_LIMIT_INFORMATION``.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

_BEGIN = """\
import json, sys
settings = json.loads(sys.argv[1])
sys.path[:] = settings["sys_path"]
"""
_SERVE = """\
from armpy.core.processes.child import main
main(settings)
"""
_MOST_BYTES = 1 << 16
"""Read from a pipe at once."""


def _environment() -> dict[str, str]:
    # A free-threaded Python commits 1 GiB at its start, which would count as used.
    return {"MIMALLOC_ARENA_EAGER_COMMIT": "0", **os.environ}


if sys.platform == "win32":
    import _winapi
    import msvcrt

    _CHILD = (
        _BEGIN
        + """\
import socket
settings["connection"] = socket.fromshare(sys.stdin.buffer.read()).detach()
"""
        + _SERVE
    )
    _END_WITH_JOB, _PROCESS_MEMORY, _NO_ERROR_BOX = 0x2000, 0x100, 0x400
    _EXTENDED_LIMITS = 9
    _LEAST_STATUS = 0xC000_0000
    """Codes of processes that an exception has ended begin here."""
    _PAUSE_S = 0.02
    """Interval of looking into a pipe, for which Windows has no way of waiting."""

    class _JobLimits(ctypes.Structure):
        """``JOBOBJECT_EXTENDED_LIMIT_INFORMATION``."""

        _fields_ = (
            ("times", ctypes.c_int64 * 2),
            ("flags", ctypes.c_uint32),
            ("sizes", ctypes.c_size_t * 2),
            ("num_processes", ctypes.c_uint32),
            ("affinity", ctypes.c_size_t),
            ("classes", ctypes.c_uint32 * 2),
            ("operations", ctypes.c_uint64 * 6),
            ("process_memory_bytes", ctypes.c_size_t),
            ("others", ctypes.c_size_t * 3),
        )

    def _interpreter() -> str:
        """Python itself: that of a virtual environment would start it in another process."""
        return getattr(sys, "_base_executable", sys.executable)

    def _kernel32() -> ctypes.WinDLL:
        library = ctypes.WinDLL("kernel32", use_last_error=True)
        handle, word = ctypes.c_void_p, ctypes.c_uint32
        library.CreateJobObjectW.restype = handle
        library.CreateJobObjectW.argtypes = (handle, handle)
        library.SetInformationJobObject.argtypes = (handle, ctypes.c_int, handle, word)
        library.AssignProcessToJobObject.argtypes = (handle, handle)
        library.TerminateJobObject.argtypes = (handle, word)
        library.CloseHandle.argtypes = (handle,)
        return library

    class KeptProcess:
        """A worker's process with all that it starts, in a job of the application's.

        Attributes
        ----------
        process : subprocess.Popen
            The worker.

        Raises
        ------
        OSError
            If no process can be started.
        """

        def __init__(
            self,
            flags: Sequence[str],  # of the interpreter
            settings: Mapping[str, object],  # for `armpy.core.processes.child.main`
            connection: socket.socket,  # the worker's end
            output: int,  # descriptor that its standard output and error go to
        ) -> None:
            windows = self._windows = _kernel32()
            self._job = windows.CreateJobObjectW(None, None)
            limit_bytes = settings["memory_bytes"]
            limits = _JobLimits(flags=_END_WITH_JOB | _NO_ERROR_BOX)
            if isinstance(limit_bytes, int) and limit_bytes:
                limits.flags |= _PROCESS_MEMORY
                limits.process_memory_bytes = limit_bytes
            size = ctypes.sizeof(limits)
            try:
                if not self._job or not windows.SetInformationJobObject(
                    self._job, _EXTENDED_LIMITS, ctypes.byref(limits), size
                ):
                    raise ctypes.WinError(ctypes.get_last_error())
                self.process = subprocess.Popen(
                    [_interpreter(), *flags, "-c", _CHILD, json.dumps(settings)],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    # The terminal's interrupts are the application's.
                    creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
                    env=_environment(),
                )
                process_handle = int(self.process._handle)  # type: ignore[attr-defined]
                # One that has ended already belongs to no job.
                if (
                    not windows.AssignProcessToJobObject(self._job, process_handle)
                    and self.process.poll() is None
                ):
                    raise ctypes.WinError(ctypes.get_last_error())
                assert self.process.stdin is not None
                # A process that has ended reads nothing, which its user notices.
                with suppress(OSError), self.process.stdin as stream:
                    stream.write(connection.share(self.process.pid))
            except BaseException:
                if hasattr(self, "process"):
                    self.process.kill()
                self.close()
                raise

        def worker_pid(self, timeout_s: float) -> int:
            """The worker's number."""
            return self.process.pid

        def give_up(self) -> None:
            """End the worker and all that it has started."""
            if self._job:
                self._windows.TerminateJobObject(self._job, 1)

        def close(self) -> None:
            """Release what belongs to the process; it ends if it has not."""
            job, self._job = self._job, None
            if job:
                self._windows.CloseHandle(job)

    def exit_code_of(process: subprocess.Popen[bytes]) -> int | None:
        """Exit code, below 0 for an exception as its status is; None while it runs."""
        code = process.returncode
        return code if code is None or code < _LEAST_STATUS else code - (1 << 32)

    def end_in_words(code: int) -> str:
        """Say what has ended a process with a code below 0."""
        return f"it was ended by the exception {code & 0xFFFF_FFFF:#x}"

    def wait_readable(connection: socket.socket, timeout_s: float) -> bool:
        """Wait until there is something to read; False if there is not in time."""
        return bool(select.select([connection], [], [], timeout_s)[0])

    def read_until_stopped(descriptor: int, stopped: int) -> Iterator[bytes]:
        """What comes from a pipe until its end, or until the other end of another is closed."""
        pipe, stop = msvcrt.get_osfhandle(descriptor), msvcrt.get_osfhandle(stopped)
        while True:
            is_stopped = _available(stop) is None
            available = _available(pipe)
            if available is None:
                return
            if available:
                yield os.read(descriptor, available)
            elif is_stopped:
                return
            else:
                time.sleep(_PAUSE_S)

    def _available(handle: int) -> int | None:
        """Bytes that a pipe has; None at its end."""
        try:
            return int(_winapi.PeekNamedPipe(handle)[0])
        except OSError:
            return None

else:
    from armpy.core.processes.keeper import PID

    _CHILD = (
        _BEGIN
        + """\
from armpy.core.processes.keeper import keep
keep(settings["life"], settings["connection"])
"""
        + _SERVE
    )

    class KeptProcess:
        """A worker's process with all that it starts, behind a keeper.

        Attributes
        ----------
        process : subprocess.Popen
            The keeper, which ends as the worker does.

        Raises
        ------
        OSError
            If no process can be started.
        """

        def __init__(
            self,
            flags: Sequence[str],  # of the interpreter
            settings: Mapping[str, object],  # for `armpy.core.processes.child.main`
            connection: socket.socket,  # the worker's end
            output: int,  # descriptor that its standard output and error go to
        ) -> None:
            self._life, theirs = socket.socketpair()
            with theirs:
                passed = connection.fileno(), theirs.fileno()
                request = json.dumps({**settings, "connection": passed[0], "life": passed[1]})
                try:
                    self.process = subprocess.Popen(
                        [sys.executable, *flags, "-c", _CHILD, request],
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=output,
                        pass_fds=passed,
                        # The terminal's interrupts are the application's.
                        start_new_session=True,
                        env=_environment(),
                    )
                except BaseException:
                    self._life.close()
                    raise

        def worker_pid(self, timeout_s: float) -> int:
            """The worker's number; the keeper's if the keeper does not send it in time."""
            message = b""
            # It has been left to the process this was forked from, or its keeper is stopped.
            with suppress(OSError):
                self._life.settimeout(timeout_s)
                message = self._life.recv(PID.size)
            return PID.unpack(message)[0] if len(message) == PID.size else self.process.pid

        def give_up(self) -> None:
            """Have the keeper end the worker and all that it has started."""
            with suppress(OSError):  # it is closed
                self._life.shutdown(socket.SHUT_RDWR)

        def close(self) -> None:
            """Release what belongs to the process; the keeper ends it if it has not ended."""
            self._life.close()

    def exit_code_of(process: subprocess.Popen[bytes]) -> int | None:
        """Exit code; below 0 for a signal; None while it runs."""
        return process.returncode

    def end_in_words(code: int) -> str:
        """Say what has ended a process with a code below 0."""
        try:
            return f"it was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"it was ended by signal {-code}"

    def wait_readable(connection: socket.socket, timeout_s: float) -> bool:
        """Wait until there is something to read; False if there is not in time."""
        poll = select.poll()  # which takes no descriptor, as other ways of waiting do
        poll.register(connection, select.POLLIN)
        return bool(poll.poll(timeout_s * 1e3))

    def read_until_stopped(descriptor: int, stopped: int) -> Iterator[bytes]:
        """What comes from a pipe until its end, or until the other end of another is closed."""
        poll = select.poll()
        for watched in (descriptor, stopped):
            poll.register(watched, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if descriptor in ready:
                chunk = os.read(descriptor, _MOST_BYTES)
                if not chunk:
                    return
                yield chunk
            if stopped in ready:
                return
