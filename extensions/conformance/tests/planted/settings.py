"""Backends that change what belongs to the application, in this process."""

from __future__ import annotations

import ctypes
import gc
import locale
import logging
import os
import random
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import numpy as np

from armpy.backend import IBackendContext, IWorkload, IWorkloadFactory, NetworkResources
from armpy_testing.backends.fake_backends import FunctionWorkload, Handles, Outputs, Step

from .planting import Planted
from .shapes import Call, Fault, Plain, spoil

_VARIABLE = "PLANTED_THREADS"


_HAS_CORES = len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else False
"""Whether a thread can be bound to fewer cores."""


@contextmanager
def restored_settings() -> Iterator[None]:
    """Restore the attributes that the faults of this module change."""
    directory, umask, handler = os.getcwd(), os.umask(0), signal.getsignal(signal.SIGUSR2)
    os.umask(umask)
    affinity = os.sched_getaffinity(0)
    limit, category = sys.getrecursionlimit(), locale.setlocale(locale.LC_NUMERIC)
    handlers, random_state = [*logging.getLogger().handlers], random.getstate()
    numpy_state = np.random.get_state()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    collects = gc.isenabled()
    try:
        with np.errstate(), warnings.catch_warnings():
            yield
    finally:
        ctypes.CDLL("libm.so.6").fesetround(0)
        os.chdir(directory)
        os.umask(umask)
        if collects:
            gc.enable()
        os.sched_setaffinity(0, affinity)
        os.environ.pop(_VARIABLE, None)
        sys.setrecursionlimit(limit)
        locale.setlocale(locale.LC_NUMERIC, category)
        logging.getLogger().handlers[:] = handlers
        random.setstate(random_state)
        np.random.set_state(numpy_state)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # so that Python sets it anew
        signal.signal(signal.SIGUSR2, handler)


class Acts(Fault):
    """Does something before each layer that it computes."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action

    def before(self, call: Call) -> None:
        self._action()


class ActsOnce(Acts):
    """Does something before the first layer that it computes."""

    def before(self, call: Call) -> None:
        action, self._action = self._action, lambda: None
        action()


class ActsAtUnload(Acts):
    """Does something when a workload goes."""

    def wrap(self, step: Step) -> IWorkload:
        workload = FunctionWorkload(step.right.execute)
        weakref.finalize(workload, self._action)
        return workload

    def before(self, call: Call) -> None:
        return


class ActsAtLoad(Plain):
    """Does something at each load."""

    def __init__(self, action: Callable[[], object]) -> None:
        super().__init__()
        self._action = action

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self._action()
        return super().create_workload_factory(network)


class ActsAfterUnload(IBackendContext):
    """Does something when a network was unloaded."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action

    def after_unload_network(self, network_id: int) -> None:
        self._action()


def _set_variable() -> None:
    """Set an environment variable, otherwise each time."""
    os.environ[_VARIABLE] = str(time.perf_counter_ns())


def _pin() -> None:
    """Bind the calling thread to its first core, or to all if it has only that one."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)} if len(cores) > 1 else range(os.cpu_count() or 1))


def _pin_others() -> None:
    """Bind the main thread to one core."""
    with suppress(OSError):
        cores = os.sched_getaffinity(os.getpid())
        chosen = {min(cores)} if len(cores) > 1 else range(os.cpu_count() or 1)
        os.sched_setaffinity(os.getpid(), chosen)


def _handle_signal() -> None:
    """Take a signal, in the main thread as Python demands."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGUSR2, lambda *_: None)


def _handle_signal_natively() -> None:
    """Let the system ignore a signal, or not, without Python's knowledge."""
    libc = ctypes.CDLL(None)
    libc.signal.restype, libc.signal.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
    ignored = libc.signal(signal.SIGUSR2, 1)
    if ignored == 1:
        libc.signal(signal.SIGUSR2, 0)


def _change_directory() -> None:
    """Go to another directory."""
    os.chdir("/" if os.getcwd() != "/" else "/tmp")


def _change_umask() -> None:
    """Change the mask of new files."""
    os.umask(os.umask(0) ^ 0o010)


def _change_errors() -> None:
    """Turn NumPy's handling of overflows round."""
    np.seterr(over="ignore" if np.geterr()["over"] != "ignore" else "warn")


def _change_rounding() -> None:
    """Round up or to the nearest number, in turn."""
    libm = ctypes.CDLL("libm.so.6")
    upward = 0x800 if os.uname().machine == "x86_64" else 0x400000
    libm.fesetround(0 if libm.fegetround() else upward)


def _filter_warnings() -> None:
    """Filter warnings of a category of its own."""
    warnings.filterwarnings("ignore", category=type("PlantedWarning", (Warning,), {}))


def _log_to_a_handler() -> None:
    """Add a handler for all log messages."""
    logging.getLogger().addHandler(logging.NullHandler())


def _block_signal() -> None:
    """Block a signal, or not."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    how = signal.SIG_UNBLOCK if signal.SIGUSR2 in blocked else signal.SIG_BLOCK
    signal.pthread_sigmask(how, (signal.SIGUSR2,))


SETTINGS: dict[str, Callable[[], object]] = {
    "environment": _set_variable,
    "random": random.random,
    "numpy-random": np.random.random_sample,
    "signal-handler": _handle_signal,
    "native-signal-handler": _handle_signal_natively,
    "signal-mask": _block_signal,
    "working-directory": _change_directory,
    "umask": _change_umask,
    "numpy-errors": _change_errors,
    "rounding": _change_rounding,
    "warning-filters": _filter_warnings,
    "root-logger": _log_to_a_handler,
    "recursion-limit": lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 1),
    "locale": lambda: locale.setlocale(
        locale.LC_NUMERIC, "C.UTF-8" if locale.setlocale(locale.LC_NUMERIC) == "C" else "C"
    ),
    **({"affinity": _pin, "other-affinity": _pin_others} if _HAS_CORES else {}),
}
"""What an execution changes."""


class Scribbles(Fault):
    """Uses inputs as scratch memory, and restores them in the end."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        for handle in inputs:
            array = None if handle is None else handle.map()
            if array is not None and array.size:
                original = array.copy()
                array[...] = np.zeros_like(array)
                array[...] = original
        step.right.execute(inputs, outputs)


class Raises(Fault):
    """Computes powers without a thought of NumPy's settings for errors."""

    def before(self, call: Call) -> None:
        for array in call.inputs:
            if array is not None and array.dtype == np.float32:
                np.exp(np.abs(array) * np.float32(100))


class InTheParentOnly(Fault):
    """Gives other answers in a process other than the one that loaded it."""

    def __init__(self) -> None:
        self._process = os.getpid()

    def after(self, call: Call) -> None:
        if os.getpid() != self._process:
            spoil(call.outputs[0])


class EndsInAChild(InTheParentOnly):
    """Ends a forked child."""

    def after(self, call: Call) -> None:
        if os.getpid() != self._process:
            os.kill(os.getpid(), signal.SIGKILL)


class WaitsInAChild(InTheParentOnly):
    """Waits in a forked child for a thread that only its parent has."""

    def after(self, call: Call) -> None:
        if os.getpid() != self._process:
            threading.Event().wait(60)


SETTINGS_FAULTS: dict[str, Planted] = {
    **{
        f"manners/{name}": Planted(
            "contract/process/settings-stay", Plain, partial(Acts, act), "changes"
        )
        for name, act in SETTINGS.items()
    },
    "blind-manners/warnings": Planted(
        "contract/process/settings", partial(ActsAtLoad, lambda: warnings.simplefilter("ignore"))
    ),
    "blind-manners/collector": Planted(
        "contract/process/settings", partial(ActsAtLoad, gc.disable)
    ),
    "blind-manners/umask": Planted(
        "contract/process/settings", partial(ActsAtLoad, lambda: os.umask(0o077))
    ),
    "blind-manners/unload": Planted(
        "contract/process/nothing",
        lambda: Plain(context=ActsAfterUnload(lambda: os.write(1, b"unloaded\n"))),
    ),
    "manners/directory-at-load": Planted(
        "contract/process/settings-stay",
        partial(ActsAtLoad, _change_directory),
        said="the working directory",
    ),
    "manners/umask-at-first-use": Planted(
        "contract/process/settings-stay", Plain, lambda: ActsOnce(_change_umask), "the umask"
    ),
    "manners/random-at-unload": Planted(
        "contract/process/settings-stay",
        Plain,
        lambda: ActsAtUnload(random.random),
        "the state of random",
    ),
    "manners/prints": Planted(
        "contract/process/nothing-is-printed", Plain, lambda: Acts(lambda: print("hello")), "hello"
    ),
    "manners/prints-errors": Planted(
        "contract/process/nothing-is-printed",
        Plain,
        lambda: Acts(lambda: sys.stderr.write("hello")),
        "standard error",
    ),
    "manners/writes-descriptor-1": Planted(
        "contract/process/nothing-is-printed",
        Plain,
        lambda: Acts(lambda: os.write(1, b"hello")),
        "standard output",
    ),
    "manners/writes-descriptor-2": Planted(
        "contract/process/nothing-is-printed",
        partial(ActsAtLoad, lambda: os.write(2, b"hello")),
        said="standard error",
    ),
    "manners/prints-natively": Planted(
        "contract/process/nothing-is-printed",
        Plain,
        lambda: Acts(lambda: ctypes.CDLL(None).puts(b"hello")),
        "standard output",
    ),
    "manners/scribbles-in-inputs": Planted(
        "contract/process/inputs-are-only-read", Plain, Scribbles, "read-only"
    ),
    "manners/floating-point-errors": Planted(
        "ElementwiseUnary/", Plain, Raises, "FloatingPointError"
    ),
    "manners/wrong-in-a-child": Planted(
        "contract/process/forked-children", Plain, InTheParentOnly, "in a forked child"
    ),
    "manners/ends-a-child": Planted(
        "contract/process/forked-children", Plain, EndsInAChild, "in a forked child"
    ),
    "manners/hangs-in-a-child": Planted(
        "contract/process/forked-children", Plain, WaitsInAChild, "a forked child executes"
    ),
}
"""By class and name."""
