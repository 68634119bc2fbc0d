"""Template: a program for traced sizes, of which programs for other sizes are filled in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from armpy.backend import IResizableProgram, WorkloadInfo
from armpy.compiler import OptimizedNetwork
from armpy.core.symbolic import Formula, Number, Size, SymbolicTrace, is_traced
from armpy.errors import BackendError
from armpy.execution.programs.compiled_program import SizedNetwork
from armpy.execution.steps.control_flow import Shapes
from armpy.graph import Graph, Layer, Value
from armpy.ops.backend_internal import PreCompiled
from armpy.plugins.proxy.guarded_call import ask_method, describe
from armpy.tensor import TensorInfo
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.execution.setup.settings import NetworkSettings


def is_resizable(layer: Layer) -> bool:
    """Return whether a layer is a program for traced sizes."""
    operation = layer.operation
    return isinstance(operation, PreCompiled) and isinstance(operation.program, IResizableProgram)


def is_fixed(layer: Layer) -> bool:
    """Return whether a layer is a program of which no tensor has a traced size."""
    tensors = [value for value in (*layer.inputs, *layer.outputs) if value is not None]
    return isinstance(layer.operation, PreCompiled) and not any(
        isinstance(dim, Size) for value in tensors for dim in value.info.shape or ()
    )


class TracedProgram:
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
                is_resizable(layer),
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
    if not is_resizable(layer):
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
