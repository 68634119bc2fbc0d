"""Backends that change what belongs to the application, in this process."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import threading
import weakref
from collections.abc import Callable
from functools import partial

import numpy as np

from armpy.backend import IBackendContext, IWorkload, IWorkloadFactory, NetworkResources
from armpy_testing.backends.fake_backends import FunctionWorkload, Handles, Outputs, Step

from .planting import Planted
from .shapes import Call, Fault, Plain, spoil


class Acts(Fault):
    """Does something before each layer that it computes."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action

    def before(self, call: Call) -> None:
        self._action()


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


def _handle_signal_natively() -> None:
    """Let the system ignore a signal, or not, without Python's knowledge."""
    libc = ctypes.CDLL(None)
    libc.signal.restype, libc.signal.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
    ignored = libc.signal(signal.SIGUSR2, 1)
    if ignored == 1:
        libc.signal(signal.SIGUSR2, 0)


def _change_rounding() -> None:
    """Round up or to the nearest number, in turn."""
    libm = ctypes.CDLL("libm.so.6")
    upward = 0x800 if os.uname().machine == "x86_64" else 0x400000
    libm.fesetround(0 if libm.fegetround() else upward)


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
    "manners/native-signal-handler": Planted(
        "contract/process/settings-stay", Plain, lambda: Acts(_handle_signal_natively), "changes"
    ),
    "manners/rounding": Planted(
        "contract/process/settings-stay", Plain, lambda: Acts(_change_rounding), "changes"
    ),
    "blind-manners/unload": Planted(
        "contract/process/nothing-is-printed",
        lambda: Plain(context=ActsAfterUnload(lambda: os.write(1, b"unloaded\n"))),
    ),
    "manners/random-at-unload": Planted(
        "contract/process/settings-stay",
        Plain,
        lambda: ActsAtUnload(random.random),
        "the state of random",
    ),
    "manners/writes-descriptor-2": Planted(
        "contract/process/nothing-is-printed",
        partial(ActsAtLoad, lambda: os.write(2, b"hello")),
        said="standard error",
    ),
    "manners/scribbles-in-inputs": Planted(
        "contract/process/inputs-are-only-read", Plain, Scribbles, "read-only"
    ),
    "manners/floating-point-errors": Planted(
        "ElementwiseUnary/", Plain, Raises, "FloatingPointError"
    ),
    "manners/wrong-in-a-child": Planted(
        "contract/process/forked-children-answer-or-refuse",
        Plain,
        InTheParentOnly,
        "in a forked child",
    ),
    "manners/ends-a-child": Planted(
        "contract/process/forked-children-answer-or-refuse",
        Plain,
        EndsInAChild,
        "in a forked child",
    ),
    "manners/hangs-in-a-child": Planted(
        "contract/process/forked-children-answer-or-refuse",
        Plain,
        WaitsInAChild,
        "a forked child executes",
    ),
}
"""By class and name."""
