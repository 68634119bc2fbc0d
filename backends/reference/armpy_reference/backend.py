"""CpuRef: the backend that defines right answers."""

from __future__ import annotations

from collections.abc import Sequence

from armpy import __version__
from armpy.backend import (
    Capabilities,
    Capability,
    DeviceInfo,
    IBackendInternal,
    ICustomAllocator,
    ILayerSupport,
    IWorkloadFactory,
    NetworkResources,
    PreparationRequest,
    ReasonCode,
    Support,
)
from armpy.errors import LayerValidationError
from armpy.ops import RegexFullMatch, Tokenizer
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import REFERENCE_BACKEND_ID, BackendId, DeviceType
from armpy_reference.factory import ReferenceWorkloadFactory, workload_class


class ReferenceLayerSupport(ILayerSupport):
    """Supports whatever has a workload, for all that the operation's type rules allow."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Return whether there is a workload and the types are allowed."""
        if workload_class(type(operation)) is None:
            return Support.no(ReasonCode.OPERATION, f"CpuRef has no {operation.name}")
        try:
            operation.check_types(inputs, outputs)
        except LayerValidationError as error:
            return Support.no(ReasonCode.DATA_TYPE, str(error))
        if isinstance(operation, RegexFullMatch):
            return _pattern_support(operation.pattern)
        if isinstance(operation, Tokenizer):
            return _pattern_support(*(operation.separators or (operation.token_pattern,)))
        return Support.yes()


def _pattern_support(*patterns: str) -> Support:
    """Support for an operation with regular expressions."""
    from armpy_reference.regular_expression import problem_of  # noqa: PLC0415 - for few networks

    for pattern in patterns:
        if problem := problem_of(pattern):
            return Support.no(ReasonCode.ATTRIBUTE, problem)
    return Support.yes()


class ReferenceBackend(IBackendInternal):
    """Every operation with NumPy, on one thread apart from NumPy's own matrix products."""

    def get_id(self) -> BackendId:
        """``"CpuRef"``."""
        return REFERENCE_BACKEND_ID

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.8"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """The reference, preferred last."""
        return (DeviceInfo(device_type=DeviceType.CPU_REFERENCE),)

    @property
    def version(self) -> str:
        """Version of the distribution that the backend comes with."""
        return __version__

    def get_capabilities(self) -> Capabilities:
        """All that makes sense for host memory."""
        return {
            Capability.NON_CONST_WEIGHTS: True,
            Capability.SINGLE_AXIS_PACKING: True,
            Capability.MULTI_AXIS_PACKING: True,
            Capability.DYNAMIC_OUTPUT_SHAPES: True,
            Capability.STRINGS: True,
        }

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        """Any allocator will do: the core takes the arenas from it."""
        return True

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """A factory of NumPy workloads."""
        return ReferenceWorkloadFactory()

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Support as the operations' type rules say."""
        return ReferenceLayerSupport()
