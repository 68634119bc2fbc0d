"""Faults in what is counted and measured: memory, files, maps, times, counters, options."""

from __future__ import annotations

import mmap
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from armpy.backend import (
    BackendOption,
    IBackendInternal,
    IBackendProfiling,
    IBackendProfilingContext,
    IWorkload,
    IWorkloadFactory,
    Measurement,
    NetworkResources,
    OptimizationViews,
    OptionScope,
    OptionValues,
    PreparationRequest,
    WorkloadInfo,
    current_timing,
)
from armpy.graph import SubgraphView
from armpy.ops.operation import Array, Operation
from armpy_testing.backends.fake_backends import FunctionWorkload, Handles, Outputs, Step

from .device import OwnMemory, WrappingFactory, declare_counters
from .planting import Planted
from .settings import ActsAtLoad
from .shapes import Call, Factory, Fault, Flow, Fused, OwnHandle, Plain, Wrapped


class KeepsLittle(Fault):
    """A few bytes of every execution are remembered."""

    def __init__(self) -> None:
        self.kept: list[object] = []

    def after(self, call: Call) -> None:
        self.kept.append((time.perf_counter(), len(self.kept)))


@dataclass
class LeavesMapped(Fault):
    """A tensor stays mapped."""

    which: int  # of outputs and inputs

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        handle = [*outputs, *inputs][self.which]
        if handle is not None:
            handle.map(write=False)


class KeepsHandles(KeepsLittle):
    """Every tensor that was ever written is remembered."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        self.kept.append(OwnHandle(outputs[0].info))

    def after(self, call: Call) -> None:
        return


class KeepsWeights(Fault):
    """Keeps the weights of every network, or copies of them."""

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


def _file() -> int:
    """Open a file."""
    return os.open(os.devnull, os.O_RDONLY)


@dataclass
class Clock(Fault):
    """Programs have another clock."""

    factor: float

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        started = time.perf_counter()
        step.right.execute(inputs, outputs)
        timing = current_timing()
        if timing is not None:
            timing.on_device_ns = None
            timing.add_device_time((time.perf_counter() - started) * 1e6 * self.factor)


class DeclaresNothing(OwnMemory):
    """Counts counters that it has not declared."""

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        return None


class CountsByOtherClock(OwnMemory):
    """Measures times by the calendar."""

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        declare_counters(profiling)

        class Context(IBackendProfilingContext):
            def take_events(self) -> Sequence[Measurement]:
                return [Measurement("kernel", time.time() * 1e6, 1.0)]

        return Context()


class MeasuresAllTogether(OwnMemory):
    """Has one place for what all networks take."""

    def __init__(self) -> None:
        super().__init__()
        self._measured: list[Measurement] = []

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        declare_counters(profiling)
        measured = self._measured

        class Context(IBackendProfilingContext):
            def take_events(self) -> Sequence[Measurement]:
                events = list(measured)
                measured.clear()
                return events

        return Context()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        measured = self._measured

        class Measured(Wrapped):
            def execute(self, inputs: Handles, outputs: Outputs) -> None:
                started_us = time.perf_counter() * 1e6
                super().execute(inputs, outputs)
                measured.append(Measurement("kernel", started_us, 1.0))

        return WrappingFactory(super().create_workload_factory(network), Measured)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        return self


class Profiled(OwnMemory):
    """Measures each execution of a network."""

    def __init__(self, measured: Callable[[float, int], Measurement], delay: int = 0) -> None:
        super().__init__()
        self._measured = measured
        self._delay = delay  # executions after which a measurement is handed over

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        return self

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        declare_counters(profiling)
        delay = self._delay

        class Context(IBackendProfilingContext):
            def __init__(self) -> None:
                self.events: list[Measurement] = []

            def take_events(self) -> Sequence[Measurement]:
                ready = self.events[: len(self.events) - delay]
                del self.events[: len(ready)]
                return ready

        return Context()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        context, measured, numbers = network.profiling_context, self._measured, count()

        class Measured(Wrapped):
            def execute(self, inputs: Handles, outputs: Outputs) -> None:
                started_us = time.perf_counter() * 1e6
                super().execute(inputs, outputs)
                if context is not None:
                    context.events.append(measured(started_us, next(numbers)))  # type: ignore[attr-defined]

        return WrappingFactory(super().create_workload_factory(network), Measured)


class IdleOption(Plain):
    """Declares an option of runtimes, and forgets it."""

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("fast", False, "Whether fast."),)


class IdleModelOption(Fused):
    """Declares two options of networks, and looks at one of them."""

    @property
    def options(self) -> Sequence[BackendOption]:
        scope = OptionScope.MODEL
        names = ("fast", "exact")
        return tuple(BackendOption(n, False, f"Whether {n}.", scope) for n in names)

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        assert request.model_options["fast"] is False
        return super().optimize_subgraph_view(view, request)


GAUGE_FAULTS: dict[str, Planted] = {
    "gauges/inputs-mapped": Planted(
        "contract/gauges/every-map-is-unmapped", Fused, lambda: LeavesMapped(-1), "unmapped"
    ),
    "gauges/little": Planted(
        "contract/gauges/nothing-grows-from-execution-to-execution", Flow, KeepsLittle, "bytes"
    ),
    "gauges/handles": Planted(
        "contract/gauges/nothing-grows-from-execution-to-execution",
        Fused,
        KeepsHandles,
        "tensor handles",
    ),
    "gauges/nanoseconds": Planted(
        "contract/gauges/device-times-are-no-longer-than-the-clocks",
        Fused,
        lambda: Clock(1000.0),
        "is said",
    ),
    "gauges/option": Planted(
        "contract/gauges/every-option-is-read", IdleOption, said="value of fast: it changes"
    ),
    "gauges/model-option": Planted(
        "contract/gauges/every-option-is-read", IdleModelOption, said="value of exact"
    ),
    "growth/files-per-load": Planted(
        "contract/gauges/nothing-grows-from-load-to-load",
        partial(ActsAtLoad, _file),
        said="open files",
    ),
    "growth/weights-per-load": Planted(
        "contract/gauges/nothing-grows-from-load-to-load",
        Fused,
        lambda: KeepsWeights(np.copy),
        "bytes",
    ),
    "growth/native-weights-per-load": Planted(
        "contract/gauges/nothing-grows-from-load-to-load",
        Fused,
        lambda: KeepsWeights(_native_copy),
        "bytes of the process",
    ),
    "growth/files-per-runtime": Planted(
        "contract/gauges/nothing-grows-from-runtime-to-runtime",
        partial(KeepsRuntimes, _file),
        said="open files",
    ),
    "growth/processes-per-runtime": Planted(
        "contract/gauges/nothing-grows-from-runtime-to-runtime",
        partial(KeepsRuntimes, lambda: os.posix_spawn("/bin/true", ["true"], {})),
        said="child processes",
    ),
    "blind-profiles/numbered": Planted(
        "contract/profiles/events-lie-in-their-execution",
        partial(Profiled, lambda start_us, number: Measurement(f"kernel {number}", start_us, 1.0)),
    ),
    "blind-profiles/late": Planted(
        "contract/profiles/events-lie-in-their-execution",
        partial(Profiled, lambda start_us, _: Measurement("kernel", start_us, 1.0), 1),
    ),
    "blind-profiles/thread": Planted(
        "contract/profiles/events-lie-in-their-execution",
        partial(Profiled, lambda start_us, _: Measurement("kernel", start_us, 1.0, 3)),
    ),
    "blind-profiles/native-thread": Planted(
        "contract/profiles/events-lie-in-their-execution",
        partial(
            Profiled,
            lambda start_us, _: Measurement("kernel", start_us, 1.0, threading.get_native_id()),
        ),
    ),
    "profiles/declares-nothing": Planted(
        "contract/profiles/counters-are-declared",
        DeclaresNothing,
        said="'uploads' was never declared",
    ),
    "profiles/counts-by-other-clock": Planted(
        "contract/profiles/events-lie-in-their-execution",
        CountsByOtherClock,
        said="'kernel' took place from",
    ),
    "profiles/measures-all-together": Planted(
        "contract/profiles/networks-are-measured-apart",
        MeasuresAllTogether,
        said="executions of one network are in another one's profile",
    ),
}
"""By class and name."""


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


GROWTH_AREAS = (
    "contract/gauges/nothing-grows-from-execution",
    "contract/gauges/nothing-grows-from-load",
    "contract/gauges/nothing-grows-from-runtime",
)
"""The rules about growth that concern all backends."""
