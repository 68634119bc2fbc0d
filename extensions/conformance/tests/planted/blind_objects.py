"""Wrong behaviour of the optional parts of the contract, invented without a look at the kit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from armpy.backend import (
    ExternalMemory,
    HostTensorHandle,
    IBackendContext,
    ICustomAllocator,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkload,
    MemorySource,
    NetworkResources,
    OptimizationViews,
    PreparationRequest,
)
from armpy.graph import SubgraphView
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import (
    FakeHandleFactory,
    FunctionWorkload,
    Handles,
    Outputs,
    Step,
)

from .faults import Fault, Fused, Plain, Planted, spoil_tensor


class SharedContext(Plain):
    """One context of the device for all runtimes, which the first runtime closes."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False
        self.fault = NeedsContext(self)

    def create_backend_context(self, options: Mapping[str, object]) -> IBackendContext | None:
        self.is_closed = False
        return Closes(self)


class Closes(IBackendContext):
    """Closes the device's context with its runtime."""

    def __init__(self, backend: SharedContext) -> None:
        self._backend = backend

    def close(self) -> None:
        self._backend.is_closed = True


class NeedsContext(Fault):
    """Layers need the device's context."""

    def __init__(self, backend: SharedContext) -> None:
        self._backend = backend

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        if self._backend.is_closed:
            raise RuntimeError("the context is lost")
        step.right.execute(inputs, outputs)


class DirtyAfterError(Fault):
    """After an execution that failed the next one of the same layer is wrong."""

    def wrap(self, step: Step) -> IWorkload:
        state = {"dirty": False}

        def execute(inputs: Handles, outputs: Outputs) -> None:
            was_dirty, state["dirty"] = state["dirty"], False
            try:
                step.right.execute(inputs, outputs)
            except Exception:
                state["dirty"] = True
                raise
            if was_dirty:
                spoil_tensor(outputs[0])

        return FunctionWorkload(execute)


class EveryNth(Fault):
    """One of many executions of a layer is wrong: a counter begins anew."""

    def __init__(self, number: int) -> None:
        self._number = number

    def wrap(self, step: Step) -> IWorkload:
        executions = count(1)

        def execute(inputs: Handles, outputs: Outputs) -> None:
            step.right.execute(inputs, outputs)
            if next(executions) % self._number == 0:
                spoil_tensor(outputs[0])

        return FunctionWorkload(execute)


class Idle(IWorkload):
    """Loses its weights with its idle memory."""

    def __init__(self, right: IWorkload) -> None:
        self._right = right
        self._is_freed = False

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._right.execute(inputs, outputs)
        if self._is_freed:
            spoil_tensor(outputs[0])

    def free_idle_memory(self) -> None:
        self._is_freed = True


class LosesWeights(Fault):
    """Layers are lost with their idle memory."""

    def wrap(self, step: Step) -> IWorkload:
        return Idle(step.right)


class BoundEarly(IWorkload):
    """Bound executions give the results of the first one."""

    def __init__(self, right: IWorkload) -> None:
        self._right = right

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._right.execute(inputs, outputs)

    def bind(self, inputs: Handles, outputs: Outputs) -> Callable[[], object]:
        bound = self._right.bind(inputs, outputs)
        first: list[Array] = []

        def run() -> None:
            if first:
                for handle, array in zip(outputs, first, strict=True):
                    handle.copy_in_from(array)
                return
            bound()
            for handle in outputs:
                first.append(np.array(handle.map(write=False)))
                handle.unmap()

        return run


class Binds(Fault):
    """What is bound is computed once."""

    def wrap(self, step: Step) -> IWorkload:
        return BoundEarly(step.right)


class FirstArray(IWorkload):
    """On plain arrays only the first output is written."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._step.right.execute(inputs, outputs)

    def for_arrays(self) -> Callable[[Sequence[Array]], object] | None:
        infos = [info for info in self._step.info.inputs if info is not None]
        results = self._step.info.outputs
        if len(infos) != len(self._step.info.inputs):
            return None

        def run(arrays: Sequence[Array]) -> None:
            inputs = [HostTensorHandle(i, a) for i, a in zip(infos, arrays, strict=False)]
            outputs = [
                HostTensorHandle(info, array if number == 0 else np.empty_like(array))
                for number, (info, array) in enumerate(
                    zip(results, arrays[len(infos) :], strict=True)
                )
            ]
            self._step.right.execute(inputs, outputs)

        return run


class WritesFirst(Fault):
    """Layers with functions for arrays."""

    def wrap(self, step: Step) -> IWorkload:
        return FirstArray(step)


class IgnoresAllocator(Fused):
    """Says that its own memory comes from the application's allocator."""

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        return True


class FromStart(FakeHandleFactory):
    """Imports files from their beginning."""

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        if memory.source is MemorySource.SHARED_MEMORY:
            memory = replace(memory, offset_bytes=0)
        return super().import_memory(info, memory, read=read, write=write)


class ImportsFromStart(Plain):
    """Ignores where a tensor begins in a file."""

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return FromStart({})


class CompilesOneAtATime(Fused):
    """Compilations of two threads take each other's subgraph, which is kept in one place."""

    def __init__(self) -> None:
        super().__init__()
        self._view: SubgraphView | None = None

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        self._view = view
        threading.Event().wait(0.002)  # others come meanwhile
        current = self._view
        assert current is not None
        return super().optimize_subgraph_view(current, request)


BLIND_OBJECT_FAULTS: dict[str, Planted] = {
    "blind-object/context": Planted("contract/process/settings", SharedContext),
    "blind-object/dirty": Planted("contract/executions/failures", lambda: Plain(DirtyAfterError())),
    "blind-object/256th": Planted(
        "contract/lifecycle/executions-go", lambda: Plain(EveryNth(256)), soak=300
    ),
    "blind-object/idle": Planted("contract/arenas/idle", lambda: Plain(LosesWeights())),
    "blind-object/bound": Planted(
        "contract/executions/bound-executions-are", lambda: Plain(Binds())
    ),
    "blind-object/first-array": Planted("contract/contents/", lambda: Plain(WritesFirst())),
    "blind-object/allocator": Planted("contract/runtimes/", IgnoresAllocator),
    "blind-object/offset": Planted("contract/imports/", ImportsFromStart),
    "blind-object/compiles": Planted("contract/threads/threads-load", CompilesOneAtATime),
}
"""By class and name."""
