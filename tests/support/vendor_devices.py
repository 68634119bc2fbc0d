"""Faults of a device with a queue: commands, completions, transfers, buffers, what is said."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any  # members of classes made at run time

import numpy as np

from armpy.backend import (
    Capabilities,
    Capability,
    DeviceMemoryRequest,
    ExternalMemory,
    IBackendInternal,
    ICompletion,
    IDeviceMemory,
    ILayerSupport,
    ITensorHandle,
    IWorkloadFactory,
    Lifetime,
    Measurement,
    NetworkResources,
    OptionValues,
    ReasonCode,
    Support,
    TensorHandleFactoryRegistry,
)
from armpy.errors import ArmpyError, BackendError, ExecutionCancelledError
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from tests.support.breaking_memory import (
    Breaker,
    mappable_device,
    with_arenas,
    with_factories,
    with_handles,
)
from tests.support.vendor_programs import spoil

# isort: split
from armpy_example_device import Device
from armpy_example_device.device import Region
from armpy_example_device.kernels import TILE_ELEMENTS
from armpy_example_device.layer_support import DeviceLayerSupport
from armpy_example_device.memory import (
    DeviceArena,
    DeviceBuffer,
    DeviceHandleFactory,
    DeviceTensorHandle,
    RegisteredTensorHandle,
)
from armpy_example_device.profiling import Transfers
from armpy_example_device.queue import Command, Completion, Queue
from armpy_example_device.workloads import DeviceWorkload, DeviceWorkloadFactory


def device(queue: type[Queue] = Queue, kind: type[Device] = Device, **members: Any) -> Breaker:
    """A backend on a device with another queue, some members being others."""
    opened = kind(is_mappable=True)
    opened.queue = queue(opened.faults)
    made: Breaker = type("Breaker", (Breaker,), members)(opened)
    return made


def queued(queue: type[Queue]) -> Callable[[], Breaker]:
    return lambda: device(queue)


def on(kind: type[Device]) -> Callable[[], Breaker]:
    return lambda: device(Queue, kind)


# --- Kernels

Kernel = Callable[[Operation, Sequence[tuple[TensorInfo, Array] | None], Array], None]
"""Spoils what a command has computed, given the operation and what it has read."""


def kernel(spoils: Kernel) -> Callable[[], Breaker]:
    """A device whose commands are spoilt on it."""

    class Spoilt(DeviceWorkload):
        def _submit(self, inputs: Any, outputs: Any, cancellation: Any) -> ICompletion:
            queue, operation = self._device.queue, self._operation
            given = [None if h is None else (h.info, h.on_device) for h in inputs]

            class Between:
                def submit(self, command: Command) -> Completion:
                    def run() -> Iterator[None]:
                        yield from command.run()
                        spoils(operation, given, command.output)

                    return queue.submit(replace(command, run=run))

            other = _Seen(self._device, Between())
            right = DeviceWorkload(operation, self._name, other, self._transfers)  # type: ignore[arg-type]
            return right._submit(inputs, outputs, cancellation)

    return workloads(Spoilt)


class _Seen:
    """A device with something else for a queue."""

    def __init__(self, right: Device, queue: object) -> None:
        self._right = right
        self.queue = queue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._right, name)


def workloads(kind: type[DeviceWorkload]) -> Callable[[], Breaker]:
    """A device whose workloads are of another class."""

    class Factory(DeviceWorkloadFactory):
        def create_workload(self, operation: Operation, info: Any) -> Any:
            return kind(operation, info.name, self._device, self._transfers)

    def create(this: Breaker, network: NetworkResources) -> IWorkloadFactory:
        return Factory(this.device, Transfers(this.device, network.profiling))

    return lambda: device(create_workload_factory_for_network=create)


def spoiling(condition: Callable[[Operation, list[Array], Array], bool]) -> Callable[[], Breaker]:
    """Commands are wrong under a condition."""

    def spoils(operation: Operation, given: Any, output: Array) -> None:
        if condition(operation, [g[1] for g in given if g is not None], output):
            spoil(output)

    return kernel(spoils)


def seam(operation: Operation, given: Any, output: Array) -> None:
    """The first element of the second tile is of the first one."""
    if output.size > TILE_ELEMENTS:
        flat = output.reshape(-1)
        flat[TILE_ELEMENTS] = flat[0]


# --- The queue


class Early(Queue):
    """Says that a command has ended when it begins."""

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting, 0.5):
                    self._has_thread = False
                    return
                completion = self._running = self._waiting.popleft()
            if completion.begin():
                completion.end(None)
                time.sleep(1e-3)
                self._run(completion)
            with self._changed:
                self._running = None
            del completion


class LastFirst(Queue):
    """What came last is run first."""

    def submit(self, command: Command) -> Completion:
        completion = Completion(command)
        with self._changed:
            self._waiting.appendleft(completion)
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._work, name="ExampleDevice", daemon=True).start()
            self._changed.notify()
        return completion


class Shallow(Queue):
    """Has room for 3 commands, and drops what comes then."""

    def submit(self, command: Command) -> Completion:
        if len(self._waiting) >= 3:
            completion = Completion(command)
            completion.end(None)
            return completion
        return super().submit(command)


class SwallowsErrors(Queue):
    """A command that failed has ended."""

    def _run(self, completion: Completion) -> ArmpyError | None:
        super()._run(completion)
        return None


class NextFails(Queue):
    """A failure is told to the command behind."""

    _left: ArmpyError | None = None

    def _run(self, completion: Completion) -> ArmpyError | None:
        before, self._left = self._left, None
        self._left = super()._run(completion)
        return before


class StaysBroken(Queue):
    """Behind a failure everything fails."""

    _failed: ArmpyError | None = None

    def _run(self, completion: Completion) -> ArmpyError | None:
        self._failed = self._failed or super()._run(completion)
        return self._failed


class CancelsAll(Queue):
    """One cancellation empties the queue."""

    def _run(self, completion: Completion) -> ArmpyError | None:
        error = super()._run(completion)
        if isinstance(error, ExecutionCancelledError):
            with self._changed:
                while self._waiting:
                    self._waiting.popleft().end(error)
        return error


class CancelledGoesOn(Queue):
    """A command that was cancelled writes later, behind its end."""

    def _run(self, completion: Completion) -> ArmpyError | None:
        error = super()._run(completion)
        if isinstance(error, ExecutionCancelledError):
            output = completion.command.output

            def write() -> None:
                time.sleep(0.02)
                output.reshape(-1).view(np.uint8)[...] = 0x55

            threading.Thread(target=write).start()
        return error


class Milliseconds(Queue):
    """Measures in milliseconds."""

    factor = 1e-3

    def submit(self, command: Command) -> Completion:
        report = command.report
        if report is not None:
            factor, right = self.factor, report

            def told(event: Measurement) -> None:
                right(
                    Measurement(
                        event.name, event.start_us, event.duration_us * factor, event.thread_id
                    )
                )

            command = replace(command, report=told)
        return super().submit(command)


class Nanoseconds(Milliseconds):
    """Measures in nanoseconds."""

    factor = 1e3


class OwnClock(Queue):
    """Has a clock that began when it was opened."""

    def submit(self, command: Command) -> Completion:
        report = command.report
        if report is not None:
            right = report

            def told(event: Measurement) -> None:
                start = event.start_us % 1e6
                right(Measurement(event.name, start, event.duration_us, event.thread_id))

            command = replace(command, report=told)
        return super().submit(command)


class ReportsTwice(Queue):
    """Tells every command twice."""

    def submit(self, command: Command) -> Completion:
        report = command.report
        if report is not None:
            right = report

            def told(event: Measurement) -> None:
                right(event)
                right(event)

            command = replace(command, report=told)
        return super().submit(command)


class KeepsCommands(Queue):
    """Remembers every command."""

    def submit(self, command: Command) -> Completion:
        self.__dict__.setdefault("kept", []).append(command)
        return super().submit(command)


class TwoThreads(Queue):
    """Runs commands side by side."""

    def submit(self, command: Command) -> Completion:
        completion = Completion(command)

        def run() -> None:
            time.sleep(2e-3 if command.output.size % 2 else 0)
            if completion.begin():
                completion.end(self._run(completion))

        threading.Thread(target=run, daemon=True).start()
        return completion


def completing(kind: type[Completion]) -> Callable[[], Breaker]:
    """A device whose completions are of another class."""

    class Other(Queue):
        def submit(self, command: Command) -> Completion:
            made = super().submit(command)
            made.__class__ = kind
            return made

    return queued(Other)


class NoCancel(Completion):
    """Takes cancellations, and does nothing."""

    def cancel(self) -> None:
        return

    def check(self) -> None:
        return

    def _wait(self, timeout_s: float | None) -> bool:
        return self._ended.wait(timeout_s)


class CancelsAsFailure(Completion):
    """Tells a cancellation as a failure."""

    def _cancelled(self) -> ArmpyError:
        return BackendError("the command was stopped", where="ExampleDevice")


class CancelsOneWay(Completion):
    """Tells every stop as a cancellation, deadlines too."""

    def _cancelled(self) -> ArmpyError:
        return ExecutionCancelledError("the command was cancelled", where="ExampleDevice")


class TimesOutAsEnd(Completion):
    """Says that it has ended when the wait was too short."""

    def wait(self, timeout_s: float | None = None) -> bool:
        super().wait(timeout_s)
        return True


class MillisecondWait(Completion):
    """Waits for milliseconds."""

    def wait(self, timeout_s: float | None = None) -> bool:
        return super().wait(None if timeout_s is None else timeout_s * 1e3)


class SecondWait(Completion):
    """Can be waited for once."""

    def wait(self, timeout_s: float | None = None) -> bool:
        has_ended = self._wait(timeout_s)
        error, self._error = self._error, None
        if has_ended and error is not None:
            raise error
        return has_ended


class CancelledWasRight(Completion):
    """A cancelled command has ended as any other."""

    def wait(self, timeout_s: float | None = None) -> bool:
        try:
            return super().wait(timeout_s)
        except ExecutionCancelledError:
            return True


# --- Workloads


class BindsContents(DeviceWorkload):
    """What is bound reads what lay there at the time."""

    def bind(self, inputs: Any, outputs: Any) -> Callable[[], ICompletion]:
        given, made = self._on_device(inputs, outputs)
        kept = [
            None if h is None else RegisteredTensorHandle(h.info, Region(h.region.elements.copy()))
            for h in given
        ]
        return partial(self._submit, kept, made, None)


class BindsLast(DeviceWorkload):
    """Has one binding: the last one."""

    def bind(self, inputs: Any, outputs: Any) -> Callable[[], ICompletion]:
        self._bound = self._on_device(inputs, outputs)

        def begin() -> ICompletion:
            return self._submit(*self._bound, None)

        return begin


class BindsWithoutCancel(DeviceWorkload):
    """Bound executions cannot be cancelled."""

    def bind(self, inputs: Any, outputs: Any) -> Callable[[], ICompletion]:
        return partial(self._submit, *self._on_device(inputs, outputs), None)


class EnqueuesAndForgets(DeviceWorkload):
    """`execute` does not wait for the end."""

    def execute(self, inputs: Any, outputs: Any) -> None:
        self.enqueue(inputs, outputs)


class CopiesRegistered(DeviceWorkload):
    """Reads memory of the host in pages of 64 bytes from their beginning."""

    def _usable(self, handle: ITensorHandle) -> RegisteredTensorHandle:
        made = super()._usable(handle)
        elements = made.region.elements
        if not isinstance(made, DeviceTensorHandle) and elements.size and elements.ctypes.data % 16:
            copy = np.roll(elements, 1).copy()
            return RegisteredTensorHandle(made.info, Region(copy))
        return made


class OneCommand(DeviceWorkload):
    """Has one place for what a command reads."""

    def _submit(self, inputs: Any, outputs: Any, cancellation: Any) -> ICompletion:
        places = self.__dict__.setdefault("places", {})
        given = []
        for n, handle in enumerate(inputs):
            if handle is None:
                given.append(None)
                continue
            kept = places.setdefault(n, np.empty_like(handle.region.elements))
            if kept.size == handle.region.elements.size:
                kept[...] = handle.region.elements
            given.append(RegisteredTensorHandle(handle.info, Region(kept)))
        return super()._submit(given, outputs, cancellation)


# --- Memory


class LazyHandle(DeviceTensorHandle):
    """Uploads when the caller may have changed the array."""

    __slots__ = ()

    def copy_in_from(self, source: Array) -> None:
        super().copy_in_from(source)
        region, kept = self.region, np.ascontiguousarray(source)

        def upload() -> None:
            time.sleep(5e-3)
            if kept.nbytes == region.elements.nbytes:
                region.elements[...] = kept.reshape(-1).view(np.uint8)

        threading.Thread(target=upload).start()


class RegionLeak(Device):
    """Memory that was returned is not used again while there is other."""

    def _take_back(self) -> None:
        while len(self._returned) > 1:
            self._gaps.append(self._returned.popleft())
            self._returned.popleft()
        super_gaps = sorted(self._gaps)
        self._gaps = super_gaps


class DoubleFree(Device):
    """Memory comes back twice when it was of some size."""

    def alloc(self, size_bytes: int) -> Region:
        region = super().alloc(size_bytes)
        if size_bytes == 64:
            self._returned.append((region.offset_bytes, 64))
        return region


class PartialUpload(Device):
    """Uploads whole words."""

    def upload(self, region: Region, source: Array) -> None:
        size = source.nbytes // 4 * 4
        flat = source.reshape(-1).view(np.uint8)
        region.elements[:size] = flat[:size]


class PartialDownload(Device):
    """Downloads up to 64 KiB."""

    def download(self, region: Region, target: Array) -> None:
        flat = target.reshape(-1).view(np.uint8)
        flat[: 1 << 16] = region.elements[: 1 << 16]
        flat[1 << 16 :] = 0


class Unaligned(DeviceArena):
    """Rounds offsets down to 256 bytes."""

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        return super().create_tensor_handle(info, lifetime, offset_bytes // 256 * 256)


class LongLived(DeviceArena):
    """Takes tensors that live long to be dead."""

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        made = super().create_tensor_handle(info, lifetime, offset_bytes)
        if isinstance(made, DeviceTensorHandle):
            made.region.elements[...] = 0
        return made


class ImportsWithoutOffset(DeviceHandleFactory):
    """Uses memory from its beginning, whatever the offset."""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        if memory.array is None and memory.device is None and memory.offset_bytes:
            memory = ExternalMemory(
                memory.source, memory.size_bytes, None, memory.file_descriptor, 0
            )
        return super().import_memory(info, memory, read=read, write=write)


class ImportsUnaligned(DeviceHandleFactory):
    """Uses memory that is not aligned from where it would be."""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        made = super().import_memory(info, memory, read=read, write=write)
        elements = made.region.elements if isinstance(made, RegisteredTensorHandle) else None
        if elements is not None and elements.size and elements.ctypes.data % 64:
            made.region = Region(np.roll(elements, 4).copy())  # type: ignore[attr-defined]
        return made


class ImportsReadOnly(DeviceHandleFactory):
    """Results in imported memory come with the next use."""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        made = super().import_memory(info, memory, read=read, write=write)
        if write and isinstance(made, RegisteredTensorHandle) and memory.device is None:
            made.region = Region(made.region.elements.copy())
        return made


class SharesConstants(DeviceHandleFactory):
    """Constants of the same first bytes are one."""

    def create_constant_handle(self, info: TensorInfo, elements: Array) -> ITensorHandle:
        key = str(info), elements.tobytes()[:8]
        kept: dict[object, ITensorHandle] = self._device.__dict__.setdefault("constants", {})
        if key not in kept:
            kept[key] = super().create_constant_handle(info, elements)
        return kept[key]


class BufferOfNetwork(Breaker):
    """Buffers of one size are the same memory once the first is used again."""

    def allocate_device_memory(self, request: DeviceMemoryRequest) -> IDeviceMemory | None:
        made = super().allocate_device_memory(request)
        kept = self.device.__dict__.setdefault("regions", {})
        if isinstance(made, DeviceBuffer):
            made.region = kept.setdefault(request.info.size_bytes, made.region)
        return made


# --- What is said


class SaysDifferently(DeviceLayerSupport):
    """Says no to every seventh question."""

    count = 0

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        type(self).count += 1
        if self.count % 7 == 0:
            return Support.no(ReasonCode.DEVICE, "the device is busy")
        return super().is_layer_supported(operation, inputs, outputs)


class SaysYesToTypes(DeviceLayerSupport):
    """Does not look at the types of second inputs."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        return super().is_layer_supported(operation, inputs[:1], outputs)


class SaysYesToAll(DeviceLayerSupport):
    """Looks at operations only."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        answer = super().is_layer_supported(operation, inputs, outputs)
        return answer if answer.code is ReasonCode.OPERATION else Support.yes()


class SaysNoWithoutText(DeviceLayerSupport):
    """Gives no reasons for attributes."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        answer = super().is_layer_supported(operation, inputs, outputs)
        return (
            answer if answer.code is not ReasonCode.ATTRIBUTE else Support.no(ReasonCode.OTHER, "")
        )


class RefusesLater(DeviceWorkloadFactory):
    """Cannot make what it said yes to, where it is large."""

    def create_workload(self, operation: Operation, info: Any) -> Any:
        if operation.name == "Softmax" and operation.attributes()["beta"] != 1.0:
            raise BackendError("the device has no such kernel")
        return super().create_workload(operation, info)


def supporting(kind: type[ILayerSupport]) -> Callable[[], Breaker]:
    return lambda: device(get_layer_support=lambda _: kind())


def refusing() -> Breaker:
    def create(this: Breaker, network: NetworkResources) -> IWorkloadFactory:
        return RefusesLater(this.device, Transfers(this.device, network.profiling))

    return device(create_workload_factory_for_network=create)


class NoTile(Queue):
    """Says that it can be cancelled, and looks at the end only."""

    def _run(self, completion: Completion) -> ArmpyError | None:
        command = completion.command
        right = command.run
        self._go_wrong_before = lambda _: None  # type: ignore[method-assign,misc]
        assert right is not None
        return super()._run(completion)


class SharesTransfers(Breaker):
    """Counts for whichever network was loaded first."""

    def _transfers(self, network: NetworkResources) -> Transfers:
        kept: Transfers = self.__dict__.setdefault(
            "kept", Transfers(self.device, network.profiling)
        )
        return kept

    def register_tensor_handle_factories_for_network(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        sources = network.input_sources | network.output_sources
        registry.register_factory(
            DeviceHandleFactory(self.device, self._transfers(network), network.allocator, sources)
        )

    def create_workload_factory_for_network(self, network: NetworkResources) -> IWorkloadFactory:
        return DeviceWorkloadFactory(self.device, self._transfers(network))


class ClosesOthers(Breaker):
    """The end of one runtime is the end of the device."""

    def create_backend_context(self, options: OptionValues) -> Any:
        opened = self.device
        right = super().create_backend_context(options)

        class Closing(type(right)):  # type: ignore[misc]
            def close(self) -> None:
                super().close()
                opened.queue.submit = _closed  # type: ignore[method-assign]

        return Closing(opened)


def _closed(command: Command) -> Completion:
    raise BackendError("the device is closed")


class CannotBeCancelled(Breaker):
    """Does not say that weights have to be constant."""

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.NON_CONST_WEIGHTS: False}


class FirstWeights(DeviceWorkload):
    """Packs weights at the first execution."""

    def _submit(self, inputs: Any, outputs: Any, cancellation: Any) -> ICompletion:
        if len(inputs) > 1 and self._operation.name in ("Convolution2d", "FullyConnected"):
            handle = inputs[1]
            kept = self.__dict__.setdefault("packed", handle.region.elements.copy())
            inputs = [inputs[0], RegisteredTensorHandle(handle.info, Region(kept)), *inputs[2:]]
        return super()._submit(inputs, outputs, cancellation)


def name_is(name: str) -> Callable[[Operation], bool]:
    return lambda operation: operation.name == name


def of(name: str, test: Callable[[Any, list[Array], Array], bool]) -> Callable[[], Breaker]:
    """An operation is wrong under a condition on its attributes and arrays."""
    return spoiling(lambda o, given, out: o.name == name and test(o, given, out))


DEVICES: dict[str, Callable[[], IBackendInternal]] = {
    "kernel/seam-of-tiles": kernel(seam),
    "kernel/last-of-many-tiles": spoiling(lambda o, g, out: out.size > 3 * TILE_ELEMENTS),
    "kernel/exact-tile": spoiling(lambda o, g, out: out.size % 64 == 0 and out.size > 0),
    "kernel/dilation": of("Convolution2d", lambda o, g, out: max(o.dilation) > 1),
    "kernel/images": of("Convolution2d", lambda o, g, out: out.shape[0] > 1),
    "kernel/rows-of-dense": of("FullyConnected", lambda o, g, out: g[0].size > g[1].shape[1] * 4),
    "kernel/pool-strides": of("Pooling2d", lambda o, g, out: len(set(o.stride)) > 1),
    "kernel/uint8": spoiling(lambda o, g, out: out.dtype == np.uint8 and o.name == "Softmax"),
    "kernel/broadcast": of(
        "ElementwiseBinary", lambda o, g, out: g[0].shape != g[1].shape and g[0].size < g[1].size
    ),
    "kernel/same-tensor": of(
        "ElementwiseBinary", lambda o, g, out: g[0].ctypes.data == g[1].ctypes.data and out.size > 0
    ),
    "kernel/reshape-large": of("Reshape", lambda o, g, out: out.nbytes > 1 << 12),
    "kernel/beta": of("Softmax", lambda o, g, out: o.beta != 1),
    "queue/early": queued(Early),
    "queue/last-first": queued(LastFirst),
    "queue/shallow": queued(Shallow),
    "queue/swallows-errors": queued(SwallowsErrors),
    "queue/next-fails": queued(NextFails),
    "queue/stays-broken": queued(StaysBroken),
    "queue/cancels-all": queued(CancelsAll),
    "queue/cancelled-goes-on": queued(CancelledGoesOn),
    "queue/milliseconds": queued(Milliseconds),
    "queue/nanoseconds": queued(Nanoseconds),
    "queue/own-clock": queued(OwnClock),
    "queue/reports-twice": queued(ReportsTwice),
    "queue/keeps-commands": queued(KeepsCommands),
    "queue/two-threads": queued(TwoThreads),
    "completion/no-cancel": completing(NoCancel),
    "completion/cancel-is-failure": completing(CancelsAsFailure),
    "completion/deadline-is-cancel": completing(CancelsOneWay),
    "completion/time-out-is-end": completing(TimesOutAsEnd),
    "completion/milliseconds": completing(MillisecondWait),
    "completion/second-wait": completing(SecondWait),
    "completion/cancelled-was-right": completing(CancelledWasRight),
    "workload/binds-contents": workloads(BindsContents),
    "workload/binds-last": workloads(BindsLast),
    "workload/binds-without-cancel": workloads(BindsWithoutCancel),
    "workload/forgets-to-wait": workloads(EnqueuesAndForgets),
    "workload/unaligned-host": workloads(CopiesRegistered),
    "workload/one-place": workloads(OneCommand),
    "workload/first-weights": workloads(FirstWeights),
    "memory/lazy-upload": lambda: with_handles(LazyHandle),
    "memory/leaks-half": on(RegionLeak),
    "memory/double-free": on(DoubleFree),
    "memory/whole-words": on(PartialUpload),
    "memory/64-kib": on(PartialDownload),
    "memory/offsets-rounded": lambda: with_arenas(Unaligned),
    "memory/clears": lambda: with_arenas(LongLived),
    "imports/no-offset": lambda: with_factories(ImportsWithoutOffset),
    "imports/unaligned": lambda: with_factories(ImportsUnaligned),
    "imports/results-late": lambda: with_factories(ImportsReadOnly),
    "imports/constants-alike": lambda: with_factories(SharesConstants),
    "buffers/one-memory": lambda: BufferOfNetwork(mappable_device()),
    "says/differently": supporting(SaysDifferently),
    "says/yes-to-types": supporting(SaysYesToTypes),
    "says/yes-to-all": supporting(SaysYesToAll),
    "says/no-text": supporting(SaysNoWithoutText),
    "says/refuses-later": refusing,
    "says/counts-for-first": lambda: SharesTransfers(mappable_device()),
    "says/closes-others": lambda: ClosesOthers(mappable_device()),
}
"""In a device with a queue, each the makings of one."""
