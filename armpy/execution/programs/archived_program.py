"""Program of a compiled file: nothing of it has to be planned or compiled any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from armpy.backend.memory.memory import ALIGNMENT_BYTES, DefaultAllocator
from armpy.backend.memory.tensor_handle import HostTensorHandle
from armpy.errors import ArmpyError, BackendError
from armpy.execution.memory.arena_pool import arena_pool
from armpy.execution.programs.program import StepMemory, StepProgram

if TYPE_CHECKING:  # what is imported here is paid for at every start of a prepared model
    from armpy.backend import Cancellation, ITensorHandle, IWorkload
    from armpy.ops.operation import Array
    from armpy.tensor import TensorInfo
    from armpy.types import BackendId


class ArchivedTensor(NamedTuple):
    """A tensor between two steps, and where it lies in their memory."""

    info: TensorInfo
    offset_bytes: int


class ArchivedStep(NamedTuple):
    """A layer with its workload."""

    backend_id: BackendId
    layer: str  # the layer's name
    workload: IWorkload
    # Numbers of tensors: sources first, then results, then those in between.
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class ArchivedMemory(StepMemory):
    """Memory of one execution of an archived program."""

    def __init__(self, program: ArchivedProgram) -> None:
        super().__init__(program.sources, program.results)
        self._made_of = program.steps
        handles: list[ITensorHandle] = [*self.sources, *self.results]
        if program.tensors:
            size_bytes = program.arena_bytes
            # The source that ordinary networks name, too, so that both have arenas in turn.
            about = program.steps[0].backend_id, DefaultAllocator, size_bytes, ALIGNMENT_BYTES
            memory = arena_pool.take(self, *about, lambda: _allocate(size_bytes))
        for tensor in program.tensors:
            info, begin = tensor.info, tensor.offset_bytes
            elements = memory[begin : begin + info.size_bytes].view(info.data_type.dtype)
            handles.append(HostTensorHandle(info, elements.reshape(info.known_shape)))
        for step in program.steps:
            ins: list[ITensorHandle | None] = [handles[number] for number in step.inputs]
            outs = [handles[number] for number in step.outputs]
            self.steps.append((step.workload.execute, ins, outs))

    def free(self) -> None:
        """Give the memory back with the last reference."""
        self.steps = []
        arena_pool.leave(self)

    def _run_watched(self, cancellation: Cancellation | None) -> None:
        """Execute the steps one after the other, unless they are stopped."""
        number = 0
        try:
            for execute, ins, outs in self.steps:
                if cancellation is not None:
                    cancellation.check()
                execute(ins, outs)
                number += 1
        except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
            self._raise(number, error)

    def _raise(self, step: int, error: BaseException) -> NoReturn:
        """Raise what a step raised, as `armpy.execution.steps.step.raise_for_step` does."""
        from armpy.execution.error_attribution import blamed  # noqa: PLC0415 - as above
        from armpy.plugins.proxy.guarded_call import describe, let_user_interrupt, named_error  # noqa: PLC0415 - nothing goes wrong as a rule

        let_user_interrupt(error)
        failed = self._made_of[min(step, len(self._made_of) - 1)]
        where = f"{failed.backend_id} / PreCompiled '{failed.layer}'"
        if isinstance(error, ArmpyError):
            raise blamed(failed.backend_id, named_error(where, error)) from error.__cause__
        failure = BackendError(f"the workload raised {describe(error)}", where=where)
        raise blamed(failed.backend_id, failure) from error


class ArchivedProgram(StepProgram[ArchivedMemory]):
    """Steps of a compiled file and the plan of their memory."""

    def __init__(
        self,
        sources: Sequence[TensorInfo],
        results: Sequence[TensorInfo],
        tensors: Sequence[ArchivedTensor],
        arena_bytes: int,
        steps: Sequence[ArchivedStep],
    ) -> None:
        super().__init__()
        self.sources = sources  # of the inputs and outputs, fully shaped
        self.results = results
        self.tensors = tensors  # between steps
        self.arena_bytes = arena_bytes  # what these take
        self.steps = steps

    def new_memory(self) -> ArchivedMemory:
        """Make what one execution at a time needs."""
        return ArchivedMemory(self)

    def free_workloads(self) -> None:
        """Let workloads give back what they keep between executions."""
        for step in self.steps:
            step.workload.free_idle_memory()

    def uses(self, backend_id: BackendId) -> bool:
        """Whether a backend has memory of it: the core cannot tell."""
        return True


def _allocate(size_bytes: int) -> tuple[Array, Callable[[], object]]:
    """Memory of the process; nothing has to be done to give it back."""
    return DefaultAllocator().allocate(size_bytes), lambda: None
