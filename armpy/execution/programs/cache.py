"""Program cache: the programs of one network, by the shapes of its inputs."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

from armpy.compiler import Evaluator, specialize
from armpy.compiler.specialization import call_shapes_named
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.programs.graph_split import (
    deciding_inputs,
    is_shaped,
    split_at_unknown,
    split_before_all,
    with_every_value,
)
from armpy.execution.programs.planning import Planner
from armpy.execution.programs.program import BoundProgram, ProgramKey
from armpy.execution.programs.staged_program import NetworkProgram, StagedProgram, Surround
from armpy.execution.programs.traced.trace import Traces
from armpy.execution.setup.settings import NetworkSettings
from armpy.execution.steps.control_flow import Shapes
from armpy.execution.steps.session import SessionError
from armpy.execution.steps.step import PreparationError
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.profiling import phase, profiled_by
from armpy.tensor import check_shape_fits

DEBUG = "debug"
"""First part of the key of a program in which every value is a result."""

_MOST_NUMBERS = 1 << 17
"""Numbers kept of all resized programs of control flow; each takes up about 45 bytes."""

_log = logging.getLogger("armpy.execution")


class ProgramCache:
    """A network's programs, by the shapes of its inputs; those that were used last are kept.

    `program_for` is the way to all that calls run. A program is resized from others if sizes are
    traced, else prepared by the tiers if the network compiles in the background, else made: on each
    of the backends that executions are spread over, by the original network, or by the planner.
    """

    def __init__(
        self,
        graph: Graph,  # dimensions may be unknown
        evaluator: Evaluator | None,
        settings: NetworkSettings,
        planner: Planner,  # makes programs of graphs whose shapes are known
        traces: Traces,  # for any shapes, traced from those that were made
        lock: AbstractContextManager[object],  # of a network and those that its control flow runs
        surround: Surround,  # in what every execution of the network does
        original: ProgramCache | None = None,  # of the same network under other names
    ) -> None:
        self._graph = graph
        self._evaluator = evaluator
        self._settings = settings
        self.planner = planner
        self.traces = traces
        self._lock = lock
        self._surround = surround
        self._original = original
        # What the network has, if anything: `Spread.prepared`, `Tiers.prepared`, and a function
        # that is called with each program that was prepared, to keep it on disk.
        self.spread: Callable[[Shapes], BoundProgram] | None = None
        self.tiers: Callable[[Shapes], BoundProgram] | None = None
        self.keeper: Callable[[BoundProgram], None] | None = None
        self._decisive: tuple[bool, ...] = ()  # per input, whether elements decide on shapes
        self._whole: StagedProgram | None = None  # for all shapes, where elements decide as well
        # Of one execution, the programs of all of which are kept, and as many others.
        self._num_stages = 0
        # In the order of use, as the one that was used longest ago goes first.
        self.programs: OrderedDict[ProgramKey, NetworkProgram] = OrderedDict()
        # Resized ones of control flow, as the next execution mostly has turns of the same sizes.
        self._inner: OrderedDict[Shapes, NetworkProgram] = OrderedDict()
        self.ready: dict[ProgramKey, BoundProgram] = {}  # of programs for the whole network

    def program_for(self, shapes: Shapes) -> BoundProgram:
        """The program for some input shapes, prepared if need be.

        Raises LayerValidationError if the shapes do not fit the graph; ArmpyError if no backend
        takes a layer.
        """
        # With the lock, or threads with the same shapes would do it all again.
        with self._lock:
            bound = self.ready.get(shapes)
            if bound is None and self.spread is None:
                resized = self.resized(shapes)
                bound = None if resized is None else self._surround(shapes, resized)
            if bound is None:
                with profiled_by(self._settings.profiler), phase("prepare"):
                    bound = self.made(shapes) if self.tiers is None else self.tiers(shapes)
                # A program that runs only until the final one is compiled is not kept.
                if self.keeper is not None and bound.maker is None:
                    self.keeper(bound)
            self.exchange(bound)
            return bound

    def made(self, shapes: Shapes) -> BoundProgram:
        """Make the program for some input shapes, whatever has to be compiled for it."""
        if self.spread is not None:
            return self.spread(shapes)
        if self._original is not None:
            return self._surround(shapes, self._original.program_for(shapes).program)
        graph = self.specialized(shapes)
        if not (self._decisive or is_shaped(graph)):
            self._decisive = deciding_inputs(graph)
            self.traces = self.traces.of_rest(self._graph, self._decisive)
        program = self._make(graph)
        self.traces.add(program)
        return self._surround(shapes, program)

    def exchange(self, bound: BoundProgram) -> None:
        """Let calls from now on run a program for its shapes, with the lock held."""
        self.ready[bound.shapes] = bound
        self.keep(bound.shapes, bound.program)

    def keep(self, key: ProgramKey, program: NetworkProgram) -> NetworkProgram:
        """Put a program at the fresh end of the cache."""
        self.programs[key] = program
        self.programs.move_to_end(key)
        while len(self.programs) > max(self._settings.program_cache_size, 2 * self._num_stages):
            oldest, _ = self.programs.popitem(last=False)
            # Keys of rests and of debugging have nothing there.
            self.ready.pop(oldest, None)
        return program

    def forget(self) -> None:
        """Make programs anew when they are needed next."""
        self.programs.clear()
        self._inner.clear()
        self._whole = None
        self._num_stages = 0
        self.traces.forget()
        self.ready.clear()

    def free_idle(self, latest: BoundProgram | None) -> None:
        """Give back idle working memory, also of the latest program if it is not kept here."""
        programs = [
            *self.programs.values(),
            *self._inner.values(),
            *([] if latest is None else [latest.program]),
        ]
        for program in dict.fromkeys(programs):
            program.free_idle()
        for prepared in self.ready.values():
            for importing in prepared.importing.values():
                importing.program.free_idle()

    def resized(self, shapes: Shapes) -> NetworkProgram | None:
        """The program for some input shapes, if it follows from the programs for others."""
        self._check_shapes(shapes)
        if not any(self._decisive):
            return self._resized(self.traces, shapes)
        if self._whole is None and self.traces.is_due:
            split = split_before_all(self._graph, self._decisive)
            head = self.planner.program(split.head.graph)
            self._whole = StagedProgram(split, head, None, partial(self._rest, self.traces, 1))
        return self._whole if self.traces.is_due else None

    def inner(self, shapes: Shapes) -> NetworkProgram | None:
        """`resized`, without what surrounds it in calls; None for programs that are ready."""
        with self._lock:
            if shapes in self.ready:
                return None
            program = self._inner.get(shapes) or self.programs.get(shapes) or self.resized(shapes)
            sizes = program.sizes if isinstance(program, CompiledProgram) else None
            if program is None or sizes is None:  # with memory of its own
                return None if program is None else self.keep(shapes, program)
            self._inner[shapes] = program
            while len(self._inner) * sizes.num_numbers > _MOST_NUMBERS:
                self._inner.popitem(last=False)
            return program

    def _resized(self, traces: Traces, shapes: Shapes) -> NetworkProgram | None:
        """The program for some shapes, if it follows from the programs for others."""
        try:
            return traces.program(shapes, self.planner)
        except (PreparationError, SessionError) as error:
            _log.info("the program for %s is made from the network: %s", shapes, error)
            return None

    def debugged(self, key: ProgramKey) -> NetworkProgram:
        """The program in which every value is a result; its key is `DEBUG`, and the shapes."""
        program = self.programs.get(key)
        if program is None:
            program = self._make(with_every_value(self.specialized(key[1])))  # type: ignore[arg-type]
        return self.keep(key, program)

    def specialized(self, shapes: Sequence[tuple[int, ...]]) -> Graph:
        """The graph for some input shapes.

        Raises LayerValidationError if the shapes do not fit the graph.
        """
        self._check_shapes(shapes)
        if self._graph.is_fully_shaped:
            return self._graph
        with call_shapes_named(self._graph, shapes):
            return specialize(self._graph, shapes, (), self._evaluator)

    def _check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Check some input shapes against the graph's."""
        for value, shape in zip(self._graph.inputs, shapes, strict=True):
            check_shape_fits(value.name, value.info.shape, shape)

    def _make(self, graph: Graph, stage: int = 1) -> NetworkProgram:
        """Prepare a specialised graph, whose rest is the given stage if there is one."""
        if is_shaped(graph):
            return self.planner.program(graph)
        split = split_at_unknown(graph)
        dynamic = (
            None if split.dynamic is None else self.planner.dynamic_layers(split.dynamic.graph)
        )
        head = self.planner.program(split.head.graph)
        rest = graph if split.rest is None else split.rest.graph
        traces = self.traces.of_rest(rest, split.decisive)
        return StagedProgram(split, head, dynamic, partial(self._rest, traces, stage))

    def _rest(
        self,
        traces: Traces,
        stage: int,
        key: ProgramKey,
        graph: Graph,
        shapes: Sequence[tuple[int, ...]],
        values: Sequence[Array | None],
    ) -> NetworkProgram:
        """The program for the rest of a network once some values are known."""
        with self._lock:
            self._num_stages = max(self._num_stages, stage)
            program = self.programs.get(key)
            if program is None:
                program = self._rest_program(traces, stage, graph, shapes, values)
            return self.keep(key, program)

    def _rest_program(
        self,
        traces: Traces,
        stage: int,
        graph: Graph,
        shapes: Sequence[tuple[int, ...]],
        values: Sequence[Array | None],
    ) -> NetworkProgram:
        """Make the program for the rest of a network."""
        fits = traces.fits(shapes)
        if fits and traces.may_cut:
            traces.cut(tuple(shapes), values)
        if fits and traces.parts is not None:
            split, head, rest = traces.parts
            first = self._rest_program(head, stage, split.head.graph, shapes, values)
            return StagedProgram(split, first, None, partial(self._rest, rest, stage + 1))
        numbers = [tuple(value.ravel().tolist()) for value in values if value is not None]
        program: NetworkProgram | None = None
        if fits and (program := self._resized(traces, (*shapes, *numbers))) is not None:
            return program
        # The program keeps the values, and the caller may be handed the same arrays.
        copies = [None if value is None else value.copy() for value in values]
        with profiled_by(self._settings.profiler), phase("prepare"):
            program = self._make(specialize(graph, shapes, copies, self._evaluator), stage + 1)
            traces.add(program)
            if isinstance(program, StagedProgram) and traces.is_due:
                traces.cut(tuple(shapes), copies)
        return program
