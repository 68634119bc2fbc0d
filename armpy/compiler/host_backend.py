"""The core itself as a backend: it runs control flow that no backend takes."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import (
    BACKEND_API_VERSION,
    Capabilities,
    Capability,
    IBackendInternal,
    ILayerSupport,
    IWorkloadFactory,
    NetworkResources,
    PreparationRequest,
    ReasonCode,
    Support,
)
from armpy.errors import UnimplementedError
from armpy.ops.control_flow import ControlFlow
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import HOST, BackendId


class _HostSupport(ILayerSupport):
    """Control flow and nothing else."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Return whether the core runs an operation itself."""
        if isinstance(operation, ControlFlow):
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "the core itself runs control flow only")


class HostBackend(IBackendInternal):
    """Takes control flow that no backend takes; the layers in its graphs are placed anew.

    It is not a plugin and never listed. The runtime makes its workloads, which run networks.
    """

    def get_id(self) -> BackendId:
        """`HOST`."""
        return HOST

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return BACKEND_API_VERSION

    def get_capabilities(self) -> Capabilities:
        """Output shapes known at run time only, and strings."""
        return {Capability.DYNAMIC_OUTPUT_SHAPES: True, Capability.STRINGS: True}

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Support for control flow."""
        return _HostSupport()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """None: only the runtime can run graphs; raises UnimplementedError."""
        raise UnimplementedError("only the runtime makes workloads of control flow", where=HOST)
