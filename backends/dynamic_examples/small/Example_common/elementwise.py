"""A backend that runs one operation of two float32 tensors, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.backend import (
    DeviceInfo,
    IBackendInternal,
    ILayerSupport,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    PreparationRequest,
    ReasonCode,
    Support,
    WorkloadInfo,
)
from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DataType, DeviceType

Floats = npt.NDArray[np.float32]
Kernel = Callable[[Floats, Floats, Floats], object]
"""Computes the third array from the others; all have one shape and are C-contiguous."""

ADDITION = ElementwiseBinary(BinaryOperation.ADD)
MULTIPLICATION = ElementwiseBinary(BinaryOperation.MUL)


def add(lhs: Floats, rhs: Floats, out: Floats) -> None:
    """Add with NumPy; infinities and NaNs are answers like any other."""
    with np.errstate(all="ignore"):
        np.add(lhs, rhs, out=out)


class ElementwiseSupport(ILayerSupport):
    """Takes one operation of two tensors of float32 that have one shape."""

    def __init__(self, operation: ElementwiseBinary) -> None:
        self._operation = operation

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Whether it is that operation, without broadcasting, and of float32."""
        if operation != self._operation:
            return Support.no(
                ReasonCode.OPERATION, f"only a plain {self._operation.operation.name}"
            )
        infos = [info for info in (*inputs, *outputs) if info is not None]
        if any(info.data_type is not DataType.FLOAT32 for info in infos):
            return Support.no(ReasonCode.DATA_TYPE, "only FLOAT32 is supported")
        if any(info.shape != infos[0].shape for info in infos):
            return Support.no(ReasonCode.SHAPE, "broadcasting is not supported")
        return Support.yes()


class ElementwiseWorkload(IWorkload):
    """Maps two tensors to read and one to write, and calls a kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Call the kernel with the mapped handles."""
        sources = [handle for handle in inputs if handle is not None]
        (target,) = outputs
        lhs, rhs = (handle.map(write=False) for handle in sources)  # nothing to bring back
        self._kernel(lhs, rhs, target.map(read=False))  # nothing to bring before
        for handle in (*sources, target):
            handle.unmap()


class ElementwiseFactory(IWorkloadFactory):
    """Makes the workloads of one network."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """The only workload there is, since nothing else is supported."""
        return ElementwiseWorkload(self._kernel)


class ElementwiseBackend(IBackendInternal):
    """Runs one operation of float32 tensors, element by element.

    Parameters
    ----------
    operation : ElementwiseBinary, optional
        Addition by default.
    kernel : callable, optional
        NumPy's addition by default.
    """

    def __init__(
        self,
        backend_id: BackendId,
        operation: ElementwiseBinary = ADDITION,
        kernel: Any = add,  # Any: a compiled function has no type
    ) -> None:
        self._backend_id = backend_id
        self._operation = operation
        self.kernel: Kernel = kernel

    def get_id(self) -> BackendId:
        """Its arguments."""
        return self._backend_id

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.0"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """As an accelerator it is asked before all others."""
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make the factory of one loaded network."""
        return ElementwiseFactory(self.kernel)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Return its abilities."""
        return ElementwiseSupport(self._operation)
