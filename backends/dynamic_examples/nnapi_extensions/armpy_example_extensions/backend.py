"""The backend as armpy sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armpy.backend import (
    DeviceInfo,
    Extension,
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
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DeviceType
from armpy_example_extensions import fibonacci, samples
from armpy_example_extensions.kernels import compute

if TYPE_CHECKING:
    from armpy_conformance import Pattern

OPERATIONS = (fibonacci.Fibonacci, samples.Dequantize64, samples.Amplify)


class ExampleExtensionsBackend(IBackendInternal):
    """The operations of two vendor extensions, and no others."""

    def get_id(self) -> BackendId:
        """The name of the entry point."""
        return "ExampleExtensions"

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.8"

    @property
    def version(self) -> str:
        """That of this package."""
        return "1.0.0"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """As an accelerator it is asked before all others."""
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)

    @property
    def extensions(self) -> Sequence[Extension]:
        """What applications can use through it."""
        return (fibonacci.EXTENSION, samples.EXTENSION)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Its layer support."""
        return ExampleLayerSupport()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make what prepares the layers of one network."""
        return ExampleWorkloadFactory()

    def conformance_patterns(self) -> Sequence[Pattern]:
        """What armpy's conformance kit and ``armpy doctor`` try; nothing else asks for it."""
        # Applications do not need what tests are made of.
        from armpy_example_extensions.patterns import patterns  # noqa: PLC0415

        return patterns()


class ExampleLayerSupport(ILayerSupport):
    """Takes its own operations; their rules have checked types and shapes already."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Whether one layer can run."""
        if isinstance(operation, OPERATIONS):
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, f"{operation.name} is not supported")


class ExampleWorkload(IWorkload):
    """One layer."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Compute the output in its own memory."""
        arrays = [handle.map(write=False) for handle in inputs if handle is not None]
        with np.errstate(all="ignore"):
            compute(self._operation, arrays, outputs[0].map(read=False))
        for handle in (*inputs, *outputs):
            if handle is not None:
                handle.unmap()


class ExampleWorkloadFactory(IWorkloadFactory):
    """Prepares the layers of one network."""

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """Make the workload."""
        return ExampleWorkload(operation)
