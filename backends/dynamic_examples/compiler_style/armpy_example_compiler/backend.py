"""The backend as armpy sees it."""

from __future__ import annotations

from armpy.backend import (
    IBackendInternal,
    ILayerSupport,
    IMemoryManager,
    IPrograms,
    IWorkloadFactory,
    OptimizationViews,
)
from armpy.graph import SubgraphView
from armpy.types import BackendId, DeviceType
from armpy_example_compiler.compiler import compile_view
from armpy_example_compiler.files import CompilerPrograms
from armpy_example_compiler.layer_support import ExampleLayerSupport
from armpy_example_compiler.workloads import ExampleWorkloadFactory


class ExampleCompilerBackend(IBackendInternal):
    """Fuses weighted layers with the activations behind them."""

    @property
    def backend_id(self) -> BackendId:
        """The name of the entry point."""
        return "ExampleCompiler"

    @property
    def version(self) -> str:
        """That of this package."""
        return "1.0.0"

    @property
    def device_type(self) -> DeviceType:
        """As an accelerator it is asked before all others."""
        return DeviceType.ACCELERATOR

    def get_programs(self) -> IPrograms:
        """What writes programs into prepared files."""
        return CompilerPrograms()

    def get_layer_support(self) -> ILayerSupport:
        """What it can compile or run."""
        return ExampleLayerSupport()

    def create_workload_factory(self, memory_manager: IMemoryManager | None) -> IWorkloadFactory:
        """Make what runs programs, and the activations that are left alone."""
        return ExampleWorkloadFactory()

    def optimize_subgraph(self, view: SubgraphView) -> OptimizationViews:
        """Put programs in the place of what can be fused."""
        return compile_view(view)
