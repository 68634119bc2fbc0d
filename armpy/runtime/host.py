"""Host workloads, the core's own part in a loaded network: copies, and control flow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.backend import (
    DefaultAllocator,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    WorkloadInfo,
)
from armpy.errors import BackendError, UnimplementedError
from armpy.ops.control_flow import If, While
from armpy.ops.operation import Operation
from armpy.optimizer.bridge import HOST_FACTORIES
from armpy.plugins.boundary import ask_backend, call_method
from armpy.runtime.allocators import CheckedAllocator
from armpy.runtime.control_flow import IfWorkload, Subnetworks, WhileWorkload
from armpy.runtime.session import BackendSession
from armpy.tensor import TensorInfo
from armpy.types import HOST, BackendId


class CopyWorkload(IWorkload):
    """Executes a MemCopy between two backends' memories.

    Parameters
    ----------
    source_id, target_id : str
        Whose memory is read and written, for messages.
    info : TensorInfo
        Fully shaped.
    """

    def __init__(self, source_id: BackendId, target_id: BackendId, info: TensorInfo) -> None:
        self._source_id = source_id
        self._target_id = target_id
        self._info = info

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Map the source and copy it into the target.

        Raises
        ------
        BackendError
            If a tensor's method raises, or the mapped elements are not of the tensor's form.
        """
        source, target = inputs[0], outputs[0]
        elements = ask_backend(self._source_id, np.ndarray, _map_to_read, source)
        wanted = (self._info.data_type.dtype, self._info.known_shape)
        try:
            if (elements.dtype, elements.shape) != wanted:
                raise BackendError(
                    "the mapped elements are not of the tensor's form",
                    where=f"{self._source_id} / map",
                    expected=str(self._info),
                    actual=f"{elements.dtype}{elements.shape}",
                )
            call_method(self._target_id, target, "copy_in_from", elements)
        finally:
            call_method(self._source_id, source, "unmap")


def _map_to_read(source: ITensorHandle | None) -> object:
    """Map a tensor that is not written."""
    return None if source is None else source.map(write=False)


_map_to_read.__name__ = "map"  # as errors name it


class CopyWorkloadFactory(IWorkloadFactory):
    """Makes the workloads of MemCopy layers between two backends' memories.

    Parameters
    ----------
    source_id, target_id : str
    """

    def __init__(self, source_id: BackendId, target_id: BackendId) -> None:
        self._ids = (source_id, target_id)

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """A copy of the layer's one tensor."""
        return CopyWorkload(*self._ids, info.outputs[0])


class HostWorkloadFactory(IWorkloadFactory):
    """Makes the workloads of control flow.

    Parameters
    ----------
    subnetworks : Subnetworks
        The networks that control flow runs.
    loop_timeout_s : float, optional
        How long an outermost layer may take if the execution does not say; None for no limit.
    """

    def __init__(self, subnetworks: Subnetworks, loop_timeout_s: float | None) -> None:
        self._subnetworks = subnetworks
        self._loop_timeout_s = loop_timeout_s

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """The workload of an If or a While.

        Raises
        ------
        UnimplementedError
            If it is another operation.
        """
        if isinstance(operation, If):
            return IfWorkload(operation, info, self._subnetworks, self._loop_timeout_s)
        if isinstance(operation, While):
            return WhileWorkload(operation, info, self._subnetworks, self._loop_timeout_s)
        raise UnimplementedError("the core itself runs control flow only", where=operation.name)


def host_session(subnetworks: Subnetworks, loop_timeout_s: float | None) -> BackendSession:
    """The core's own session; parameters as for `HostWorkloadFactory`."""
    workloads = HostWorkloadFactory(subnetworks, loop_timeout_s)
    return BackendSession(
        HOST, workloads, HOST_FACTORIES, CheckedAllocator.of(HOST, DefaultAllocator())
    )
