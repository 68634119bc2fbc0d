"""Snapshots of the settings that a backend shares with its application, and their differences."""

from __future__ import annotations

import ctypes
import gc
import locale
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field
from pathlib import Path

import numpy as np

from armpy.core.dataclass import dataclass
from armpy_conformance.processes.interpreter_state import (
    interpreter_state,
    replaced_functions,
    shared_functions,
)

_PROCESS = Path("/proc/self")
_SIGACTION_BYTES = 512
"""More than any system's `struct sigaction`, which begins with the address of the handler."""

_AFFINITY = "the CPU affinity of thread "
"""Threads come and go: only those that exist before and after are compared."""

_ENVIRONMENT = "the environment variable "
_WARNING_FILTERS = "warnings.filters"
SPECIAL_FILTERS = (_WARNING_FILTERS,)
"""Settings that libraries change for their own warnings alone when they are imported."""

OF_IMPORTS = (_ENVIRONMENT, *SPECIAL_FILTERS)
"""Settings that libraries beside a backend change when they are imported."""

_libc = ctypes.CDLL(None) if os.name == "posix" else None

Settings = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ProcessState:
    """Settings of the process and of the calling thread."""

    settings: Settings  # by name, for messages
    functions: tuple[int, ...]  # identities of functions that libraries share

    @classmethod
    def current(cls) -> ProcessState:
        """The present settings."""
        settings = {**_of_python(), **_of_numbers(), **_of_system(), **interpreter_state()}
        return cls(settings, shared_functions())

    def changes(self, ignored: tuple[str, ...] = ()) -> list[str]:
        """Names of the settings that differ from the present ones, with both values.

        Parameters
        ----------
        ignored : tuple of str
            Beginnings of names that do not count, such as `OF_IMPORTS`.
        """
        before, after = self.settings, ProcessState.current().settings
        replaced = replaced_functions(self.functions)
        return [f"the function {name}" for name in replaced] + [
            f"{name} from {_shown(before.get(name))} to {_shown(after.get(name))}"
            for name in dict.fromkeys((*before, *after))
            if before.get(name) != after.get(name)
            and not name.startswith(ignored)
            and not (name.startswith(_AFFINITY) and (name not in before or name not in after))
        ]


def _shown(value: object) -> str:
    """A value in a message; long ones are cut."""
    text = "unset" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _of_python() -> Settings:
    """Settings of the interpreter and of its modules."""
    root = logging.getLogger()
    return {
        "sys.stdout": sys.stdout,
        "sys.stderr": sys.stderr,
        "sys.excepthook": sys.excepthook,
        "threading.excepthook": threading.excepthook,
        "the trace function": sys.gettrace(),
        "the switch interval": sys.getswitchinterval(),
        "the recursion limit": sys.getrecursionlimit(),
        "automatic garbage collection": (gc.isenabled(), gc.get_threshold()),
        "the locale": locale.setlocale(locale.LC_ALL),
        "the root logger": (root.level, root.disabled, tuple(root.handlers)),
        _WARNING_FILTERS: tuple(warnings.filters),
        "filters of all warnings of a kind": tuple(filter(_is_general, warnings.filters)),
        **{f"{_ENVIRONMENT}{name}": value for name, value in os.environ.items()},
    }


def _is_general(entry: tuple[object, ...]) -> bool:
    """Return whether a filter of warnings concerns those of all modules."""
    _, message, category, module, _ = entry
    is_of_python = getattr(category, "__module__", "") == "builtins"
    return message is None and module is None and is_of_python


def _of_numbers() -> Settings:
    """The global random states and what numbers are computed and printed like."""
    kind, keys, *rest = np.random.get_state(legacy=True)
    unit, small = np.ones(1), np.array([2.0**-54])
    tiny = np.array([np.finfo(np.float32).tiny], np.float32)
    with np.errstate(all="ignore"):
        halves = float((unit + small)[0]), float((unit - small)[0])
        is_flushed = not (tiny * np.float32(0.5)).any()
    return {
        "the state of random": hash(random.getstate()),
        "the state of numpy.random": (kind, hash(np.asarray(keys).tobytes()), *rest),
        "np.geterr()": np.geterr(),
        "np.geterrcall()": np.geterrcall(),
        "np.get_printoptions()": repr(np.get_printoptions()),
        "the rounding mode": halves,
        "flushing of subnormal numbers": is_flushed,
    }


def _of_system() -> Settings:
    """The working directory, signal handlers, CPU affinity, priority, limits."""
    settings: dict[str, object] = {}
    with suppress(OSError):  # the directory was deleted
        settings["the working directory"] = os.getcwd()
    for number in sorted(signal.valid_signals()):
        with suppress(ValueError, OSError):
            name = f"the handler of {_name_of(number)}"
            settings[name] = (signal.getsignal(number), _native_handler(number))
    if hasattr(signal, "pthread_sigmask"):
        settings["the signal mask"] = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    if hasattr(os, "getpriority"):
        settings["the priority"] = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(OSError):
        status = (_PROCESS / "status").read_text("ascii", "replace")
        settings["the umask"] = next(
            (n for n in status.splitlines() if n.startswith("Umask")), None
        )
        settings["resource limits"] = (_PROCESS / "limits").read_text("ascii", "replace")
    return {**settings, **_affinities()}


def _name_of(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _native_handler(number: int) -> int | None:
    """The address of a signal's handler, which native code may have exchanged."""
    if _libc is None:
        return None
    action = (ctypes.c_byte * _SIGACTION_BYTES)()
    if _libc.sigaction(number, None, action):
        return None
    return ctypes.c_void_p.from_buffer(action).value or 0


def _affinities() -> Settings:
    """The CPU affinity of each thread."""
    settings: dict[str, object] = {}
    if hasattr(os, "sched_getaffinity"):
        with suppress(OSError):
            for entry in os.listdir(_PROCESS / "task"):
                with suppress(OSError):  # it has ended
                    settings[f"{_AFFINITY}{entry}"] = os.sched_getaffinity(int(entry))
    return settings


@dataclass(slots=True)
class CapturedText:
    """Text that was written while output was captured."""

    texts: dict[str, str] = field(default_factory=dict)  # by stream

    def __str__(self) -> str:
        return " and ".join(f"{text[:80]!r} to {name}" for name, text in self.texts.items())


def ignore_warnings() -> None:
    """Ignore all warnings, by a filter that a backend's filter is not equal to."""
    warnings.filterwarnings("ignore", ".*")


@contextmanager
def captured_output() -> Iterator[CapturedText]:
    """Capture the text written to both streams, by Python and through descriptors 1 and 2.

    Notes
    -----
    Log messages and warnings are left out: the application decides where they go.
    """
    names = {1: "standard output", 2: "standard error"}
    captured = CapturedText()
    streams, disabled = (sys.stdout, sys.stderr), logging.root.manager.disable
    with ExitStack() as stack:
        files = {number: stack.enter_context(tempfile.TemporaryFile()) for number in names}
        saved = {number: os.dup(number) for number in names}
        flush_output(streams)
        try:
            for number, file in files.items():
                os.dup2(file.fileno(), number)
            writers = [
                stack.enter_context(open(number, "w", encoding="utf-8", closefd=False))
                for number in names
            ]
            sys.stdout, sys.stderr = writers
            logging.disable()
            with warnings.catch_warnings():
                ignore_warnings()
                yield captured
            flush_output((*writers, sys.stdout, sys.stderr))
        finally:
            sys.stdout, sys.stderr = streams
            logging.disable(disabled)
            flush_output(())
            for number, descriptor in saved.items():
                os.dup2(descriptor, number)
                os.close(descriptor)
        for number, file in files.items():
            file.seek(0)
            if text := file.read().decode("utf-8", "replace"):
                captured.texts[names[number]] = text


def flush_output(streams: tuple[object, ...]) -> None:
    """Write what streams of Python and of the C library hold back."""
    for stream in streams:
        with suppress(OSError, ValueError):  # closed, or without a file
            getattr(stream, "flush", lambda: None)()
    if _libc is not None:
        _libc.fflush(None)
