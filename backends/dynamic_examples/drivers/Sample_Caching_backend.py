"""A driver that compiles, says how fast its device is, and keeps what it compiled in two files.

References
----------
NNAPI ``IDevice``: ``getCapabilities_1_3``, ``getNumberOfCacheFilesNeeded``, ``prepareModel_1_3``,
``prepareModelFromCache_1_3``.
"""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import (
    CompiledFiles,
    DeviceFigures,
    IBackendInternal,
    ILayerSupport,
    IMemoryManager,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    OptimizationViews,
    PerformanceFigures,
    PreparationRequest,
    WorkloadInfo,
)
from armpy.errors import BackendCapabilityError
from armpy.graph import SubgraphView
from armpy.ops import PreCompiled
from armpy.ops.operation import Operation
from armpy.types import BackendId, DataType, DeviceType

from .Sample_common import Program, SampleSupport, views_of

BACKEND_ID = "SampleCaching"
FIGURES = DeviceFigures(
    tensors={DataType.FLOAT32: PerformanceFigures(exec_time=0.8, power_usage=0.6)},
    relaxed_tensor=PerformanceFigures(exec_time=0.5, power_usage=0.4),
)
"""What the device's maker has measured against CpuRef; lower is better."""


def get_backend_id() -> str:
    """First entry point."""
    return BACKEND_ID


def get_version() -> str:
    """Second entry point."""
    return "1.3"


def backend_factory() -> IBackendInternal:
    """Third entry point."""
    return CachingBackend()


class ProgramWorkload(IWorkload):
    """Runs a program on what the handles map.

    Parameters
    ----------
    program : Program
    """

    def __init__(self, program: Program) -> None:
        self._program = program

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Compute the outputs."""
        sources = [handle for handle in inputs if handle is not None]
        self._program.run(
            [handle.map(write=False) for handle in sources],
            [handle.map(read=False) for handle in outputs],
        )
        for handle in (*sources, *outputs):
            handle.unmap()


class ProgramFactory(IWorkloadFactory):
    """Makes the workloads of programs, of which alone the driver's layers consist."""

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """The workload of a layer that `CachingBackend` has made."""
        if not isinstance(operation, PreCompiled):
            raise BackendCapabilityError("layers are compiled first", where=BACKEND_ID)
        return ProgramWorkload(operation.program)


class CachingBackend(IBackendInternal):
    """Compiles every subgraph into one program.

    Attributes
    ----------
    num_compiled : int
        How often it has compiled: a program that comes from files does not count.
    """

    api_version = "1.3"

    def __init__(self) -> None:
        self.num_compiled = 0

    @property
    def backend_id(self) -> BackendId:
        """Name of the backend."""
        return BACKEND_ID

    @property
    def version(self) -> str:
        """Of the driver; what another version has written is not used."""
        return "1.0.0"

    @property
    def device_type(self) -> DeviceType:
        """As an accelerator it is asked before all others."""
        return DeviceType.ACCELERATOR

    @property
    def feature_level(self) -> int:
        """Android 10's: later operations are not for it."""
        return 29

    @property
    def number_of_cache_files(self) -> int:
        """One file of structure."""
        return 1

    @property
    def number_of_data_cache_files(self) -> int:
        """One file of constants."""
        return 1

    def get_device_figures(self) -> DeviceFigures | None:
        """What was measured once and for all; nobody needs to measure it again."""
        return FIGURES

    def get_layer_support(self) -> ILayerSupport:
        """What can be compiled."""
        return SampleSupport()

    def create_workload_factory(self, memory_manager: IMemoryManager | None) -> IWorkloadFactory:
        """Make what runs programs."""
        return ProgramFactory()

    def optimize_subgraph_for_network(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Compile; what the request says of preference and priority does not matter here."""
        self.num_compiled += 1
        return views_of(view, Program.compile(view))

    def optimize_subgraph(self, view: SubgraphView) -> OptimizationViews:
        """The same, for a core that knows nothing of requests."""
        return self.optimize_subgraph_for_network(view, PreparationRequest())

    def save_compiled(
        self, view: SubgraphView, views: OptimizationViews, request: PreparationRequest
    ) -> CompiledFiles | None:
        """Write the program down, if there is one."""
        if len(views.substitutions) != 1:
            return None
        (layer,) = views.substitutions[0].replacement.layers
        if not isinstance(layer.operation, PreCompiled):
            return None
        structure, constants = layer.operation.program.to_files()
        return CompiledFiles((structure,), (constants,))

    def load_compiled(
        self, view: SubgraphView, files: CompiledFiles, request: PreparationRequest
    ) -> OptimizationViews:
        """Read the program, and look whether it can be the subgraph's."""
        try:
            program = Program.from_files(*files.model, *files.data)
        except ValueError as error:
            raise BackendCapabilityError(str(error), where=BACKEND_ID) from error
        if (program.num_inputs, len(program.outputs)) != (len(view.inputs), len(view.outputs)):
            raise BackendCapabilityError(
                "the program is of another subgraph",
                where=BACKEND_ID,
                expected=f"{len(view.inputs)} inputs and {len(view.outputs)} outputs",
                actual=f"{program.num_inputs} and {len(program.outputs)}",
            )
        return views_of(view, program)
