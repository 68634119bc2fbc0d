"""A driver of a device that runs commands after each other's back, on buffers of its own.

A thread stands for the device. Only that thread touches a buffer between a command's
beginning and its end: the host sees elements through copies.

References
----------
NNAPI ``IPreparedModel::execute_1_3`` and ``IExecutionCallback``; ``IDevice::allocate``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError

import numpy as np

from armpy.backend import (
    DeviceInfo,
    IBackendContext,
    IBackendInternal,
    ICompletion,
    ILayerSupport,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptionValues,
    PreparationRequest,
    TensorHandleFactoryRegistry,
    WorkloadInfo,
    current_cancellation,
    current_timing,
)
from armpy.errors import BackendUnavailableError, ExecutionCancelledError
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DeviceType

from .Sample_common import Floats, SampleSupport, compute, step_of

BACKEND_ID = "SampleQueue"
FACTORY_ID = "sample/queue"
ANSWER_S = 10.0
"""How long the device may take to answer when it is opened."""


def get_backend_id() -> str:
    """First entry point."""
    return BACKEND_ID


def get_version() -> str:
    """Second entry point."""
    return "2.0"


def backend_factory() -> IBackendInternal:
    """Third entry point."""
    return QueueBackend()


class BufferHandle(ITensorHandle):
    """A tensor in a buffer of the device.

    Attributes
    ----------
    buffer : ndarray
        For the device alone.
    """

    def __init__(self, info: TensorInfo) -> None:
        self._info = info
        self.buffer: Array = np.zeros(info.known_shape, info.data_type.dtype)
        self._staging: Array | None = None
        self._is_written = False
        self._num_maps = 0

    @property
    def info(self) -> TensorInfo:
        """Shape, data type and quantisation."""
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        """A copy for the host, brought from the device only if it is read."""
        if self._staging is None:
            self._staging = np.empty_like(self.buffer)
            if read:
                self._staging[...] = self.buffer
        self._is_written |= write
        self._num_maps += 1
        return self._staging

    def unmap(self) -> None:
        """Copy written elements to the device when the last map ends."""
        self._num_maps -= 1
        if self._num_maps == 0 and self._staging is not None:
            if self._is_written:
                self.buffer[...] = self._staging
            self._staging, self._is_written = None, False


class BufferFactory(ITensorHandleFactory):
    """Makes buffers, one per tensor."""

    @property
    def factory_id(self) -> str:
        """One for the driver."""
        return FACTORY_ID

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        """A buffer; the host memory that was planned is not needed."""
        return BufferHandle(info)

    def create_constant_handle(self, info: TensorInfo, elements: Array) -> ITensorHandle:
        """A buffer with the constant's elements, once per network."""
        handle = BufferHandle(info)
        handle.copy_in_from(elements)
        return handle


class Completion(ICompletion):
    """The end of a command."""

    def __init__(self, command: Future[None]) -> None:
        self._command = command

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; what went wrong on the device is raised here."""
        if self._command.cancelled():
            raise ExecutionCancelledError("the command was taken back", where=BACKEND_ID)
        try:
            self._command.result(timeout_s)
        except FutureTimeoutError:
            return False
        return True

    def cancel(self) -> None:
        """Take the command back, if it has not begun: the device cannot stop in one."""
        self._command.cancel()


class QueueWorkload(IWorkload):
    """One layer, as one command.

    Parameters
    ----------
    queue : ThreadPoolExecutor
        With one thread, which keeps the order.
    """

    def __init__(self, operation: Operation, queue: ThreadPoolExecutor) -> None:
        self._step = step_of(operation)
        self._queue = queue

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Enqueue the command and wait for its end."""
        self.enqueue(inputs, outputs).wait()

    def enqueue(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> ICompletion:
        """Enqueue the command; those before it may still be writing its inputs."""
        reads = [None if handle is None else _buffer(handle) for handle in inputs]
        target = _buffer(outputs[0])
        cancellation, timing = current_cancellation(), current_timing()

        def command() -> None:
            if cancellation is not None:
                cancellation.check()
            started_s = time.perf_counter()
            compute(self._step, reads, target)
            if timing is not None:
                timing.add_device_time((time.perf_counter() - started_s) * 1e6)

        return Completion(self._queue.submit(command))


def _buffer(handle: ITensorHandle) -> Floats:
    """Where the device finds a tensor; host memory is read and written where it lies."""
    return handle.buffer if isinstance(handle, BufferHandle) else handle.map()


class QueueFactory(IWorkloadFactory):
    """Makes the commands of one network."""

    def __init__(self, queue: ThreadPoolExecutor) -> None:
        self._queue = queue

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """Make one; constants come to it in buffers."""
        return QueueWorkload(operation, self._queue)


class QueueContext(IBackendContext):
    """Belongs to one runtime, with which the device is closed."""

    def __init__(self, queue: ThreadPoolExecutor) -> None:
        self._queue = queue

    def close(self) -> None:
        """Let the device end its command and forget those that wait."""
        self._queue.shutdown(wait=False, cancel_futures=True)


class QueueBackend(IBackendInternal):
    """A device with one queue per runtime."""

    def __init__(self) -> None:
        self._queue = ThreadPoolExecutor(max_workers=1, thread_name_prefix=BACKEND_ID)

    def get_id(self) -> BackendId:
        """Name of the backend."""
        return BACKEND_ID

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.0"

    @property
    def version(self) -> str:
        """Of the driver."""
        return "1.0.0"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """As an accelerator it is asked before all others."""
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        """A driver with a queue of its own, as this one may serve other runtimes."""
        return type(self)()

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """What closes the queue, once the device has answered for the first time.

        Notes
        -----
        The thread starts here. One that starts with the first command may find no memory for that,
        and the caller that waits for the command would wait for ever.
        """
        try:
            self._queue.submit(bool).result(ANSWER_S)
        except (FutureTimeoutError, RuntimeError) as error:
            raise BackendUnavailableError("the device does not answer", where=BACKEND_ID) from error
        return QueueContext(self._queue)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Operations that the device can compute."""
        return SampleSupport()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make what puts layers into the queue."""
        return QueueFactory(self._queue)

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        """Add what makes buffers."""
        registry.register_factory(BufferFactory())

    def get_handle_factory_preferences(self) -> Sequence[str]:
        """Buffers, and nothing else."""
        return [FACTORY_ID]
