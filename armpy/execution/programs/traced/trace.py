"""Traces: programs for new shapes, made without specialising or compiling anew.

Notes
-----
A traced program is made by preparing the network once with symbolic sizes
(`armpy.core.symbolic`). It is valid for every shape that satisfies the conditions recorded then;
for those only numbers are filled in. Other shapes are traced anew.

Elements of inputs that decide on shapes are traced as well: those of each such input, as a tuple,
follow the shapes of all inputs.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from armpy.backend import Capability, has_matching_capability
from armpy.backend.control_flow import for_one_turn
from armpy.compiler import Evaluator, OptimizerOptions, optimize_graph, specialize
from armpy.compiler.optimize import simplified
from armpy.core.symbolic import SymbolicTrace, elements_of
from armpy.errors import ArmpyError
from armpy.execution.programs import traced
from armpy.execution.programs.compiled_program import CompiledProgram, SizedNetwork
from armpy.execution.programs.graph_split import Split, is_shaped
from armpy.execution.programs.memory_limits import check_layers
from armpy.execution.steps.control_flow import Shapes
from armpy.graph import SIZE_TYPES, Graph, Value
from armpy.ops.backend_internal import PreCompiled
from armpy.ops.operation import Array
from armpy.plugins.proxy.guard import BackendProxy
from armpy.profiling import phase, profiled_by
from armpy.tensor import shapes_agree

if TYPE_CHECKING:
    from armpy.execution.programs.planning import Planner
    from armpy.execution.programs.staged_program import NetworkProgram
    from armpy.execution.programs.traced.template import TracedProgram
    from armpy.execution.setup.settings import NetworkSettings

MOST_TRACED, _MOST_LAYERS = 16, 2048
"""Kept for one network, or of how many layers; the one that was used longest ago goes first."""

ORDINARY_PROGRAMS = 2
"""Made before sizes are traced: what backends compile for so many shapes is kept on disk, where
they keep anything, and found there by the next process."""

ENOUGH_TRACES = 12
"""After which more are made only if they have been of use as often: else they hold for single
shapes, which backends had better compile and keep on disk."""

_MOST_ELEMENTS = 16
"""Of an input whose elements are traced: shapes have fewer axes."""

_UPDATES_IN_PLACE = "UpdatesInPlace"
"""Capability to run a scatter whose input and output are one array that nothing else reads."""

_UNTRACEABLE = (
    ArmpyError,
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)
"""What code raises that takes sizes for integers, as it may."""

_log = logging.getLogger("armpy.execution")


class Traces:
    """Templates from which programs of one loaded network are made for new shapes."""

    def __init__(
        self,
        graph: Graph,  # dimensions are open
        backends: Sequence[BackendProxy],
        evaluator: Evaluator | None,
        settings: NetworkSettings,
        *,
        is_possible: bool = True,  # whether sizes may be traced at all
        decisive: Sequence[bool] = (),  # per input, whether its elements are traced
    ) -> None:
        self._graph = graph
        self._decisive = decisive
        self._may_trace = is_possible
        self._backends = backends
        self._evaluator = evaluator
        self._settings = settings
        self._traced: list[TracedProgram] = []
        # By traced program, the program that those for other sizes are resized from.
        self._originals: dict[TracedProgram, CompiledProgram] = {}
        # The network cut in two, with the templates for both, where only the first can be traced.
        self.parts: tuple[Split, Traces, Traces] | None = None
        self.may_cut = self._is_cut = False  # whether to cut it first, and whether it was tried
        # How a compiled part has broken the contract, after which no sizes are traced.
        self.error: ArmpyError | None = None
        self._num_programs = self._num_failures = self._num_traces = self._num_uses = 0
        self._least_programs = ORDINARY_PROGRAMS
        self._is_reported = False
        self._is_possible = is_possible and self._may_be_traced()

    def of_rest(self, graph: Graph, decisive: Sequence[bool]) -> Traces:
        """Templates for a part of the network that waits for elements of its inputs."""
        return Traces(
            graph,
            self._backends,
            self._evaluator,
            self._settings,
            is_possible=self._may_trace,
            decisive=decisive,
        )

    def cut(self, shapes: Shapes, values: Sequence[Array | None]) -> None:
        """Cut the network where shapes were not known for some shapes and values of inputs."""
        if self._is_cut:  # in vain
            return
        self._is_cut, self.may_cut = True, False
        cut = traced.cut.cut_graph(self._graph, self._decisive, shapes, values, self._evaluator)
        if cut is not None:
            split, rest_graph = cut
            head = self.of_rest(split.head.graph, self._decisive)
            rest = self.of_rest(rest_graph, split.decisive)
            head.trace_at_once()
            rest.trace_at_once()
            rest.may_cut = True
            self.parts = split, head, rest

    def fits(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Return whether shapes of inputs may be those that the network was cut for."""
        infos = self._graph.input_infos
        return all(shapes_agree(i.shape, shape) for i, shape in zip(infos, shapes, strict=True))

    def program(self, shapes: Shapes, planner: Planner) -> CompiledProgram | None:
        """The program for some shapes; None if it is to be made the ordinary way.

        Raises PreparationError if a backend fails.
        """
        resized = self._network(shapes)
        if resized is None:
            return None
        traced = self._traced[0]
        original = self._originals.get(traced)
        if original is None:
            with profiled_by(self._settings.profiler), phase("prepare"):
                original = planner.resized_program(resized.make_network())
            if planner.watches_steps or traced.has_inner_tensors or original.stops_loops:
                return original  # each size has a program and memory of its own
            self._originals[traced] = original
        return original.resized(resized)

    def _network(self, shapes: Shapes) -> SizedNetwork | None:
        """The network for some shapes, of the first traced program from then on."""
        for number, known in enumerate(self._traced):
            resized = self._resized(known, shapes)
            if resized is not None:
                self._num_uses += 1
                if number:  # the one that will be tried first
                    self._traced.insert(0, self._traced.pop(number))
                return resized
        is_in_vain = self._num_traces >= ENOUGH_TRACES and self._num_uses < self._num_traces
        if is_in_vain and self._traced and not self._is_reported:
            self._is_reported = True
            names = self._fixed(self._traced[0])
            _log.warning("the network is prepared anew for each size of %s", names or "its axes")
        if not self._is_possible or self._num_programs < self._least_programs or is_in_vain:
            return None
        self._num_traces += 1
        try:
            # `for_one_turn`: what backends compile for traced sizes does not go to their stores.
            with profiled_by(self._settings.profiler), phase("trace"), for_one_turn():
                traced = self._trace(shapes)
        except _UNTRACEABLE as error:
            _log.info("no traced program for %s: %r", shapes, error)
            traced = None
        resized = None if traced is None else self._resized(traced, shapes)
        if traced is None or resized is None:
            # A trace costs as much as preparing the network, and may fail again: the next one is
            # tried after twice as many ordinary programs.
            self._num_failures += 1
            self._least_programs = self._num_programs + 2**self._num_failures
            return None
        if names := self._fixed(traced):
            _log.info("the program for %s does not hold for the next size of %s", shapes, names)
        # In front, as the next call has similar shapes.
        most = max(MOST_TRACED, _MOST_LAYERS // max(len(self._graph.layers), 1))
        self._traced = [traced, *self._traced[: most - 1]]
        self._originals = {
            known: original for known, original in self._originals.items() if known in self._traced
        }
        return resized

    @property
    def is_due(self) -> bool:
        """Return whether programs come from traced sizes by now."""
        is_next = self._num_programs >= max(self._least_programs, ORDINARY_PROGRAMS)
        return bool(self._traced) or (self._is_possible and is_next)

    @property
    def has_failed(self) -> bool:
        """Return whether sizes were traced in vain."""
        return self._num_failures > 0

    def trace_at_once(self) -> None:
        """Trace the next shapes, whatever has been prepared: several are known to come."""
        self._least_programs = 0

    def add(self, program: NetworkProgram) -> None:
        """Look at a program that was made the ordinary way: may others like it be traced."""
        self._num_programs += 1
        network = program.network
        if any(0 in value.info.known_shape for value in network.graph.inputs):
            return  # an empty cache, of which other backends take layers: the trace checks them
        self._is_possible = self._is_possible and all(
            isinstance(layer.operation, PreCompiled)
            and network.backend_of(layer) == self._backends[0].get_id()
            for layer in network.graph.layers
        )

    def forget(self) -> None:
        """Forget everything: a backend has lost its layers."""
        self._traced.clear()
        self._originals.clear()
        self.parts = None
        self._is_possible = False

    def _resized(self, traced: TracedProgram, shapes: Shapes) -> SizedNetwork | None:
        """Resize a program for some shapes; None, and no more of them, if that fails."""
        try:
            return traced.resized(shapes)
        except ArmpyError as error:
            self._fail(error)
            return None

    def _fail(self, error: ArmpyError) -> None:
        """Go on without, as a compiled part breaks the contract."""
        _log.warning("sizes are no longer traced, new shapes are compiled each: %s", error)
        self.forget()
        self.error = error

    def _may_be_traced(self) -> bool:
        """Return whether every component that would see symbolic sizes supports them."""
        options, properties = self._settings.optimizer, self._settings.properties
        return (
            not self._graph.is_fully_shaped
            and not self._graph.variables
            and all(value.info.shape is not None for value in self._graph.inputs)
            and all(
                value.info.is_fully_shaped
                and value.info.num_elements <= _MOST_ELEMENTS
                and value.info.data_type in SIZE_TYPES
                for value in self._deciding()
            )
            and not options.is_placed_by_cost
            and all(isinstance(choice, bool) for choice in options.passes.values())
            and options.shape_inference != "validate_only"
            and not self._settings.protected_mode
            and not (properties.input_source or properties.output_source)
            and has_matching_capability(
                Capability.TRACED_SIZES, True, self._backends[0].get_capabilities()
            )
        )

    def _trace(self, shapes: Shapes) -> TracedProgram | None:
        """The traced program that comes of some shapes, if there is one."""
        positions = self._positions()
        # The sizes of this call, as tiles and the like are chosen for them.
        trace = SymbolicTrace([shapes[number][axis] for number, axis in positions])
        sizes = iter(trace.given)
        traced_shapes = [
            tuple([next(sizes) if dim is None else dim for dim in dims]) for dims in self._open()
        ]
        # Other backends are not asked, as all layers are the first one's.
        backends, options = self._backends[:1], self._settings.optimizer
        graph = _shaped(
            self._graph,
            options,
            self._evaluator,
            self._decisive,
            backends,
            traced_shapes,  # type: ignore[arg-type]  # sizes for integers
        )
        if not is_shaped(graph):
            return None
        check_layers(graph, self._settings.memory_limit_bytes)
        network = optimize_graph(graph, backends, options)
        layers = network.graph.layers
        holds = all(
            traced.template.is_resizable(layer) or traced.template.is_fixed(layer)
            for layer in layers
        )
        if not holds or network.memory.arenas:
            return None
        try:
            shaped = partial(
                _shaped, self._graph, options, self._evaluator, self._decisive, self._backends
            )
            capabilities = backends[0].get_capabilities()
            in_place = has_matching_capability(_UPDATES_IN_PLACE, True, capabilities)
            return traced.template.TracedProgram(
                network, trace, positions, shaped, self._settings, in_place
            )
        except ArmpyError as error:
            self._fail(error)
            return None

    def _deciding(self) -> list[Value]:
        """The inputs whose elements are traced."""
        pairs = zip(self._graph.inputs, self._decisive, strict=False)
        return [value for value, is_decisive in pairs if is_decisive]

    def _open(self) -> list[Sequence[int | None]]:
        """The inputs' shapes, and a dimension for each element that is traced; None if open."""
        shapes = [value.info.shape or () for value in self._graph.inputs]
        return [*shapes, *[(None,) * value.info.num_elements for value in self._deciding()]]

    def _positions(self) -> list[tuple[int, int]]:
        """Input and axis of each open dimension; elements follow the inputs."""
        return [
            (number, axis)
            for number, dims in enumerate(self._open())
            for axis, dim in enumerate(dims)
            if dim is None
        ]

    def _fixed(self, traced: TracedProgram) -> str:
        """Sizes for which a program holds only as they are, and the layers that look at them."""
        return ", ".join(
            self._name(position) + "".join([f", by {layer}" for layer in sorted({*layers} - {""})])
            for position, layers in traced.fixed_sizes().items()
        )

    def _name(self, position: tuple[int, int]) -> str:
        """The name of a traced size in messages: an axis, or an element and where it is read."""
        number, at = position
        inputs = self._graph.inputs
        if number < len(inputs):
            return f"axis {at} of input '{inputs[number].name}'"
        value = self._deciding()[number - len(inputs)]
        layer = next(layer for layer in self._graph.layers if value in layer.inputs)
        # A part's inputs are named apart by their ids, which users do not know.
        name = value.name.removesuffix(f"#{value.id}")
        return f"element {at} of '{name}', which {layer.where} reads"


def _shaped(
    graph: Graph,
    options: OptimizerOptions,
    evaluator: Evaluator | None,
    decisive: Sequence[bool],
    backends: Sequence[BackendProxy],
    shapes: Shapes,
) -> Graph:
    """The graph for some shapes, after the optimiser's passes."""
    elements = iter(shapes[len(graph.inputs) :])
    values = [
        elements_of(next(elements), value.info.data_type.dtype).reshape(value.info.known_shape)
        if is_decisive
        else None
        for value, is_decisive in zip(graph.inputs, decisive, strict=False)
    ]
    shapes = shapes[: len(graph.inputs)]
    return simplified(specialize(graph, shapes, values, evaluator), backends, options)
