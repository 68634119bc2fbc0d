"""Imported tensors: a program's steps are given their handles instead of the caller's arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np

from armpy.backend import Cancellation, ITensorHandle
from armpy.compiler.imported import ImportedNetwork
from armpy.core.dataclass import dataclass
from armpy.execution.arrays.imported_tensor import ImportedTensor
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.programs.memory import StepMemory
from armpy.execution.steps.control_flow import Targets
from armpy.ops.operation import Array

_NOTHING: Array = np.empty(0, np.uint8)


@dataclass(frozen=True, eq=False, slots=True)
class _Place:
    """A handle's place among those of a step."""

    handles: list[ITensorHandle] | list[ITensorHandle | None]
    index: int

    def put(self, handle: ITensorHandle) -> None:
        """Put a handle there."""
        self.handles[self.index] = handle


class ImportBinding:
    """Binding of imported tensors' own handles to the steps of a program.

    Sources and results are those of the program that the network was made from: `ImportedTensor`
    objects stand in the place of arrays for imported memory.
    """

    def __init__(
        self,
        program: CompiledProgram,  # made of an `ImportedNetwork`
    ) -> None:
        assert isinstance(program.network, ImportedNetwork)
        self._program = program
        self._importers = program.network.importers
        self._targets = program.network.targets
        # Weak, as places lie in a memory's own lists and go with it.
        self._places: weakref.WeakKeyDictionary[StepMemory, dict[int, list[_Place]]] = (
            weakref.WeakKeyDictionary()
        )

    def run(
        self,
        sources: Sequence[Array | ImportedTensor],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once as `CompiledProgram.run`."""
        nothing: list[Array | None] = [None] * len(self._program.result_infos)
        targets: Targets = nothing if results is None else results
        # A tensor that is closed meanwhile is given back when this has ended.
        with self._in_use(sources, targets):
            memory = self._program.take_memory()
            places = self._put(memory, sources, targets)
            try:
                # None where handles stand for results.
                results = [_NOTHING if isinstance(x, ImportedTensor) else x for x in targets]
                arrays = memory.run(self._arrays(sources), results, cancellation)
            except BaseException:  # it is not used again, as in `StepProgram.run`
                memory.free()
                raise
            for handle, place in places:  # dropping a tensor frees it
                place.put(handle)
            self._program.put_back(memory)
        pairs = zip(targets, arrays, strict=True)
        return [result if isinstance(result, ImportedTensor) else array for result, array in pairs]

    def bind(
        self, sources: Sequence[Array | ImportedTensor], results: Sequence[Array | ImportedTensor]
    ) -> Callable[[], None]:
        """Prepare many executions as `CompiledProgram.bind`; each fails once a tensor is closed."""
        with self._in_use(sources, results):
            # Not put back: from now on the steps in it have these tensors' handles.
            memory = self._program.take_memory()
            self._put(memory, sources, results)
            arrays: list[Array] = [
                _NOTHING if isinstance(result, ImportedTensor) else result for result in results
            ]
            source_arrays = self._arrays(sources)
            execute = self._program.bind_in(memory, source_arrays, arrays)

        def execute_imported() -> None:
            with self._in_use(sources, results):
                execute()

        return execute_imported

    def _in_use(self, *tensors: Sequence[object]) -> ExitStack:
        """Keep imported tensors from being closed."""
        with ExitStack() as stack:
            for some in tensors:
                for tensor in some:
                    if isinstance(tensor, ImportedTensor):
                        stack.enter_context(tensor.in_use())
            return stack.pop_all()

    def _arrays(self, sources: Sequence[Array | ImportedTensor]) -> list[Array]:
        """Return the arrays of the graph's sources: none where handles stand for them."""
        arrays: list[Array] = []
        for index, source in enumerate(sources):
            if isinstance(source, ImportedTensor):
                # An input is a source for each backend that has imported it.
                arrays += [_NOTHING] * len(self._importers[index] or ())
            else:
                arrays.append(source)
        return arrays

    def _put(
        self,
        memory: StepMemory,
        sources: Sequence[Array | ImportedTensor],
        results: Sequence[Array | ImportedTensor | None],
    ) -> list[tuple[ITensorHandle, _Place]]:
        """Put the tensors' handles in place; return the previous ones."""
        places = self._places.get(memory)
        if places is None:
            places = self._places[memory] = _places_of(memory)
        number = 0
        before: list[tuple[ITensorHandle, _Place]] = []
        wanted: list[tuple[ITensorHandle, ITensorHandle]] = []
        for index, source in enumerate(sources):
            if not isinstance(source, ImportedTensor):
                number += 1
                continue
            for backend_id in self._importers[index] or ():
                wanted.append((memory.sources[number], source.handle(backend_id)))
                number += 1
        for index, result in enumerate(results):
            if isinstance(result, ImportedTensor):
                backend_id = self._targets[index] or ""
                wanted.append((memory.results[index], result.handle(backend_id)))
        for holder, handle in wanted:
            for place in places.get(id(holder), ()):
                before.append((holder, place))
                place.put(handle)
        return before


def _places_of(memory: StepMemory) -> dict[int, list[_Place]]:
    """Return where steps are given the handles of a memory's sources and results, by their ids."""
    bound = {id(handle) for handle in (*memory.sources, *memory.results)}
    places: dict[int, list[_Place]] = {}
    for _, ins, outs in memory.steps:
        for handles in (ins, outs):
            for index, handle in enumerate(handles):
                if id(handle) in bound:
                    places.setdefault(id(handle), []).append(_Place(handles, index))
    return places
