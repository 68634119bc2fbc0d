"""Marks for traces of the whole system: sections for ftrace, names of compiled code for perf.

Examples
--------
In a shell, while `trace-cmd`, Perfetto or `perf record` watches::

    ARMPY_SYSTEM_TRACE=marks python application.py

Notes
-----
``marks`` writes ``B|PID|NAME`` and ``E|PID`` to the kernel's ``trace_marker``, the format of
Android's systrace, which Perfetto reads as well. ``perf`` writes ``START SIZE NAME`` for compiled
kernels to ``/tmp/perf-PID.map``. A file that cannot be written is one warning, and nothing fails.
Prepared models import this only if it is asked for.

References
----------
NNAPI ``NNTRACE_*`` and ``android::ScopedTrace``; ``Documentation/trace/ftrace.rst`` and
``tools/perf/Documentation/jit-interface.txt`` of Linux.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from armpy.core.vlog import chosen_tags

VARIABLE = "ARMPY_SYSTEM_TRACE"
"""Environment variable that says which tags are on."""

TAGS = ("marks", "perf")
"""Written data: ``marks`` of sections, and names of compiled code for ``perf``."""

MARKERS = ("/sys/kernel/tracing/trace_marker", "/sys/kernel/debug/tracing/trace_marker")
"""Paths of Linux's file for marks: of tracefs, or below debugfs."""

MAPS_FOLDER = "/tmp"
"""Folder where perf looks for maps."""

_TRACING_IS_OFF = (errno.EBADF, errno.EINVAL)
"""The kernel's answer while nothing is traced, or marks are switched off in the trace."""

_LONGEST_NAME = 500
"""Characters of a name; the kernel cuts lines off after about 1,000 bytes."""

_log = logging.getLogger("armpy.core.system_trace")
_lock = threading.Lock()
_is_begun = False
_NO_SECTION: AbstractContextManager[None] = nullcontext()


class _Marks:
    """Open file that takes marks; closed with the last reference, as sections may outlast it."""

    def __init__(self, path: str) -> None:
        self._file = -1
        self._path = path
        if sys.platform == "win32":
            raise OSError(errno.ENOSYS, "Windows has no such file", path)
        self._file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def begin(self, name: str) -> None:
        """Begin a section of this thread."""
        # Asked each time: a child that was forked has a number of its own.
        self._write(f"B|{os.getpid()}|{_one_line(name)}")

    def end(self) -> None:
        """End the section that this thread began last."""
        self._write(f"E|{os.getpid()}")

    def _write(self, line: str) -> None:
        try:
            # One call for a line: marks of several threads do not mix.
            os.write(self._file, line.encode(errors="replace") + b"\n")
        except OSError as error:
            if error.errno in _TRACING_IS_OFF:
                return  # what comes later may be traced
            _stop_marks(self, OSError(error.errno, error.strerror, self._path))


class _Section:
    """Section that is marked."""

    __slots__ = ("_marks", "_name")

    def __init__(self, marks: _Marks, name: str) -> None:
        self._marks = marks
        self._name = name

    def __enter__(self) -> None:
        self._marks.begin(self._name)

    def __exit__(self, *exc_info: object) -> None:
        self._marks.end()


class _PerfMaps:
    """Names of compiled code, in a file for each process.

    perf takes code that a process has inherited from its parent's file, so a forked child writes
    only the modules that it loads itself.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def add(self, functions: Iterable[tuple[str, int, int]]) -> None:
        """Append name, address and size of functions; OSError if the file cannot be written."""
        lines = [f"{start:x} {size:x} {_one_line(name)}\n" for name, start, size in functions]
        file = _open_own(os.path.join(self._folder, f"perf-{os.getpid()}.map"))
        try:
            # In one call to the end of the file, which CPython's own trampoline may write as well.
            os.write(file, "".join(lines).encode(errors="replace"))
        finally:
            os.close(file)


def _open_own(path: str) -> int:
    """Open a file in a folder of everybody's to append to it."""
    if sys.platform == "win32":
        raise OSError(errno.ENOSYS, "perf is not there on Windows", path)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    file = os.open(path, flags, 0o600)
    info = os.fstat(file)
    is_own = stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and info.st_nlink == 1
    if is_own and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return file
    os.close(file)
    reason = "it is not a regular file of this user that no other user can write"
    raise OSError(errno.EPERM, reason, path)


_marks: _Marks | None = None
_maps: _PerfMaps | None = None


def trace_section(name: str, *details: str) -> AbstractContextManager[None]:
    """Mark a section of this thread in the system's trace.

    For a driver's own code. Sections nest, and end in the thread where they began. Without
    ``ARMPY_SYSTEM_TRACE=marks`` nothing is written, which costs a fraction of a microsecond.

    Reference: NNAPI ``NNTRACE_RT``, ``ATRACE_NAME``.

    Parameters
    ----------
    name
        The section's subject, such as ``acme upload``.
    *details
        Further words of the name, which are joined only if marks are on.

    Examples
    --------
    >>> with trace_section("acme upload"):
    ...     pass
    """
    marks = _marks
    if marks is None:
        return _NO_SECTION
    return _Section(marks, " ".join(filter(None, (name, *details))))


def has_marks() -> bool:
    """Return whether sections are marked."""
    return _marks is not None


def name_code(
    functions: Iterable[tuple[str, int, int]],  # name, address and number of bytes of each
) -> None:
    """Give perf the names of compiled code, if that is on."""
    global _maps  # noqa: PLW0603 - a process has one map
    maps = _maps
    if maps is None:
        return
    with _lock:
        try:
            maps.add(functions)
        # Names for a trace are no reason for a load to fail.
        except OSError as error:
            _maps = None
            fix = "Remove the file, or run where this user can write it"
            _warn("perf gets no names of compiled code", error, fix)


def set_system_trace(
    # ``""`` for nothing; ``"1"`` or ``"all"``; or tags, separated by spaces, commas or colons.
    tags: str,
    # Paths of files that take marks; the first that exists is used.
    markers: Iterable[str] = MARKERS,
    maps_folder: str = MAPS_FOLDER,  # folder of the files for perf
) -> None:
    """Set the marks written from now on, in the place of the environment's setting.

    Networks that are loaded already mark none of their executions.
    """
    global _is_begun, _marks, _maps  # noqa: PLW0603 - the process has one environment
    with _lock:
        _is_begun = True
        wanted = chosen_tags(VARIABLE, tags, TAGS, _log)
        _maps = _PerfMaps(maps_folder) if "perf" in wanted else None
        _marks = None
        if "marks" in wanted:
            try:
                paths = list(markers)
                _marks = _Marks(next(filter(os.path.exists, paths), paths[0]))
            # A trace is no reason for a load to fail.
            except OSError as error:
                fix = "Mount tracefs, and give this user the right to write the file"
                _warn("no sections are marked", error, fix)


def begin_system_trace() -> None:
    """Read the environment, once per process."""
    if not _is_begun:
        set_system_trace(os.environ.get(VARIABLE, ""))


def _stop_marks(marks: _Marks, error: OSError) -> None:
    """Write no more marks to a file that refuses them."""
    global _marks  # noqa: PLW0603 - a process has one file for marks
    with _lock:
        if _marks is not marks:
            return  # the warning has been given
        _marks = None
    _warn("no more sections are marked", error, "Free space, or mount tracefs again")


def _warn(failed: str, error: OSError, fix: str) -> None:
    _log.warning("%s: %s: %s: %s. %s", VARIABLE, failed, error.strerror, error.filename, fix)


def _one_line(name: str) -> str:
    """A name without line breaks, which end a record."""
    return " ".join(name.split())[:_LONGEST_NAME]
