"""A sound backend to stand beside the broken ones: it adds float32 tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
from armpy.types import DataType, DeviceType


def get_backend_id() -> str:
    """Name of the backend."""
    return "GoodAddition"


def get_version() -> tuple[int, int]:
    """Version of the contract."""
    return 2, 0


def backend_factory() -> IBackendInternal:
    """Make the backend."""
    return Backend()


class Backend(IBackendInternal, ILayerSupport, IWorkloadFactory, IWorkload):
    """All roles of a backend in one object."""

    def get_id(self) -> str:
        """Return the name of the backend."""
        return "GoodAddition"

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.0"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """List its one device."""
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Everybody is the same object."""
        return self

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Return its layer support."""
        return self

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Plain additions of float32."""
        if operation == ElementwiseBinary(BinaryOperation.ADD):
            if outputs[0].data_type is DataType.FLOAT32:
                return Support.yes()
            return Support.no(ReasonCode.DATA_TYPE, "only FLOAT32 is supported")
        return Support.no(ReasonCode.OPERATION, "only plain additions are supported")

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """Everybody is the same object."""
        return self

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Add."""
        lhs, rhs = (handle.map(write=False) for handle in inputs if handle is not None)
        np.add(lhs, rhs, out=outputs[0].map(read=False))
        for handle in (*inputs, *outputs):
            if handle is not None:
                handle.unmap()
