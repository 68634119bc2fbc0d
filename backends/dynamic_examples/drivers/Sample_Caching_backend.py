"""A driver that compiles, declares its device's speed, and stores compiled parts.

References
----------
NNAPI ``IDevice``: ``getCapabilities_1_3``, ``getNumberOfCacheFilesNeeded``, ``prepareModel_1_3``,
``prepareModelFromCache_1_3``.
"""

from __future__ import annotations

from collections.abc import Sequence

from armpy.backend import (
    DeviceFigures,
    DeviceInfo,
    IBackendInternal,
    ILayerSupport,
    IPrograms,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
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

from .Sample_common import Program, SamplePrograms, SampleSupport, views_of

BACKEND_ID = "SampleCaching"
FIGURES = DeviceFigures(
    tensors={DataType.FLOAT32: PerformanceFigures(exec_time=0.8, power_usage=0.6)},
    relaxed_tensor=PerformanceFigures(exec_time=0.5, power_usage=0.4),
)
"""The maker's measurements against CpuRef; lower is better."""


def get_backend_id() -> str:
    """First entry point."""
    return BACKEND_ID


def get_version() -> str:
    """Second entry point."""
    return "2.0"


def backend_factory() -> IBackendInternal:
    """Third entry point."""
    return CachingBackend()


class ProgramWorkload(IWorkload):
    """Runs a program on the mapped handles."""

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

    def __init__(self) -> None:
        self.num_compiled = 0

    def get_id(self) -> BackendId:
        """Name of the backend."""
        return BACKEND_ID

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.0"

    @property
    def version(self) -> str:
        """Of the driver; what another version has written is not used."""
        return "1.0.0"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """An accelerator, asked first; operations later than Android 10's are not for it."""
        return (DeviceInfo("", DeviceType.ACCELERATOR, feature_level=29, figures=FIGURES),)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """What can be compiled."""
        return SampleSupport()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make what runs programs."""
        return ProgramFactory()

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Compile; the request's preference and priority do not matter here."""
        self.num_compiled += 1
        return views_of(view, Program.compile(view))

    def get_programs(self) -> IPrograms:
        """Keep programs: the core asks for it where it has compiled models and caches."""
        return SamplePrograms()
