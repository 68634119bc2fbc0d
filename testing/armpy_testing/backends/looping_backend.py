"""A backend that executes loops itself and stops them as badly as configured."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from armpy.backend import (
    Capabilities,
    IBackendInternal,
    ICompletion,
    ICustomAllocator,
    ILayerSupport,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    PreparationRequest,
    ReasonCode,
    Substitution,
    Support,
    WorkloadInfo,
    control_flow_time_left_s,
    loop_timeout_s,
)
from armpy.graph import SubgraphView
from armpy.ops import Comparison, ElementwiseBinary, PreCompiled, While
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo

Handles = Sequence[ITensorHandle | None]


class Endless(IWorkload):
    """A loop that counts up its input until it is released."""

    def __init__(self, backend: LoopingBackend) -> None:
        self._backend = backend
        self.limit_s = loop_timeout_s()

    def execute(self, inputs: Handles, outputs: Sequence[ITensorHandle]) -> None:
        backend = self._backend
        backend.left_s.append(control_flow_time_left_s(self.limit_s))
        if not backend.is_quick:
            backend.wait()
        (read,) = inputs
        assert read is not None
        outputs[0].map(read=False)[...] = read.map(write=False) + 1
        backend.ended.set()


class Early(Endless):
    """One that reads at its beginning, and writes before it waits and at its end."""

    def execute(self, inputs: Handles, outputs: Sequence[ITensorHandle]) -> None:
        (read,) = inputs
        assert read is not None
        result = read.map(write=False) + 1
        outputs[0].map(read=False)[...] = result
        self._backend.wait()
        outputs[0].map(read=False)[...] = result
        self._backend.ended.set()


class Queued(Endless):
    """The same in a queue."""

    def enqueue(self, inputs: Handles, outputs: Sequence[ITensorHandle]) -> ICompletion | None:
        workload = self

        class Completion(ICompletion):
            """Waits for the loop."""

            def wait(self, timeout_s: float | None = None) -> bool:
                workload.execute(inputs, outputs)
                return True

        return Completion()


class LoopingBackend(IBackendInternal, ILayerSupport, IWorkloadFactory):
    """Takes loops, with whatever they run, and nothing else."""

    def __init__(
        self,
        workload: type[Endless] = Endless,
        *,
        compiles: bool = False,
        capabilities: Capabilities | None = None,
    ) -> None:
        self._workload = workload
        self._compiles = compiles
        self._capabilities = capabilities or {}
        self.is_quick = False
        self.go, self.ended = threading.Event(), threading.Event()
        self.left_s: list[float] = []

    def get_id(self) -> str:
        return "Looping"

    def get_api_version(self) -> str:
        return "2.8"

    def wait(self) -> None:
        """What a backend does that looks at nothing."""
        self.go.wait(20)

    def get_capabilities(self) -> Capabilities:
        return self._capabilities

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        return True

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return self

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return self

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, (While, Comparison, ElementwiseBinary)):
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "loops only")

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        if not self._compiles:
            return super().optimize_subgraph_view(view, request)
        compiled = Substitution.by_operation(view, PreCompiled(object(), ((1,),)))
        return OptimizationViews(substitutions=[compiled])

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return self._workload(self)
