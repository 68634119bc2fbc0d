"""State of the interpreter and the operating system that a backend shares with its application."""

from __future__ import annotations

import builtins
import codecs
import copyreg
import ctypes
import decimal
import faulthandler
import gc
import importlib
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import tracemalloc
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

_PROCESS = Path("/proc/self")

_SHARED_MODULES = (
    *("builtins", "codecs", "collections", "copy", "copyreg", "ctypes", "functools", "hashlib"),
    *("http.client", "importlib", "inspect", "io", "itertools", "json", "logging", "math"),
    *("multiprocessing", "os", "os.path", "pathlib", "pickle", "random", "re", "select", "shutil"),
    *("signal", "socket", "ssl", "struct", "subprocess", "tempfile", "threading", "time"),
    *("traceback", "urllib.request", "uuid", "warnings", "weakref", "zipfile", "zlib"),
    *("numpy", "numpy.linalg", "numpy.random", "numpy.testing"),
)
"""Modules whose functions every library of a process shares."""


_SHARED_ROOTS = frozenset((*sys.stdlib_module_names, "numpy"))
"""Packages whose classes are pickled alike by all libraries of a process."""


def interpreter_state() -> Mapping[str, object]:
    """Settings of the interpreter, of its standard library and of the operating system."""
    return {**_of_interpreter(), **_of_modules(), **_of_library(), **_of_system()}


def replaced_functions(before: Sequence[int]) -> list[str]:
    """Names of functions of the standard library and of NumPy that differ from those of before."""
    return [
        member.label
        for member, old, new in zip(_shared_members(), before, shared_functions(), strict=True)
        if old != new
    ]


def shared_functions() -> tuple[int, ...]:
    """Identities of the functions, classes and methods of modules that libraries share."""
    return tuple([id(member.namespace.get(member.name)) for member in _shared_members()])


class _Member(NamedTuple):
    """A function or class of a module, or a method of its class."""

    label: str  # with the module's name
    namespace: Mapping[str, object]
    name: str


@cache
def _shared_members() -> tuple[_Member, ...]:
    """Members of the shared modules that this interpreter has, each imported."""
    members: list[_Member] = []
    for name in _SHARED_MODULES:
        with suppress(ImportError):
            module = importlib.import_module(name)
            members += _members_of(name, vars(module))
            members.append(_Member(name, sys.modules, name))
    return tuple(members)


def _members_of(module: str, namespace: Mapping[str, object]) -> Iterator[_Member]:
    """Functions of a module, its classes and their methods."""
    for name, value in [*namespace.items()]:
        label = f"{module}.{name}"
        if name.startswith("__") or not callable(value):
            continue
        yield _Member(label, namespace, name)
        if isinstance(value, type) and value.__module__ == module:
            methods = vars(value)
            for method, function in [*methods.items()]:
                if isinstance(function, types.FunctionType):
                    yield _Member(f"{label}.{method}", methods, method)


def _of_interpreter() -> Mapping[str, object]:
    """Members of `sys` and `gc`, and what is called when something ends badly."""
    return {
        "sys.path": tuple(sys.path),
        # armpy's own finder, of modules in directories, comes with the first such module.
        "sys.meta_path": tuple(
            name for finder in sys.meta_path if not (name := _kind(finder)).startswith("armpy.")
        ),
        "sys.path_hooks": tuple(map(id, sys.path_hooks)),
        "sys.argv": tuple(sys.argv),
        "sys.displayhook": sys.displayhook,
        "sys.unraisablehook": sys.unraisablehook,
        "sys.breakpointhook": sys.breakpointhook,
        "sys.dont_write_bytecode": sys.dont_write_bytecode,
        "the profile function": sys.getprofile(),
        "the trace function of new threads": threading.gettrace(),
        "the profile function of new threads": threading.getprofile(),
        "the stack size of new threads": threading.stack_size(),
        "the limit of digits of integers": sys.get_int_max_str_digits(),
        "the flags of dlopen": getattr(sys, "getdlopenflags", int)(),
        "gc.callbacks": tuple(map(id, gc.callbacks)),
        "gc.get_debug()": gc.get_debug(),
        "frozen objects of the garbage collector": gc.get_freeze_count() > 0,
        "faulthandler": faulthandler.is_enabled(),
        "tracemalloc": tracemalloc.is_tracing(),
        "the error handler 'strict' of codecs": codecs.lookup_error("strict"),
        "sys.stdin": sys.stdin,
    }


def _kind(value: object) -> str:
    """The qualified name of an object that is a class, or of its class."""
    kind = value if isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def _of_modules() -> Mapping[str, object]:
    """Settings that modules of the standard library and NumPy have for the whole process."""
    context = decimal.getcontext()
    start_method: object = None
    # Not imported here: the module is 20 ms, and nothing can be set without it.
    if (multiprocessing := sys.modules.get("multiprocessing")) is not None:
        start_method = multiprocessing.get_start_method(allow_none=True)
    policy: object = None
    if (events := sys.modules.get("asyncio.events")) is not None:
        policy = type(getattr(events, "_event_loop_policy", None))
    return {
        "the default time limit of sockets": socket.getdefaulttimeout(),
        "the start method of multiprocessing": start_method,
        "the event loop policy of asyncio": policy,
        "the decimal context": (repr(context), repr(decimal.DefaultContext)),
        "tempfile.gettempdir()": tempfile.gettempdir(),
        "the time zone": (time.tzname, time.timezone),
        "warnings.showwarning": warnings.showwarning,
        "warnings.formatwarning": warnings.formatwarning,
        "logging.disable": logging.root.manager.disable,
        "logging.raiseExceptions": logging.raiseExceptions,
        "logging.lastResort": logging.lastResort,
        "logging.getLoggerClass()": logging.getLoggerClass(),
        "logging.getLogRecordFactory()": logging.getLogRecordFactory(),
        "the names of log levels": tuple(map(logging.getLevelName, range(0, 60, 10))),
        "the logger 'armpy'": (
            logging.getLogger("armpy").level,
            logging.getLogger("armpy").disabled,
            logging.getLogger("armpy").propagate,
            tuple(logging.getLogger("armpy").handlers),
        ),
        "copyreg.dispatch_table": {
            kind: id(function)
            for kind, function in copyreg.dispatch_table.items()
            if kind.__module__.partition(".")[0] in _SHARED_ROOTS
        },
        "np.getbufsize()": np.getbufsize(),
        "builtins": frozenset(vars(builtins)) - {"_"},
    }


def _of_library() -> Mapping[str, object]:
    """Floating-point exceptions that end the process, where the C library can say it."""
    trapped = _trapped_exceptions()
    return {} if trapped is None else {"trapped floating-point exceptions": trapped()}


@cache
def _trapped_exceptions() -> Callable[[], int] | None:
    """The C library's function for them; None if it has none."""
    for library in ("libm.so.6", None):
        with suppress(OSError, AttributeError, TypeError):
            function: Callable[[], int] = ctypes.CDLL(library).fegetexcept
            return function
    return None


_GET_DUMPABLE = 3
"""Of Linux's ``prctl``."""


def _of_system() -> Mapping[str, object]:
    """What the operating system has for the process: streams, timers, scheduling, names."""
    state: dict[str, object] = {}
    for number, name in enumerate(("input", "output", "error")):
        with suppress(OSError):  # it is closed
            status = os.fstat(number)
            state[f"the file of standard {name}"] = status.st_dev, status.st_ino
    if hasattr(signal, "getitimer"):
        timers = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
        state["interval timers"] = tuple(signal.getitimer(timer)[1] for timer in timers)
    for name in ("getpgrp", "getresuid", "getresgid", "getgroups"):
        if hasattr(os, name):
            state[f"os.{name}()"] = getattr(os, name)()
    if hasattr(os, "sched_getscheduler"):
        with suppress(OSError):
            state["the scheduling policy"] = os.sched_getscheduler(0)
    for name in ("comm", "oom_score_adj", "timerslack_ns", "coredump_filter", "personality"):
        with suppress(OSError):
            state[f"the process's {name}"] = (_PROCESS / name).read_text("utf-8", "replace")
    with suppress(OSError, AttributeError, TypeError):  # the system has none
        is_dumped = ctypes.CDLL(None).prctl(_GET_DUMPABLE, 0, 0, 0, 0)
        state["whether the process has a core dump"] = is_dumped
    with suppress(ValueError, OSError):  # in another thread than the main one, or closed
        descriptor = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(descriptor)
        state["the wakeup descriptor of signals"] = descriptor
    with suppress(OSError):
        status_text = (_PROCESS / "status").read_text("ascii", "replace")
        lines = status_text.splitlines()
        state["locked memory"] = next((n for n in lines if n.startswith("VmLck")), None)
        state["privileges"] = tuple(n for n in lines if n.startswith(("NoNewPrivs", "CapEff")))
    return state
