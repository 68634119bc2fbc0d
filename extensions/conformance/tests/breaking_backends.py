"""Devices that each break one rule of the contract, and nothing else that the rule is not about."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar

import numpy as np

from armpy.backend import (
    BackendOption,
    DefaultAllocator,
    IBackendContext,
    IBackendInternal,
    IBackendModelContext,
    IBackendProfiling,
    IBackendProfilingContext,
    ICompletion,
    ICustomAllocator,
    IWorkloadFactory,
    Measurement,
    NetworkResources,
    OptionScope,
    OptionValues,
    TensorHandleFactoryRegistry,
    current_cancellation,
)
from armpy.errors import BackendError, ExecutionCancelledError, ExecutionTimeoutError
from armpy.ops.operation import Array

from .breaking_memory import (
    Breaker,
    CopiesGaps,
    CopiesWhatItImports,
    EverythingAtOffsetZero,
    ExampleDeviceBackend,
    ExportsACopy,
    ExportsItsNeighbour,
    ForgetfulBuffers,
    ForgetsWhatIsOnlyWritten,
    Handles,
    ImportsAnything,
    ImportsShortFiles,
    KeepsWhatItImported,
    NeverDownloadsForReading,
    NeverDownloadsForWriting,
    NeverReleased,
    OneArena,
    OneBuffer,
    OneConstant,
    Outputs,
    RefusesAndImports,
    RefusesItsBuffers,
    RefusesWithoutReason,
    SpoilsItsBuffers,
    TakesAnyShape,
    UploadsWhatWasOnlyRead,
    Wrapped,
    WrappingFactory,
    WritesBeside,
    declare_counters,
    with_arenas,
    with_factories,
    with_handles,
    with_workloads,
)


class FreesWhatItNeeds(Wrapped):
    """Gives back more than the idle memory."""

    is_gone = False

    def free_idle_memory(self) -> None:
        self.is_gone = True

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        if self.is_gone:
            raise BackendError("the weights are not there any more")
        super().execute(inputs, outputs)


class BindsOnce(Wrapped):
    """Knows the tensors that were bound last, and no others."""

    def bind(self, inputs: Handles, outputs: Outputs) -> Callable[[], object]:
        self._bound = (inputs, outputs)
        return lambda: self.execute(*self._bound)


class ComputesWhenBound(Wrapped):
    """Does nothing more once it was bound."""

    def bind(self, inputs: Handles, outputs: Outputs) -> Callable[[], object]:
        self.execute(inputs, outputs)
        return lambda: None


class _Later(ICompletion):
    """The end of a thread."""

    def __init__(self, thread: threading.Thread) -> None:
        self._thread = thread

    def wait(self, timeout_s: float | None = None) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


class _TooSoon(_Later):
    """Reports its end at the first query, unless it is alone."""

    _under_way: ClassVar[list[threading.Thread]] = []

    def __init__(self, thread: threading.Thread) -> None:
        super().__init__(thread)
        self._under_way[:] = [
            thread_alive for thread_alive in self._under_way if thread_alive.is_alive()
        ]
        self._under_way.append(thread)

    def wait(self, timeout_s: float | None = None) -> bool:
        return timeout_s is not None or len(self._under_way) > 1 or super().wait()


class _SaysNothing(_Later):
    """Does not say whether it has ended."""

    def wait(self, timeout_s: float | None = None) -> bool:
        return super().wait(timeout_s) or None  # type: ignore[return-value]  # on purpose


class _Queued(Wrapped):
    """Runs on a thread, a while later."""

    completion: type[_Later] = _Later

    def enqueue(self, inputs: Handles, outputs: Outputs) -> ICompletion | None:
        thread = threading.Thread(target=self._run, args=(inputs, outputs))
        thread.start()
        return type(self).completion(thread)

    def _run(self, inputs: Handles, outputs: Outputs) -> None:
        time.sleep(0.02)
        with suppress(ExecutionCancelledError):  # the device is closed when the kit is done
            self.execute(inputs, outputs)


class EndsTooSoon(_Queued):
    """Says that it has ended before it has."""

    completion = _TooSoon


class SaysNothing(_Queued):
    """Answers None in place of False."""

    completion = _SaysNothing


class OutOfOrder(_Queued):
    """The later it was begun, the sooner it runs."""

    num_begun = 0

    def _run(self, inputs: Handles, outputs: Outputs) -> None:
        OutOfOrder.num_begun += 1
        time.sleep(0.03 / (OutOfOrder.num_begun % 5 + 1))
        with suppress(ExecutionCancelledError):
            self.execute(inputs, outputs)


class Silent(Wrapped):
    """Says nothing of what goes wrong."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        with suppress(BackendError):
            super().execute(inputs, outputs)


class _Lost(_Later):
    """Never ends after it was cancelled."""

    is_lost = False

    def cancel(self) -> None:
        self.is_lost = True

    def wait(self, timeout_s: float | None = None) -> bool:
        return super().wait(timeout_s) and not self.is_lost


class NeverEndsIfCancelled(_Queued):
    """Forgets cancelled executions, and the threads that wait for them."""

    completion = _Lost


class WrongIfCancelled(_Queued):
    """Cancels what comes next as well."""

    num_cancelled = 0

    class _Noting(_Later):
        def cancel(self) -> None:
            WrongIfCancelled.num_cancelled += 1

    completion = _Noting

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        if WrongIfCancelled.num_cancelled:
            WrongIfCancelled.num_cancelled -= 1
        else:
            super().execute(inputs, outputs)

    def _run(self, inputs: Handles, outputs: Outputs) -> None:
        time.sleep(0.02)
        with suppress(ExecutionCancelledError):
            self._right.execute(inputs, outputs)


class SilentInItsQueue(_Queued):
    """Ends like others when something has gone wrong."""

    def _run(self, inputs: Handles, outputs: Outputs) -> None:
        with suppress(BackendError):
            super()._run(inputs, outputs)


class CannotBeStopped(Wrapped):
    """Never looks whether to stop."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        contextvars.Context().run(self._right.execute, inputs, outputs)


class CannotBeStoppedOnceBound(Wrapped):
    """Ignores cancellations of bound executions."""

    def bind(self, inputs: Handles, outputs: Outputs) -> Callable[[], object]:
        return contextvars.Context().run(self._right.bind, inputs, outputs)


class StopsTooLate(CannotBeStopped):
    """Looks whether to stop when it is done, and takes its time."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        super().execute(inputs, outputs)
        cancellation = current_cancellation()
        if cancellation is not None:
            time.sleep(0.2)
            cancellation.check()


class GoesOn(CannotBeStopped):
    """Takes long to stop on request."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        super().execute(inputs, outputs)
        cancellation = current_cancellation()
        if cancellation is not None:
            time.sleep(2.5)


class CallsDeadlinesCancellations(Wrapped):
    """Raises the same whyever it stops."""

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        try:
            super().execute(inputs, outputs)
        except ExecutionTimeoutError as error:
            raise ExecutionCancelledError("stopped") from error


class WrongOnceStopped(Wrapped):
    """Does not recover from being stopped."""

    was_stopped = False

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        try:
            super().execute(inputs, outputs)
        except ExecutionCancelledError:
            self.was_stopped = True
            raise
        if self.was_stopped:
            array = outputs[0].map()
            array.reshape(-1).view(np.uint8)[0] ^= 0x40
            outputs[0].unmap()


class DeclaresNothing(Breaker):
    """Counts counters that it has not declared."""

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        return None


class CountsByOtherClock(Breaker):
    """Measures times by the calendar."""

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        declare_counters(profiling)

        class Context(IBackendProfilingContext):
            def take_events(self) -> Sequence[Measurement]:
                return [Measurement("kernel", time.time() * 1e6, 1.0)]

        return Context()


class MeasuresAllTogether(Breaker):
    """Has one place for what all networks take."""

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        declare_counters(profiling)
        commands = self.device.queue
        known: list[Measurement] = commands.__dict__.setdefault("known", [])

        class Context(IBackendProfilingContext):
            def take_events(self) -> Sequence[Measurement]:
                events = list(known)
                known.clear()
                return events

        return Context()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        right = super().create_workload_factory(network)
        known: list[Measurement] = self.device.queue.__dict__.setdefault("known", [])

        class Noting(Wrapped):
            def execute(self, inputs: Handles, outputs: Outputs) -> None:
                started_us = time.perf_counter() * 1e6
                super().execute(inputs, outputs)
                known.append(Measurement("kernel", started_us, 1.0))

        return WrappingFactory(right, Noting)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        return self


class Renamed(Breaker):
    """Calls itself otherwise for a runtime."""

    name = "ExampleDevice"

    def get_id(self) -> str:
        return self.name

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        renamed = type(self)(self.device)
        renamed.name = "ExampleDevice2"
        return renamed


class OptionsStick(Breaker):
    """Goes by the options of the runtime that came last."""

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        self.memory_bytes = options["memory_bytes"]
        return self


class AcceptsAllocatorsAndForgetsThem(Breaker):
    """Says yes, and takes its own memory all the same."""

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        super().register_tensor_handle_factories(registry, NetworkResources())


class NeverFrees(Breaker):
    """Takes memory from an allocator and keeps it."""

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        right = network.allocator

        class Keeping(DefaultAllocator):
            def allocate(self, size_bytes: int, alignment_bytes: int = 64) -> Array:
                assert right is not None
                return right.allocate(size_bytes, alignment_bytes)

        resources = NetworkResources(allocator=None if right is None else Keeping())
        super().register_tensor_handle_factories(registry, resources)


class AllocatorsStick(Breaker):
    """Uses the allocator that it was asked about last."""

    _kept: list[ICustomAllocator] = []  # noqa: RUF012 - its fault

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        self._kept.append(allocator)
        return super().use_custom_memory_allocator(allocator)

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        resources = NetworkResources(allocator=self._kept[-1] if self._kept else None)
        super().register_tensor_handle_factories(registry, resources)


class _Ending(Wrapped):
    """Works as long as nothing of its backend was closed."""

    owner: ClosesForAll

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        if self.owner.is_closed:
            raise BackendError("the device was closed")
        super().execute(inputs, outputs)


class ClosesForAll(Breaker):
    """Has one device for all runtimes, which the first context closes."""

    is_closed = False

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        return self

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        right = super().create_workload_factory(network)
        return WrappingFactory(right, type("Ending", (_Ending,), {"owner": self}))

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        backend = self

        class Context(IBackendContext):
            def close(self) -> None:
                backend.is_closed = True

        return Context()


class ClosesForAllNetworks(ClosesForAll):
    """Has one context for all networks."""

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("fast", False, "Whether fast.", OptionScope.MODEL),)

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        return None

    def create_backend_specific_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext | None:
        backend = self

        class Context(IBackendModelContext):
            def close(self) -> None:
                backend.is_closed = True

        return Context()


BREAKERS: dict[str, tuple[tuple[Callable[[], ExampleDeviceBackend], str], ...]] = {
    "tensors/maps-for-writing-bring-every-element": (
        (lambda: with_handles(ForgetsWhatIsOnlyWritten), r"after map\(read=False\), FLOAT32"),
    ),
    "tensors/maps-for-reading-change-nothing": (
        (lambda: with_handles(NeverDownloadsForReading), r"map\(write=False\) of FLOAT32.* shows"),
        (lambda: with_handles(UploadsWhatWasOnlyRead), r"after map\(write=False\), FLOAT32"),
    ),
    "tensors/maps-keep-what-is-not-written": (
        (lambda: with_handles(NeverDownloadsForWriting), "in a map for both"),
    ),
    "tensors/copies-are-like-maps": (
        (lambda: with_handles(CopiesGaps), "after an array with gaps was copied in"),
        (lambda: with_handles(TakesAnyShape), "takes elements of another shape"),
    ),
    "tensors/constants-hold-their-elements": (
        (lambda: with_factories(OneConstant), "as one of several constants"),
    ),
    "tensors/networks-have-constants-of-their-own": (
        (lambda: with_factories(OneConstant), "beside other constants, the output"),
    ),
    "arenas/tensors-share-what-others-have-left": (
        (lambda: with_arenas(EverythingAtOffsetZero), "in memory that tensors share, the output"),
    ),
    "arenas/executions-have-memory-of-their-own": (
        (lambda: with_arenas(OneArena), "beside another execution of the same network"),
    ),
    "arenas/idle-memory-can-be-given-back": (
        (lambda: with_workloads(FreesWhatItNeeds), "the weights are not there any more"),
    ),
    "arenas/arenas-can-be-made-again-and-again": (
        (lambda: with_arenas(NeverReleased), "the device is out of memory"),
    ),
    "imports/answers-are-kept": (
        (lambda: with_factories(ImportsAnything), "can_import says yes to .*, but import_memory"),
        (lambda: with_factories(RefusesWithoutReason), "a no has a text and a code"),
        (lambda: with_factories(RefusesAndImports), r"says no to .* \(not today\), but"),
        (lambda: with_factories(ImportsShortFiles), "a file is imported that is too short"),
    ),
    "imports/inputs-are-read-where-they-lie": (
        (lambda: with_factories(CopiesWhatItImports), "with inputs in imported"),
    ),
    "imports/outputs-are-written-where-they-lie": (
        (lambda: with_factories(CopiesWhatItImports), "with outputs in imported"),
        (lambda: with_factories(WritesBeside), "bytes beside the output"),
    ),
    "imports/memory-is-let-go": (
        (lambda: with_factories(KeepsWhatItImported), "an array is kept|files are open"),
    ),
    "imports/exports-are-the-tensors-themselves": (
        (lambda: with_handles(ExportsACopy), "written to the exported memory, the output"),
        (lambda: with_handles(ExportsItsNeighbour), "exports does not have its elements"),
    ),
    "buffers/elements-come-out-as-they-went-in": (
        (OneBuffer, "copied in once, .* comes out with other elements"),
        (ForgetfulBuffers, "comes out with other elements"),
    ),
    "buffers/networks-read-and-write-them": (
        (lambda: with_factories(CopiesWhatItImports), "with (inputs|outputs) in its own buffers"),
        (lambda: with_factories(RefusesItsBuffers), "its own buffer for .* is not imported"),
        (lambda: with_factories(SpoilsItsBuffers), "has changed the buffer of the input"),
    ),
    "executions/bound-executions-are-like-others": (
        (lambda: with_workloads(BindsOnce), "in a bound execution.*, the output"),
        (lambda: with_workloads(ComputesWhenBound), "in a bound execution.*, the output"),
    ),
    "executions/queued-executions-keep-their-order": (
        (lambda: with_workloads(EndsTooSoon), "that were enqueued one after the other"),
        (lambda: with_workloads(OutOfOrder), "that were enqueued one after the other"),
        (lambda: with_workloads(SaysNothing), r"wait\(0.0\) returns None"),
    ),
    "executions/cancelled-completions-come-to-an-end": (
        (lambda: with_workloads(NeverEndsIfCancelled), "cancelled execution has not ended after"),
        (lambda: with_workloads(WrongIfCancelled), "after enqueued layers were cancelled"),
    ),
    "executions/failures-are-reported": (
        (lambda: with_workloads(Silent), "execute accepts an invalid input"),
        (lambda: with_workloads(SilentInItsQueue), "enqueue accepts an invalid input"),
    ),
    "executions/executions-stop-when-they-are-cancelled": (
        (lambda: with_workloads(CannotBeStopped), "as if it had not been cancelled"),
        (lambda: with_workloads(StopsTooLate), "a cancelled execution stops after .* ms"),
        (lambda: with_workloads(GoesOn), "goes on 2 s after it was cancelled, and has ended only"),
    ),
    "executions/bound-executions-stop-as-well": (
        (lambda: with_workloads(CannotBeStoppedOnceBound), "as if it had not been cancelled"),
    ),
    "executions/deadlines-differ-from-cancellations": (
        (lambda: with_workloads(CallsDeadlinesCancellations), "expected a ExecutionTimeoutError"),
    ),
    "executions/executions-after-a-stopped-one-are-right": (
        (lambda: with_workloads(WrongOnceStopped), "after an execution was stopped, the output"),
    ),
    "profiles/counters-are-declared": ((DeclaresNothing, "'uploads' was never declared"),),
    "profiles/events-lie-in-their-execution": ((CountsByOtherClock, "'kernel' took place from"),),
    "profiles/networks-are-measured-apart": (
        (MeasuresAllTogether, "executions of one network are in another one's profile"),
    ),
    "runtimes/for-runtime-keeps-who-it-is": (
        (Renamed, "get_id is 'ExampleDevice2', not 'ExampleDevice'"),
    ),
    "runtimes/for-runtime-leaves-others-alone": ((OptionsStick, "changes memory_bytes of the"),),
    "runtimes/allocators-give-and-get-back": (
        (AcceptsAllocatorsAndForgetsThem, "was asked 0 times for 2 working memories"),
        (NeverFrees, "pieces of the allocator's memory were not given back"),
    ),
    "runtimes/allocators-do-not-stick": (
        (AllocatorsStick, "is used for a network that was given none"),
    ),
    "runtimes/contexts-can-be-closed": ((ClosesForAll, "the device was closed"),),
    "runtimes/model-contexts-can-be-closed": ((ClosesForAllNetworks, "the device was closed"),),
}
"""By rule: devices that break it, and a part of the failure's text."""
