"""The common part of the broken backends: a right backend for additions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.backend import (
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
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType


def get_version() -> tuple[int, int]:
    """Version of the contract."""
    return 2, 0


class Addition(IBackendInternal, ILayerSupport, IWorkloadFactory, IWorkload):
    """All roles of a backend in one object."""

    def __init__(self, backend_id: str) -> None:
        self._id = backend_id

    def get_id(self) -> str:
        """Return the name of the backend."""
        return self._id

    def get_api_version(self) -> str:
        """Return the version of the contract that it is written for."""
        return "2.0"

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Return this object."""
        return self

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Return this object."""
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
        """Return this object."""
        return self

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Let `write_sum` fill the output."""
        lhs, rhs = (handle.map(write=False) for handle in inputs if handle is not None)
        self.write_sum(lhs, rhs, outputs[0].map(read=False))
        for handle in (*inputs, *outputs):
            if handle is not None:
                handle.unmap()

    def write_sum(self, lhs: Array, rhs: Array, out: Array) -> None:
        """Write the sum of two arrays to a third one."""
        np.add(lhs, rhs, out=out)
