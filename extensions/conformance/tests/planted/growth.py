"""Backends that keep something of each load, runtime or arena, and bounded ones that do not."""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable

import numpy as np

from armpy.backend import (
    IBackendInternal,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptionValues,
    WorkloadInfo,
)
from armpy.ops.operation import Array, Operation
from armpy_testing.backends.fake_backends import FunctionWorkload, Handles, Outputs, Step

from ..breaking_memory import DeviceArena, state_of, with_arenas
from .faults import Call, Factory, Fault, Fused, Plain, Planted

_LOADS = "contract/gauges/nothing-grows-from-load"
_RUNTIMES = "contract/gauges/nothing-grows-from-runtime"
_EXECUTIONS = "contract/gauges/nothing-grows-from-execution"
_ARENAS = "contract/arenas/arenas-can-be-made"


class _Loading(Plain):
    """Does something at each load."""

    def __init__(self, load: Callable[[], object], fault: Fault | None = None) -> None:
        super().__init__(fault)
        self._load = load

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self._load()
        return super().create_workload_factory(network)


def _file() -> int:
    """Open a file."""
    return os.open(os.devnull, os.O_RDONLY)


def _waiting_thread() -> None:
    """Start a thread that lives longer than the rule takes."""
    threading.Thread(target=threading.Event().wait, args=(20,), daemon=True).start()


class KeepsWeights(Fault):
    """Keeps copies of the weights of every network."""

    def __init__(self, copy: Callable[[Array], object]) -> None:
        self._kept: list[object] = []
        self._copy = copy

    def wrap(self, step: Step) -> IWorkload:
        arrays = [array for array in step.info.constants if array is not None]
        if hasattr(step.operation, "program"):
            values = [v for layer in step.operation.program.layers for v in layer.inputs if v]
            arrays += [value.data for value in values if value.data is not None]
        self._kept.extend(map(self._copy, arrays))
        return step.right


def _native_copy(array: Array) -> object:
    """A copy in memory that Python does not trace."""
    memory = mmap.mmap(-1, max(array.nbytes, 1))
    memory.write(array.tobytes())
    return memory


class KeepsRuntimes(Plain):
    """Keeps something of every runtime."""

    def __init__(self, make: Callable[[], object]) -> None:
        super().__init__()
        self._make = make
        self._made: list[object] = []

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        self._made.append(self._make())
        return self


class KeepsHostCopies(DeviceArena):
    """Gives its memory back, and keeps the host's view of it."""

    def release(self) -> None:
        super().release()
        state_of(self._device).kept.append(np.ones(1 << 20, np.uint8))


GROWTH_FAULTS: dict[str, Planted] = {
    "growth/files-per-load": Planted(_LOADS, lambda: _Loading(_file), "open files"),
    "growth/threads-per-load": Planted(_LOADS, lambda: _Loading(_waiting_thread), "threads"),
    "growth/weights-per-load": Planted(_LOADS, lambda: Fused(KeepsWeights(np.copy)), "bytes"),
    "growth/native-weights-per-load": Planted(
        _LOADS, lambda: Fused(KeepsWeights(_native_copy)), "bytes of the process"
    ),
    "growth/files-per-runtime": Planted(_RUNTIMES, lambda: KeepsRuntimes(_file), "open files"),
    "growth/bytes-per-runtime": Planted(
        _RUNTIMES, lambda: KeepsRuntimes(lambda: bytearray(4096)), "bytes"
    ),
    "growth/processes-per-runtime": Planted(
        _RUNTIMES,
        lambda: KeepsRuntimes(lambda: os.posix_spawn("/bin/true", ["true"], {})),
        "child processes",
    ),
    "growth/arenas": Planted(_ARENAS, lambda: with_arenas(KeepsHostCopies), "bytes"),
}
"""By name."""


class BoundedPool(Fault):
    """Keeps so many results, and reuses the places of the oldest."""

    def __init__(self, count: int) -> None:
        self._pool: deque[Array] = deque(maxlen=count)

    def after(self, call: Call) -> None:
        self._pool.append(call.outputs[0].copy())


class LazyThreads(Fault):
    """Starts its threads in the first execution."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def before(self, call: Call) -> None:
        while len(self._threads) < 4:
            thread = threading.Thread(target=threading.Event().wait, args=(60,), daemon=True)
            thread.start()
            self._threads.append(thread)


class PooledFiles(Plain):
    """Opens a file for each load, up to 40 of them."""

    def __init__(self) -> None:
        super().__init__()
        self._files: list[int] = []

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        if len(self._files) < 40:
            self._files.append(_file())
            weakref.finalize(self, os.close, self._files[-1])
        return super().create_workload_factory(network)


class LazyProgram(Plain):
    """Prepares a layer in its first execution."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        class Lazy(Factory):
            def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
                make, lock = super().create_workload, threading.Lock()
                ready: list[IWorkload] = []

                def execute(inputs: Handles, outputs: Outputs) -> None:
                    with lock:
                        if not ready:
                            ready.append(make(operation, info))
                    ready[0].execute(inputs, outputs)

                return FunctionWorkload(execute)

        return Lazy(self.fault)


BOUNDED: dict[str, Callable[[], IBackendInternal]] = {
    "pool of 20": lambda: Plain(BoundedPool(20)),
    "pool of 500": lambda: Plain(BoundedPool(500)),
    "threads from the first execution": lambda: Plain(LazyThreads()),
    "pool of 40 files": PooledFiles,
    "prepares in the first execution": LazyProgram,
}
"""Correct backends that keep some things."""

GROWTH_AREAS = (_EXECUTIONS, _LOADS, _RUNTIMES)
"""The rules about growth that concern all backends."""
