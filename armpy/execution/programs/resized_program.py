"""Programs for other sizes of one that is prepared, in the working memory of which they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from armpy.backend import WorkloadInfo
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.steps.step import prepared_step

if TYPE_CHECKING:
    from armpy.backend import Cancellation
    from armpy.compiler import OptimizedNetwork
    from armpy.execution.programs.working_memory import WorkingMemory
    from armpy.execution.steps.control_flow import Targets
    from armpy.ops.backend_internal import PreCompiled
    from armpy.ops.operation import Array
    from armpy.tensor import TensorInfo

    SizedLayer: TypeAlias = tuple[
        PreCompiled, tuple[TensorInfo | None, ...], tuple[TensorInfo, ...]
    ]
    """A layer's program, inputs and outputs for some sizes."""


class Resized(NamedTuple):
    """Network for some sizes, with all that follows from them."""

    network: OptimizedNetwork  # whose graph is made when it is asked for
    layers: Sequence[SizedLayer]
    sources: tuple[TensorInfo, ...]
    results: tuple[TensorInfo, ...]


class ResizedProgram(CompiledProgram):
    """Program for other sizes of one that is prepared.

    Parameters
    ----------
    original : CompiledProgram
        Of the same layers, all of which read sources and constants, and write results. Its working
        memory is used by all programs for other sizes in turn, each of which resizes it.
    resized : Resized
    """

    def __init__(self, original: CompiledProgram, resized: Resized) -> None:
        vars(self).update(vars(original))
        self.original = original
        self.network = resized.network
        self.result_infos = resized.results
        self._sized = (*resized.sources, *resized.results)
        self._steps = []
        known = original.network.graph.layers
        for layer, step, sized in zip(known, original._steps, resized.layers, strict=True):
            operation, inputs, outputs = sized
            if operation is layer.operation:
                self._steps.append(step)
                continue
            data = tuple([None if value is None else value.data for value in layer.inputs])
            session = self._sessions[self.network.backend_ids[layer.id]]
            info = WorkloadInfo(layer.name, inputs, outputs, data)
            self._steps.append(
                prepared_step(session.backend_id, session.workloads, operation, info)
            )

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once, as `StepProgram.run` does."""
        try:
            memory = self._idle.pop()
        except IndexError:
            memory = super().take_memory()
        try:
            if memory.prepared is not self._steps:
                memory.resize(self.network, self._steps, self._sized)
            outputs = memory.run(sources, results, cancellation)
        except BaseException:  # as there
            memory.free()
            raise
        self._idle.append(memory)
        return outputs

    def take_memory(self) -> WorkingMemory:
        """Memory of this caller alone, for these sizes."""
        memory = super().take_memory()
        memory.resize(self.network, self._steps, self._sized)
        return memory

    def _made(self) -> WorkingMemory:
        """New memory, which is the original's: that one lives as long as programs are resized."""
        return self.original._made()
