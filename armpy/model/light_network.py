"""Archived network: a compiled file's programs, which run without what compiles networks.

It stands in for a `LoadedNetwork` because loading one takes seven times as long as starting the
programs alone; see docs/decisions/0123-a-light-model-is-not-another-runtime.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from operator import index
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from armpy.backend.memory.memory import ALIGNMENT_BYTES, DefaultAllocator
from armpy.backend.memory.tensor_handle import HostTensorHandle
from armpy.errors import ArmpyError
from armpy.execution.arrays.slots import InputSlot, OutputSlot
from armpy.execution.memory.arena_pool import arena_pool
from armpy.execution.programs.memory import StepMemory
from armpy.execution.programs.program import BoundProgram, StepProgram
from armpy.tensor import format_shape

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.backend import Cancellation, ITensorHandle, IWorkload
    from armpy.compiler import Placement
    from armpy.execution.arrays.tensor_spec import TensorSpec
    from armpy.execution.calls.invocation import Invocation
    from armpy.execution.loaded_network import LoadedNetwork
    from armpy.execution.steps.control_flow import Shapes
    from armpy.execution.steps.step import Execute
    from armpy.ops.operation import Array
    from armpy.tensor import TensorInfo
    from armpy.types import BackendId

MOST_SHAPES = 8
"""Number of shapes kept prepared; the default of `RuntimeOptions.program_cache_size`."""


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

    def free_idle(self) -> None:
        """Let the workload release memory that it keeps between executions."""
        self.workload.free_idle_memory()


class ArchivedSteps(NamedTuple):
    """Steps of a compiled file and where their tensors lie in memory."""

    sources: Sequence[TensorInfo]  # of the inputs and outputs, fully shaped
    results: Sequence[TensorInfo]
    tensors: Sequence[ArchivedTensor]  # between steps
    arena_bytes: int  # what these take
    steps: Sequence[ArchivedStep]

    def program(self) -> StepProgram:
        """The program that executes them."""
        return StepProgram(self, self.steps, tuple(self.sources), tuple(self.results))

    def uses(self, backend_id: BackendId) -> bool:
        """Return whether a backend may have memory of it; true, as the core does not know."""
        return True

    def new_memory(self) -> StepMemory:
        """Make what one execution at a time needs."""
        memory = StepMemory(self.sources, self.results, self._raise_for, self._watch)
        handles: list[ITensorHandle] = [*memory.sources, *memory.results]
        if self.tensors:

            def allocate() -> tuple[Array, Callable[[], object]]:
                # Nothing has to be done to give it back.
                return DefaultAllocator().allocate(self.arena_bytes), lambda: None

            # The source that ordinary networks name, too, so that both have arenas in turn.
            backend_id, source = self.steps[0].backend_id, DefaultAllocator
            arena = arena_pool.take(
                memory, backend_id, source, self.arena_bytes, ALIGNMENT_BYTES, allocate
            )
        for tensor in self.tensors:
            info, begin = tensor.info, tensor.offset_bytes
            elements = arena[begin : begin + info.size_bytes].view(info.data_type.dtype)
            handles.append(HostTensorHandle(info, elements.reshape(info.known_shape)))
        steps: list[tuple[Execute, list[ITensorHandle | None], list[ITensorHandle]]] = []
        for step in self.steps:
            ins: list[ITensorHandle | None] = [handles[number] for number in step.inputs]
            outs = [handles[number] for number in step.outputs]
            steps.append((step.workload.execute, ins, outs))
        memory.fill(steps, [step.workload.for_arrays() for step in self.steps])
        return memory

    def _watch(
        self, calls: Sequence[Callable[[], object]]
    ) -> Callable[[Cancellation | None], None]:
        """Return a function that makes the calls of all steps, unless it is stopped."""

        def run(cancellation: Cancellation | None) -> None:
            number = 0
            try:
                for call in calls:
                    if cancellation is not None:
                        cancellation.check()
                    call()
                    number += 1
            except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
                self._raise_for(number, error)

        return run

    def _raise_for(self, step: int, error: BaseException) -> NoReturn:
        """Raise what a step raised, as `armpy.execution.steps.step.raise_for_step` does."""
        from armpy.plugins.proxy.error_attribution import blamed  # noqa: PLC0415 - as above

        # Nothing goes wrong as a rule.
        from armpy.plugins.proxy.guarded_call import (  # noqa: PLC0415
            let_user_interrupt,
            named_error,
            workload_error,
        )

        let_user_interrupt(error)
        failed = self.steps[min(step, len(self.steps) - 1)]
        where = f"{failed.backend_id} / PreCompiled '{failed.layer}'"
        if isinstance(error, ArmpyError):
            raise blamed(failed.backend_id, named_error(where, error)) from error.__cause__
        failure = workload_error(failed.backend_id, where, error)
        raise blamed(failed.backend_id, failure) from error


class ArchivedGraph(NamedTuple):
    """Graph of an archived network, as far as calls ask for it."""

    # `inputs` and `outputs`: dimensions may be unknown.
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    # Of the inputs: the prepared ones, or those of the model's file.
    default_shapes: tuple[tuple[int, ...] | None, ...]

    @property
    def output_names(self) -> tuple[str, ...]:
        """Those of the outputs."""
        return tuple([value.name for value in self.outputs])

    @property
    def described_outputs(self) -> tuple[TensorInfo, ...]:
        """Infos of the outputs; see `armpy.graph.Graph.described_outputs`."""
        return tuple([value.info for value in self.outputs])


class ArchivedNetwork:
    """Network of `armpy.Model` as long as it only runs with shapes whose programs are archived.

    It has what `armpy.execution.calls.run` asks of a `LoadedNetwork`.
    """

    # Makes the loaded network that can do everything, once, in place of this one.
    load_whole: Callable[[], LoadedNetwork]

    def __init__(
        self,
        graph: ArchivedGraph,
        first: StepProgram | None,  # prepared at once
        memory_limit_bytes: int,
        read_placement: Callable[[StepProgram], Placement],
        find: Callable[[Shapes], StepProgram | None] | None = None,
    ) -> None:
        self.graph = graph
        self.memory_limit_bytes = memory_limit_bytes  # the most that a converted input may take
        self._read_placement = read_placement  # returns the placement report of a program
        self._find = find  # finds the program for other shapes; gives None where there is none
        # In the order of use; `_lock` keeps two threads from reading the same programs.
        self._prepared: OrderedDict[Shapes, BoundProgram] = OrderedDict()
        self._lock = RLock()  # a signal handler may call the model on the same thread
        self.latest = None if first is None else self._keep(first)
        if self.latest is None:
            self.inputs = self._slots([None] * len(graph.inputs))
        else:
            self.inputs = self.latest.inputs

    def _slots(self, shapes: Sequence[tuple[int, ...] | None]) -> tuple[InputSlot, ...]:
        """Return the slot of each input."""
        pairs = zip(self.graph.inputs, shapes, strict=True)
        limit_bytes = self.memory_limit_bytes
        return tuple([InputSlot(v.name, v.info, shape, limit_bytes) for v, shape in pairs])

    def _keep(self, program: StepProgram) -> BoundProgram:
        """Make a program ready for calls."""
        named = zip(self.graph.outputs, program.result_infos, strict=True)
        outputs = tuple([OutputSlot(value.name, info) for value, info in named])
        shapes = shapes_of(program)
        inputs = self._slots(shapes)
        bound = BoundProgram(shapes, program, program.run, _bind, True, inputs, outputs)
        self._prepared[shapes] = bound
        if len(self._prepared) > MOST_SHAPES:
            self._prepared.popitem(last=False)
        return bound

    def invoke(self, asked: Invocation) -> dict[str, Array]:
        """Execute once; as of `LoadedNetwork`, which is loaded for what takes more than arrays."""
        return asked.run(self) if asked.is_plain else self.load_whole().invoke(asked)

    def prepared_for(
        self, inputs: Sequence[Array], targets: Sequence[Array | None] = ()
    ) -> BoundProgram:
        """The network prepared for the shapes of some inputs; as of `LoadedNetwork`."""
        shapes = tuple([array.shape for array in inputs])
        latest = self.latest
        if latest is not None and latest.shapes == shapes:
            return latest
        with self._lock:
            prepared = self._found(shapes)
        if prepared is None:
            return self.load_whole().prepared_for(inputs, targets)
        self.latest = prepared
        return prepared

    def warm_up(self, several: Sequence[Mapping[str, Sequence[int]] | None]) -> bool:
        """Run once with zeros of each of some shapes, named as for `choose`; whether it could."""
        if len(several) > MOST_SHAPES:
            return False
        for named in several:
            prepared = self.choose(named or {})
            if prepared is None:
                return False
            pairs = zip(self.graph.inputs, prepared.shapes, strict=True)
            prepared.run([value.info.data_type.zeros(shape) for value, shape in pairs])
        return True

    def choose(
        self,
        # Those that differ from the default, by the inputs' names.
        named: Mapping[str, Sequence[int]],
    ) -> BoundProgram | None:
        """Prepare for some shapes, if reading archived programs is enough for it.

        Returns None if it takes more; the whole network says what is wrong with shapes that cannot
        be.
        """
        chosen = {
            value.name: value.info.shape if value.info.is_fully_shaped else default
            for value, default in zip(self.graph.inputs, self.graph.default_shapes, strict=True)
        }
        if not isinstance(named, Mapping) or not named.keys() <= chosen.keys():
            return None
        try:
            every = [tuple(map(index, shape)) for shape in {**chosen, **named}.values()]  # type: ignore[arg-type]  # None is not a shape
        except TypeError:
            return None
        shapes = tuple(every)
        with self._lock:
            prepared = self._found(shapes)
        self.latest = prepared or self.latest
        return prepared

    def _found(self, shapes: Shapes) -> BoundProgram | None:
        """Return the program prepared or archived for some shapes; None if there is neither."""
        prepared = self._prepared.get(shapes)
        if prepared is not None:
            self._prepared.move_to_end(shapes)
            return prepared
        archived = None if self._find is None else self._find(shapes)
        return None if archived is None else self._keep(archived)

    @property
    def placement(self) -> Placement | None:
        """The placement report of the latest program; None before the first one."""
        latest = self.latest
        return None if latest is None else self._read_placement(latest.program)

    @property
    def imported(self) -> tuple[()]:
        """Imported tensors: the whole network makes them."""
        return ()

    def describe_shapes(self) -> str:
        """Names and shapes of the inputs, for messages."""
        return ", ".join(f"{v.name} {format_shape(v.info.shape)}" for v in self.graph.inputs)


def shapes_of(program: StepProgram) -> Shapes:
    """The input shapes that an archived program is for; it has no variables."""
    return tuple([info.known_shape for info in program.source_infos])


def _bind(*_: object) -> Callable[[], None]:
    """Nothing is bound here: `armpy.Model.bind` loads the whole network first."""
    raise NotImplementedError
