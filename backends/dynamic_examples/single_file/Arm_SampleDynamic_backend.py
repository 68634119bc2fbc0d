"""Arm NN's sample of a dynamic backend as a single file: it adds float32 tensors.

Put the file into a directory that `RuntimeOptions(dynamic_backends_path=...)` or the
environment variable ``ARMPY_DYNAMIC_BACKENDS_PATH`` names. Nothing needs to be installed.

References
----------
Arm NN ``src/dynamic/sample``; its layers Input and Output are no layers in armpy.
"""

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
from armpy.ops import BinaryOperation, ElementwiseBinary, FusedActivation
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DataType, DeviceType

ADDITION = ElementwiseBinary(BinaryOperation.ADD, FusedActivation.NONE)


def get_backend_id() -> str:
    """First entry point: the backend's name."""
    return "SampleDynamic"


def get_version() -> tuple[int, int]:
    """Second entry point: the version of armpy's contract that this was written for.

    Later minor versions of the core run it as it is.
    """
    return 2, 0


def backend_factory() -> IBackendInternal:
    """Third entry point: make the backend."""
    return SampleBackend()


class SampleLayerSupport(ILayerSupport):
    """Takes additions of float32."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Whether it is an addition, and of float32."""
        if operation != ADDITION:
            return Support.no(ReasonCode.OPERATION, f"{operation.name} is not a plain addition")
        for info in (*inputs, *outputs):
            if info is not None and info.data_type is not DataType.FLOAT32:
                text = f"{info.data_type.name} is not supported, only FLOAT32"
                return Support.no(ReasonCode.DATA_TYPE, text)
        return Support.yes()


class SampleAdditionWorkload(IWorkload):
    """Adds two tensors."""

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Compute the sum in the output's memory."""
        lhs, rhs = (handle.map(write=False) for handle in inputs if handle is not None)
        with np.errstate(all="ignore"):  # infinities and NaNs are answers like any other
            np.add(lhs, rhs, out=outputs[0].map(read=False))
        for handle in (*inputs, *outputs):
            if handle is not None:
                handle.unmap()


class SampleWorkloadFactory(IWorkloadFactory):
    """Makes the only workload there is."""

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """An addition, since nothing else is supported."""
        return SampleAdditionWorkload()


class SampleBackend(IBackendInternal):
    """Adds float32 tensors; everything else is for other backends."""

    def get_id(self) -> BackendId:
        """What `get_backend_id` says."""
        return get_backend_id()

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.0"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """As an accelerator it is asked before all others."""
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make the factory of one loaded network."""
        return SampleWorkloadFactory()

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Return its abilities."""
        return SampleLayerSupport()
