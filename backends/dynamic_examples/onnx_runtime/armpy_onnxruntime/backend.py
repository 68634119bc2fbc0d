"""The backend: offers subgraphs to ONNX Runtime and runs what that makes of them."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import (
    BackendOption,
    DeviceInfo,
    IBackendContext,
    IBackendInternal,
    ILayerSupport,
    IPrograms,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    Numerics,
    OptimizationViews,
    OptionScope,
    OptionValues,
    PreparationRequest,
    Substitution,
    WorkloadInfo,
)
from armpy.errors import UnimplementedError
from armpy.graph import SubgraphView
from armpy.ops import PreCompiled
from armpy.ops.operation import Operation
from armpy.types import BackendId, DeviceType
from armpy_onnxruntime.engine import BACKEND_ID, require
from armpy_onnxruntime.export import export_model
from armpy_onnxruntime.files import OnnxPrograms
from armpy_onnxruntime.program import Program, ProgramWorkload
from armpy_onnxruntime.support import OnnxLayerSupport


class ProgramFactory(IWorkloadFactory):
    """Makes workloads of the programs that `OnnxRuntimeBackend.optimize_subgraph_view` put in."""

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """The workload of one program.

        Raises
        ------
        UnimplementedError
            For any other layer: single layers are compiled too.
        """
        if not isinstance(operation, PreCompiled):
            raise UnimplementedError(f"{BACKEND_ID} runs nothing but programs", where=info.name)
        return ProgramWorkload(operation.program)


class OnnxRuntimeBackend(IBackendInternal):
    """Compiles each subgraph to an ONNX model and runs it in one ONNX Runtime session."""

    def get_id(self) -> BackendId:
        """``"OnnxRuntime"``."""
        return BACKEND_ID

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.2"

    @property
    def version(self) -> str:
        """That of this package."""
        return "1.0.0"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """Compiled code on the CPU."""
        # Its maxima drop NaN, as comparisons of the processor do.
        numerics = Numerics(keeps_nan=False)
        return (DeviceInfo(device_type=DeviceType.CPU_COMPILED, numerics=numerics),)

    @property
    def options(self) -> Sequence[BackendOption]:
        """How many threads a network's sessions use."""
        return (
            BackendOption(
                "num_threads",
                0,
                "Threads that one execution uses; 0 is one per core.",
                OptionScope.MODEL,
                minimum=0,
                maximum=256,
            ),
        )

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """Check that the engine is there; raises BackendUnavailableError if it is not."""
        require("onnxruntime")
        require("onnx")
        return None

    def get_programs(self) -> IPrograms:
        """What writes sessions into prepared files."""
        return OnnxPrograms()

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """What can be written as ONNX."""
        return OnnxLayerSupport()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """A factory of programs."""
        return ProgramFactory()

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Compile the whole subgraph; what ONNX Runtime raises becomes the reason to fall back."""
        num_threads = int(request.model_options.get("num_threads", 0))
        program = Program(export_model(view), num_threads)
        shapes = tuple(value.info.known_shape for value in view.outputs)
        substitution = Substitution.by_operation(view, PreCompiled(program, shapes))
        return OptimizationViews(substitutions=[substitution])
