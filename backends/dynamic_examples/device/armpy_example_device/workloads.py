"""Layers as commands of the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from armpy.backend import (
    Cancellation,
    HostTensorHandle,
    ICompletion,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    WorkloadInfo,
    current_cancellation,
)
from armpy.errors import BackendError
from armpy.ops.operation import Operation
from armpy_example_device.device import Device
from armpy_example_device.kernels import kernel
from armpy_example_device.memory import RegisteredTensorHandle
from armpy_example_device.profiling import Transfers
from armpy_example_device.queue import Command

Inputs = Sequence[ITensorHandle | None]
Outputs = Sequence[ITensorHandle]


class DeviceWorkload(IWorkload):
    """One layer, which the device runs as one command.

    Notes
    -----
    Several threads may execute it at once, so nothing of an execution is kept on it.
    """

    def __init__(
        self, operation: Operation, name: str, device: Device, transfers: Transfers
    ) -> None:
        self._operation = operation
        self._name = name
        self._device = device
        self._transfers = transfers

    def execute(self, inputs: Inputs, outputs: Outputs) -> None:
        """Enqueue the command and wait for its end."""
        self.enqueue(inputs, outputs).wait()

    def enqueue(self, inputs: Inputs, outputs: Outputs) -> ICompletion:
        """Enqueue the command; the device keeps the order."""
        return self._submit(*self._on_device(inputs, outputs), current_cancellation())

    def bind(self, inputs: Inputs, outputs: Outputs) -> Callable[[], ICompletion]:
        """Find the tensors once for many executions, each of which `enqueue` would begin."""
        return partial(self._submit, *self._on_device(inputs, outputs), current_cancellation())

    def _on_device(
        self, inputs: Inputs, outputs: Outputs
    ) -> tuple[list[RegisteredTensorHandle | None], list[RegisteredTensorHandle]]:
        """The tensors where the device can use them."""
        input_handles = [None if handle is None else self._usable(handle) for handle in inputs]
        return input_handles, [self._usable(handle) for handle in outputs]

    def _usable(self, handle: ITensorHandle) -> RegisteredTensorHandle:
        """A tensor where the device can use it; host memory is registered."""
        if isinstance(handle, HostTensorHandle):
            memory = handle.array.reshape(-1).view(np.uint8)
            return RegisteredTensorHandle(handle.info, self._device.register(memory))
        if isinstance(handle, RegisteredTensorHandle):
            return handle
        raise BackendError(
            "the tensor is not where the device could use it",
            where=f"ExampleDevice / {self._name}",
            actual=type(handle).__name__,
        )

    def _submit(
        self,
        inputs: Sequence[RegisteredTensorHandle | None],
        outputs: Sequence[RegisteredTensorHandle],
        cancellation: Cancellation | None,
    ) -> ICompletion:
        """Enqueue the command, which keeps the tensors' memory."""
        input_tensors = [
            None if handle is None else (handle.info, handle.on_device) for handle in inputs
        ]
        output_tensor = (outputs[0].info, outputs[0].on_device)
        command = Command(
            self._name,
            partial(kernel, self._operation, input_tensors, output_tensor),
            output_tensor[1],
            cancellation,
            self._transfers.report,
            keep_alive=(*inputs, *outputs),
        )
        return self._device.queue.submit(command)


class DeviceWorkloadFactory(IWorkloadFactory):
    """Prepares the layers of one network."""

    def __init__(self, device: Device, transfers: Transfers) -> None:
        self._device = device
        self._transfers = transfers

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """Make the workload; constants come to it as handles of the device."""
        return DeviceWorkload(operation, info.name, self._device, self._transfers)
