"""The backend as armpy sees it."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import (
    DeviceInfo,
    IBackendInternal,
    ILayerSupport,
    IPrograms,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    PreparationRequest,
)
from armpy.graph import SubgraphView
from armpy.types import BackendId, DeviceType
from armpy_example_compiler.compiler import compile_view
from armpy_example_compiler.files import CompilerPrograms
from armpy_example_compiler.layer_support import ExampleLayerSupport
from armpy_example_compiler.workloads import ExampleWorkloadFactory


class ExampleCompilerBackend(IBackendInternal):
    """Fuses weighted layers with the activations after them."""

    def get_id(self) -> BackendId:
        """The name of the entry point."""
        return "ExampleCompiler"

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

    def get_programs(self) -> IPrograms:
        """What writes programs into compiled models."""
        return CompilerPrograms()

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Operations that it can compile or run."""
        return ExampleLayerSupport()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make what runs programs, and the activations that are left alone."""
        return ExampleWorkloadFactory()

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Put programs in the place of what can be fused."""
        return compile_view(view)
