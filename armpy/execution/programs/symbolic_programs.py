"""Symbolic programs: make programs for new shapes without specialising or compiling anew.

Notes
-----
A symbolic program is made by preparing the network once with symbolic sizes
(`armpy.core.symbolic`). It is valid for every shape that satisfies the conditions recorded then;
for those only numbers are filled in. Other shapes are traced anew.

Elements of inputs that decide on shapes are traced as well: those of each such input, as a tuple,
follow the shapes of all inputs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from armpy.backend import Capability, IResizableProgram, WorkloadInfo, has_matching_capability
from armpy.backend.control_flow import for_one_turn
from armpy.compiler import Evaluator, OptimizedNetwork, OptimizerOptions, optimize_graph, specialize
from armpy.compiler.optimize import simplified
from armpy.core.symbolic import Formula, Number, Size, SymbolicTrace, elements_of, is_traced
from armpy.errors import ArmpyError, BackendError
from armpy.execution.memory_limits import check_layers
from armpy.execution.programs.compiled_program import CompiledProgram, SizedNetwork
from armpy.execution.programs.graph_split import (
    Split,
    is_shaped,
    split_before_unknown,
    with_every_value,
)
from armpy.execution.steps.control_flow import Shapes
from armpy.graph import SIZE_TYPES, Graph, Layer, Value
from armpy.graph.rewriter import remove_dead
from armpy.ops.backend_internal import PreCompiled
from armpy.ops.operation import Array
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import ask_method, describe
from armpy.profiling import phase, profiled_by
from armpy.tensor import Shape, TensorInfo, shapes_agree
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.execution.programs.planning import Planner
    from armpy.execution.programs.staged_program import NetworkProgram
    from armpy.execution.settings import NetworkSettings

MOST_SYMBOLIC, _MOST_LAYERS = 16, 2048
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


class SymbolicPrograms:
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
        self._symbolic: list[SymbolicProgram] = []
        # By symbolic program, the program that those for other sizes are resized from.
        self._originals: dict[SymbolicProgram, CompiledProgram] = {}
        # The network cut in two, with the templates for both, where only the first can be traced.
        self.parts: tuple[Split, SymbolicPrograms, SymbolicPrograms] | None = None
        self.may_cut = self._is_cut = False  # whether to cut it first, and whether it was tried
        # How the backend's program has broken the contract, after which no sizes are traced.
        self.error: ArmpyError | None = None
        self._num_programs = self._num_failures = self._num_traces = self._num_uses = 0
        self._least_programs = ORDINARY_PROGRAMS
        self._is_reported = False
        self._is_possible = is_possible and self._may_be_traced()

    def of_rest(self, graph: Graph, decisive: Sequence[bool]) -> SymbolicPrograms:
        """Templates for a part of the network that waits for elements of its inputs."""
        return SymbolicPrograms(
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
        self._is_cut, self.may_cut, graph = True, False, remove_dead(self._graph)
        every = specialize(with_every_value(graph), shapes, values, self._evaluator)
        shaped = every.outputs[len(graph.outputs) :]
        split = split_before_unknown(graph, self._decisive, shaped)
        if split is not None and split.rest is not None:
            head = self.of_rest(split.head.graph, self._decisive)
            outputs = [value for layer in graph.layers for value in layer.outputs]
            known = dict(zip(outputs, [value.info.shape for value in shaped], strict=True))
            ranks = [
                None if value.info.shape is not None else _known_part(known[value], decides=decides)
                for value, decides in zip(split.rest.sources, split.decisive, strict=True)
            ]
            graph = specialize(split.rest.graph, ranks)
            rest = self.of_rest(graph, split.decisive)
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
        symbolic = self._symbolic[0]
        original = self._originals.get(symbolic)
        if original is None:
            with profiled_by(self._settings.profiler), phase("prepare"):
                original = planner.resized_program(resized.make_network())
            if planner.watches_steps or symbolic.has_inner_tensors or original.stops_loops:
                return original  # each size has a program and memory of its own
            self._originals[symbolic] = original
        return original.resized(resized)

    def _network(self, shapes: Shapes) -> SizedNetwork | None:
        """The network for some shapes, of the first symbolic program from then on."""
        for number, symbolic in enumerate(self._symbolic):
            resized = self._resized(symbolic, shapes)
            if resized is not None:
                self._num_uses += 1
                if number:  # the one that will be tried first
                    self._symbolic.insert(0, self._symbolic.pop(number))
                return resized
        is_in_vain = self._num_traces >= ENOUGH_TRACES and self._num_uses < self._num_traces
        if is_in_vain and self._symbolic and not self._is_reported:
            self._is_reported = True
            names = self._fixed(self._symbolic[0])
            _log.warning("the network is prepared anew for each size of %s", names or "its axes")
        if not self._is_possible or self._num_programs < self._least_programs or is_in_vain:
            return None
        self._num_traces += 1
        try:
            # `for_one_turn`: what backends compile for traced sizes does not go to their stores.
            with profiled_by(self._settings.profiler), phase("trace"), for_one_turn():
                traced = self._traced(shapes)
        except _UNTRACEABLE as error:
            _log.info("no symbolic program for %s: %r", shapes, error)
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
        most = max(MOST_SYMBOLIC, _MOST_LAYERS // max(len(self._graph.layers), 1))
        self._symbolic = [traced, *self._symbolic[: most - 1]]
        self._originals = {
            symbolic: original
            for symbolic, original in self._originals.items()
            if symbolic in self._symbolic
        }
        return resized

    @property
    def is_due(self) -> bool:
        """Return whether programs come from traced sizes by now."""
        is_next = self._num_programs >= max(self._least_programs, ORDINARY_PROGRAMS)
        return bool(self._symbolic) or (self._is_possible and is_next)

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
        self._symbolic.clear()
        self._originals.clear()
        self.parts = None
        self._is_possible = False

    def _resized(self, symbolic: SymbolicProgram, shapes: Shapes) -> SizedNetwork | None:
        """Resize a program for some shapes; None, and no more of them, if that fails."""
        try:
            return symbolic.resized(shapes)
        except ArmpyError as error:
            self._fail(error)
            return None

    def _fail(self, error: ArmpyError) -> None:
        """Go on without, as the backend's program breaks the contract."""
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

    def _traced(self, shapes: Shapes) -> SymbolicProgram | None:
        """The symbolic program that comes of some shapes, if there is one."""
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
        holds = all(_is_resizable(layer) or _is_fixed(layer) for layer in network.graph.layers)
        if not holds or network.memory.arenas:
            return None
        try:
            shaped = partial(
                _shaped, self._graph, options, self._evaluator, self._decisive, self._backends
            )
            capabilities = backends[0].get_capabilities()
            in_place = has_matching_capability(_UPDATES_IN_PLACE, True, capabilities)
            return SymbolicProgram(network, trace, positions, shaped, self._settings, in_place)
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

    def _fixed(self, symbolic: SymbolicProgram) -> str:
        """Sizes for which a program holds only as they are, and the layers that look at them."""
        return ", ".join(
            self._name(position) + "".join([f", by {layer}" for layer in sorted({*layers} - {""})])
            for position, layers in symbolic.fixed_sizes().items()
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


def _known_part(
    shape: Shape | None, *, decides: bool
) -> tuple[Any, ...] | None:  # Any: sizes, and None for those that are open
    """What of a shape is the same in all calls: all of it if its elements decide, else its rank."""
    if shape is None:
        return None
    return shape if decides else (None,) * len(shape)


def _is_resizable(layer: Layer) -> bool:
    """Return whether a layer is a program for traced sizes."""
    operation = layer.operation
    return isinstance(operation, PreCompiled) and isinstance(operation.program, IResizableProgram)


def _is_fixed(layer: Layer) -> bool:
    """Return whether a layer is a program of which no tensor has a traced size."""
    tensors = [value for value in (*layer.inputs, *layer.outputs) if value is not None]
    return isinstance(layer.operation, PreCompiled) and not any(
        isinstance(dim, Size) for value in tensors for dim in value.info.shape or ()
    )


class SymbolicProgram:
    """An optimised network for all shapes of a kind."""

    def __init__(
        self,
        network: OptimizedNetwork,  # for traced sizes
        trace: SymbolicTrace,
        positions: Sequence[tuple[int, int]],  # input and axis of each first size
        shaped: Callable[[Shapes], Graph],  # gives the graph before backends compiled it
        settings: NetworkSettings,
        updates_in_place: bool,  # whether a scatter may have one array as input and output
    ) -> None:
        self._positions, self._trace = positions, trace
        self._sizes: list[int] = [size.now for size in trace.given]  # type: ignore[misc]  # integers
        self._shaped = shaped
        self._limit_bytes = settings.memory_limit_bytes
        graph = network.graph
        # Many tensors are alike, such as the caches of a decoder's layers: their infos are made
        # once, of kinds: for each dimension whether it is traced, and its number, or size; None if
        # none is traced.
        kinds: dict[tuple[object, ...], int] = {}
        self._kinds: list[tuple[TensorInfo, list[tuple[bool, int]] | None]] = []
        self._kind_of: dict[Value, int] = {}
        for value in graph.values():
            info = value.info
            dims = [
                (True, dim.number) if isinstance(dim, Size) else (False, dim)
                for dim in info.known_shape
            ]
            key = *dims, info.data_type, info.quantization, info.is_constant
            if key not in kinds:
                kinds[key] = len(kinds)
                self._kinds.append((info, dims if is_traced(*info.known_shape) else None))
            self._kind_of[value] = kinds[key]
        ends = {*graph.sources, *graph.results}
        values = [value for value in self._kind_of if value.data is None]
        self.has_inner_tensors = bool(network.imports) or not ends.issuperset(values)
        self._formula: Formula = trace.formula(
            [
                *(size for layer in graph.layers for size in _needed(network, layer)),
                *(size for value in self._kind_of for size in value.info.shape or ()),
            ]
        )
        self._sources, self._results = self._kinds_of(graph.sources), self._kinds_of(graph.results)
        self._parts = [
            (
                layer,
                _is_resizable(layer),
                network.backend_of(layer),
                self._kinds_of(layer.inputs),
                self._kinds_of(layer.outputs),
                tuple([None if value is None else value.data for value in layer.inputs]),
            )
            for layer in graph.layers
        ]
        self._looping = network.looping
        self._in_place = frozenset(_scattered(network.source) if updates_in_place else ())
        # Its source is made on request.
        self._network = replace(network, source=graph)

    def fixed_sizes(self) -> dict[tuple[int, int], list[str]]:
        """Positions of the first sizes that have to be the traced ones, and layers that say so."""
        sizes = self._sizes
        return {
            position: self._trace.layers_against(others)
            for at, position in enumerate(self._positions)
            if self._formula(others := [*sizes[:at], sizes[at] + 1, *sizes[at + 1 :]]) is None
        }

    def resized(self, shapes: Shapes) -> SizedNetwork | None:
        """The network for other shapes; None if it does not hold for these."""
        numbers = self._formula([shapes[n][axis] for n, axis in self._positions])
        if numbers is None:
            return None
        infos = [
            TensorInfo(
                tuple([numbers[dim] if is_size else dim for is_size, dim in dims]),  # type: ignore[misc]
                info.data_type,
                info.quantization,
                info.is_constant,
            )
            if dims is not None
            else info
            for info, dims in self._kinds
        ]
        every = [*infos, None]
        layers: list[tuple[PreCompiled, WorkloadInfo]] = []
        arena_bytes = 0
        for layer, is_resizable, backend_id, ins, outs, constants in self._parts:
            outputs = tuple([infos[kind] for kind in outs])
            operation: PreCompiled = layer.operation  # type: ignore[assignment]  # all are
            if is_resizable:
                operation = _operation(backend_id, operation, outputs, numbers)
            inputs = tuple([every[kind] for kind in ins])
            layers.append((operation, WorkloadInfo(layer.name, inputs, outputs, constants)))
            arena_bytes += operation.working_bytes
        results = tuple([infos[kind] for kind in self._results])
        if arena_bytes + sum([info.size_bytes for info in results]) > self._limit_bytes:
            return None  # the ordinary way gives the reason
        sources = tuple([infos[kind] for kind in self._sources])
        make = partial(self._network_for, shapes, infos, layers, arena_bytes)
        return SizedNetwork(layers, sources, results, make, len(numbers), self._in_place)

    def _kinds_of(self, values: Iterable[Value | None]) -> list[int]:
        """The kinds of some values; -1 for none."""
        return [-1 if value is None else self._kind_of[value] for value in values]

    def _graph(
        self,
        shapes: Shapes,
        infos: Sequence[TensorInfo],
        layers: Sequence[tuple[PreCompiled, WorkloadInfo]],
    ) -> Graph:
        """The graph for other shapes."""
        graph = self._network.graph
        values = {
            value: Value(value.id, infos[kind], value.name)
            for value, kind in self._kind_of.items()
            if value.data is None
        }
        return Graph(
            tuple([values[value] for value in graph.inputs]),
            tuple([values.get(value, value) for value in graph.outputs]),
            graph.output_names,
            tuple(
                [
                    Layer(
                        layer.id,
                        layer.name,
                        operation,
                        tuple([value and values.get(value, value) for value in layer.inputs]),
                        tuple([values[value] for value in layer.outputs]),
                        layer.origins,
                    )
                    for layer, (operation, _) in zip(graph.layers, layers, strict=True)
                ]
            ),
            default_shapes=shapes[: len(graph.inputs)],
        )

    def _network_for(
        self,
        shapes: Shapes,
        infos: Sequence[TensorInfo],
        layers: Sequence[tuple[PreCompiled, WorkloadInfo]],
        arena_bytes: int,
    ) -> OptimizedNetwork:
        """The whole network for other shapes."""
        known = self._network
        # No backend is left where sizes leave no layer.
        memory = {backend: arena_bytes for backend in known.backend_ids.values() if arena_bytes}
        network = ResizedNetwork(
            self._graph(shapes, infos, layers),
            known.backend_ids,
            known.memory,
            replace(known.placement, arena_bytes=memory),
            lambda _: self._shaped(shapes),  # type: ignore[arg-type]  # see there
            # All layers are one backend's; fewer are left than where sizes are traced.
            lambda network: {  # type: ignore[arg-type]
                layer.id: backend_id
                for backend_id in {*known.assignment.values()}
                for layer in network.source.layers
            },
            known.origins,
            known.imports,
            known.model_options,
        )
        # As of the traced network: its own source is not made yet.
        vars(network)["looping"] = self._looping
        return network


def _made_when_asked(name: str) -> Any:  # Any: a property of whichever type the field has
    """A field that is a function of the network until it is read, as it takes long to make."""

    def read(network: OptimizedNetwork) -> object:
        value = vars(network)[name]
        if callable(value):
            value = vars(network)[name] = value(network)
        return value

    def write(network: OptimizedNetwork, value: object) -> None:
        vars(network)[name] = value

    return property(read, write)


class ResizedNetwork(OptimizedNetwork):
    """An optimised network whose source and assignment are made on request."""

    source = _made_when_asked("source")
    assignment = _made_when_asked("assignment")


def _scattered(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield sources and results, by number, where a result is a source with updates.

    Nothing but the scatter reads such a source.
    """
    for number, value in enumerate(graph.results):
        layer = graph.producers.get(value)
        if layer is not None and layer.operation.name in ("ScatterElements", "ScatterNd"):
            source = layer["input"]
            is_read = graph.consumers[source] != (layer,) or layer.inputs.count(source) > 1
            if source in graph.sources and source not in graph.results and not is_read:
                yield graph.sources.index(source), number


def _needed(network: OptimizedNetwork, layer: Layer) -> tuple[object, ...]:
    """Return the facts that a compiled layer's program follows from."""
    if not _is_resizable(layer):
        return ()
    program = layer.operation.program  # type: ignore[attr-defined]
    return tuple(ask_method(network.backend_of(layer), Sequence, program, "needed"))


def _operation(
    backend_id: BackendId,
    operation: PreCompiled,
    outputs: Sequence[TensorInfo],
    numbers: Sequence[Number],
) -> PreCompiled:
    """The program of a compiled layer for other sizes."""
    answer = ask_method(backend_id, tuple, operation.program, "for_sizes", numbers)
    # Exactly an int: True is one by inheritance, and a class of a vendor's may compute otherwise.
    if len(answer) != 2 or type(answer[1]) is not int or answer[1] < 0:
        raise BackendError(
            "the answer is not a program with the bytes that it needs",
            where=f"{backend_id} / for_sizes",
            expected="a program, and an int of at least 0",
            actual=describe(answer),
        )
    resized, arena_bytes = answer
    return PreCompiled(resized, tuple([info.shape for info in outputs]), arena_bytes)  # type: ignore[misc]  # known
