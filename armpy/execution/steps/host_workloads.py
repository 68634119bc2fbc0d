"""Host workloads, the core's own part in a loaded network: copies, and control flow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from armpy.backend import (
    DefaultAllocator,
    HostTensorHandle,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    WorkloadInfo,
)
from armpy.compiler.memory.memory_copies import HOST_FACTORIES
from armpy.errors import BackendError, UnimplementedError
from armpy.execution.memory.allocators import CheckedAllocator
from armpy.execution.steps.control_flow import IfWorkload, Subnetworks, WhileWorkload
from armpy.execution.steps.session import BackendSession
from armpy.ops.control_flow import If, While
from armpy.ops.operation import Array, Operation
from armpy.plugins.proxy.guarded_call import ask_backend, call_method
from armpy.tensor import TensorInfo
from armpy.types import HOST, BackendId


class CopyWorkload(IWorkload):
    """Executes a MemCopy between two backends' memories."""

    def __init__(
        self,
        # `source_id` and `target_id`: whose memory is read and written, for messages.
        source_id: BackendId,
        target_id: BackendId,
        info: TensorInfo,  # fully shaped
    ) -> None:
        self._source_id = source_id
        self._target_id = target_id
        self._info = info

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Move the elements in the ways that the tensors' classes have of their own.

        Raises BackendError if a tensor's method raises, or mapped elements are not of the tensor's
        form.
        """
        source, target = inputs[0], outputs[0]
        if type(source) is HostTensorHandle:
            call_method(self._target_id, target, "copy_in_from", source.array)
        elif not _has_own(source, "copy_out_to"):
            with self._mapped(self._source_id, source, is_read=True) as elements:
                call_method(self._target_id, target, "copy_in_from", elements)
        elif type(target) is HostTensorHandle:
            call_method(self._source_id, source, "copy_out_to", target.array)
        elif not _has_own(target, "copy_in_from"):
            with self._mapped(self._target_id, target, is_read=False) as elements:
                call_method(self._source_id, source, "copy_out_to", elements)
        else:
            # Two ways of their own, neither of which may know the other's memory.
            elements = np.empty(self._info.known_shape, self._info.data_type.dtype)
            call_method(self._source_id, source, "copy_out_to", elements)
            call_method(self._target_id, target, "copy_in_from", elements)

    @contextmanager
    def _mapped(
        self, backend_id: BackendId, handle: ITensorHandle | None, *, is_read: bool
    ) -> Iterator[Array]:
        """A tensor's elements, to read or to write, until the access ends."""

        def map_it() -> object:
            return None if handle is None else handle.map(read=is_read, write=not is_read)

        # The boundary's errors name the method by it.
        map_it.__name__ = "map"
        elements = ask_backend(backend_id, np.ndarray, map_it)
        try:
            wanted = (self._info.data_type.dtype, self._info.known_shape)
            if (elements.dtype, elements.shape) != wanted:
                raise BackendError(
                    "the mapped elements are not of the tensor's form",
                    where=f"{backend_id} / map",
                    expected=str(self._info),
                    actual=f"{elements.dtype} {elements.shape}",
                )
            yield elements
        finally:
            call_method(backend_id, handle, "unmap")


def _has_own(handle: ITensorHandle | None, method: str) -> bool:
    """Return whether a tensor's class has a way of its own in the place of the contract's."""
    return getattr(type(handle), method, None) is not getattr(ITensorHandle, method)


class CopyWorkloadFactory(IWorkloadFactory):
    """Makes the workloads of MemCopy layers between two backends' memories."""

    def __init__(self, source_id: BackendId, target_id: BackendId) -> None:
        self._ids = (source_id, target_id)

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """A copy of the layer's one tensor."""
        return CopyWorkload(*self._ids, info.outputs[0])


class HostWorkloadFactory(IWorkloadFactory):
    """Makes the workloads of control flow."""

    def __init__(
        self,
        subnetworks: Subnetworks,  # the networks that control flow runs
    ) -> None:
        self._subnetworks = subnetworks

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """The workload of an If or a While.

        Raises UnimplementedError if it is another operation.
        """
        if isinstance(operation, If):
            return IfWorkload(operation, info, self._subnetworks)
        if isinstance(operation, While):
            return WhileWorkload(operation, info, self._subnetworks)
        raise UnimplementedError("the core itself runs control flow only", where=operation.name)


def host_session(subnetworks: Subnetworks) -> BackendSession:
    """The core's own session; parameters as for `HostWorkloadFactory`."""
    return BackendSession(
        HOST,
        HostWorkloadFactory(subnetworks),
        HOST_FACTORIES,
        CheckedAllocator.of(HOST, DefaultAllocator()),
        # Control flow looks at the time itself.
        keeps_loop_timeout=True,
    )
