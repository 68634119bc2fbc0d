"""Subgraph substitution: offers parts to their backends and applies what these answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from armpy.backend import IBackendInternal, OptimizationViews, PreparationRequest, Substitution
from armpy.errors import ArmpyError, BackendError
from armpy.graph import Graph, Layer, SubgraphView, Value, verify_graph
from armpy.graph.network import Network
from armpy.ops.operation import located
from armpy.plugins.proxy.guarded_call import ask_method, describe, let_user_interrupt
from armpy.profiling import phase


def offer(
    graph: Graph,
    backend: IBackendInternal,
    view: SubgraphView,
    request: PreparationRequest | None = None,
) -> OptimizationViews:
    """Let a backend optimise a subgraph and check its answer.

    Parameters
    ----------
    graph : Graph
    backend : IBackendInternal
    view : SubgraphView
    request : PreparationRequest, optional

    Returns
    -------
    OptimizationViews
        With what is to be deleted written as substitutions by nothing.

    Raises
    ------
    ArmpyError
        If the backend raises one.
    BackendError
        If the backend raises something else, or its answer cannot be applied.
    """
    backend_id, name = backend.get_id(), "optimize_subgraph_view"
    request = request or PreparationRequest()
    views = ask_method(backend_id, OptimizationViews, backend, name, view, request)
    return check_answer(graph, f"{backend_id} / {name}", view, views)


def check_answer(
    graph: Graph, where: str, view: SubgraphView, views: OptimizationViews
) -> OptimizationViews:
    """Check what a backend has answered; result and errors as of `offer`.

    Parameters
    ----------
    graph : Graph
    where : str
        Backend and method, for messages.
    view : SubgraphView
        What it was offered.
    views : OptimizationViews
    """
    try:
        return _checked(graph, view, views)
    except BackendError as error:
        raise located(lambda: where, error) from error.__cause__
    # The answer's lists and fields may be a vendor's objects, and their methods run only now.
    except BaseException as error:
        let_user_interrupt(error)
        text = f"the answer cannot be read: {describe(error)}"
        raise BackendError(text, where=where) from error


def _checked(graph: Graph, view: SubgraphView, views: OptimizationViews) -> OptimizationViews:
    """An answer that can be applied."""
    nothing = [Substitution.by_nothing(deleted) for deleted in views.deleted]
    lists = [*views.substitutions, *nothing], [*views.failed], [*views.untouched]
    reasons = {part: str(views.reasons.get(part, "")) for part in lists[1]}
    views = OptimizationViews(*lists, reasons=reasons)  # whose lists the backend does not have
    _check_division(view, views)
    _check_order(graph, view, views.substitutions)
    for substitution in views.substitutions:
        _check_substitution(graph, substitution)
    return views


def _check_division(view: SubgraphView, views: OptimizationViews) -> None:
    """Check that the answer holds every layer of the offered view exactly once."""
    parts = [s.subgraph for s in views.substitutions] + views.failed + views.untouched
    answered = sorted(layer.id for part in parts for layer in part.layers)
    offered = sorted(layer.id for layer in view.layers)
    known = set(view.layers)
    # Ids alone would let a layer pass that the backend has made itself under an offered one's id.
    foreign = any(layer not in known for part in parts for layer in part.layers)
    if answered != offered or foreign:
        raise BackendError(
            "the answer does not hold every layer of the offered view exactly once",
            expected=f"layers {offered}",
            actual=f"layers {answered}"
            + (", some of them not the offered ones" if foreign else ""),
        )


def _check_substitution(graph: Graph, substitution: Substitution) -> None:
    """Check the replacement itself, and that it has the same edge."""
    view, replacement = substitution.subgraph, substitution.replacement
    if not view.layers:
        raise BackendError("a substituted subgraph has no layers")
    # Edges that the backend has built may lack a value that somebody outside reads.
    true_view = SubgraphView.of(graph, view.layers)
    if set(view.inputs) != set(true_view.inputs) or set(view.outputs) != set(true_view.outputs):
        raise BackendError(
            "the substituted subgraph's inputs or outputs are not those of its layers",
            expected=f"{true_view.inputs} -> {true_view.outputs}",
            actual=f"{view.inputs} -> {view.outputs}",
        )
    for side, old, new in (
        ("inputs", view.inputs, replacement.inputs),
        ("outputs", view.outputs, replacement.outputs),
    ):
        if list(map(_kind, old)) != list(map(_kind, new)):
            raise BackendError(
                f"the replacement's {side} differ from the subgraph's",
                expected=str([str(value.info) for value in old]),
                actual=str([str(value.info) for value in new]),
            )
    # Only the core keeps state, so that it can follow a network to other plans and backends.
    if replacement.variables:
        raise BackendError("the replacement has variables of its own")
    try:
        verify_graph(replacement)
        # Declared shapes decide on memory, so they are not taken on trust.
        for layer in replacement.layers:
            layer.operation.infer(layer.input_infos, layer.output_infos)
    except ArmpyError as error:
        raise BackendError(f"the replacement is not well formed: {error}") from error


def _kind(value: Value) -> tuple[object, ...]:
    """What a value and the one in its place have in common."""
    return value.info.shape, value.info.data_type, value.info.quantization


def _check_order(graph: Graph, view: SubgraphView, substitutions: Sequence[Substitution]) -> None:
    """Check that substitutions are convex and do not wait for each other, all at once."""
    owner = {layer: number for number, s in enumerate(substitutions) for layer in s.subgraph.layers}
    producers = {value: layer for layer in view.layers for value in layer.outputs}
    # All at once: two parts that are convex each can still wait for each other.
    waits: dict[object, set[object]] = {}
    for layer in view.layers:
        before = {producers[value] for value in layer.inputs if value in producers}
        unit = owner.get(layer, layer)
        waits.setdefault(unit, set()).update({owner.get(other, other) for other in before} - {unit})
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        # Which of the two it is counts for the message alone, so that the costly question waits for
        # it.
        if not all(s.subgraph.is_convex_in(graph) for s in substitutions):
            text = "a path leaves the substituted subgraph and comes back into it"
            raise BackendError(text) from error
        raise BackendError("the substituted subgraphs depend on each other in a cycle") from error


@dataclass
class SubstitutedGraph:
    """A graph after substitutions.

    Parameters
    ----------
    graph : Graph
    made_from : dict of int to tuple of Layer
        By id of each new layer, the layers in whose place it stands.
    """

    graph: Graph
    made_from: dict[int, tuple[Layer, ...]] = field(default_factory=dict)


@phase("substitute")
def apply_substitutions(graph: Graph, substitutions: Sequence[Substitution]) -> SubstitutedGraph:
    """Build the graph in which every subgraph is exchanged for its replacement.

    Parameters
    ----------
    substitutions : sequence of Substitution
        Checked by `offer`, with no layer in two of them.
    """
    if not substitutions:
        return SubstitutedGraph(graph)
    return _Substituter(graph, substitutions).run()


class _Substituter:
    """Rebuilds a graph unit by unit, a unit being a layer or a whole substitution."""

    def __init__(self, graph: Graph, substitutions: Sequence[Substitution]) -> None:
        self._graph = graph
        self._owner = {layer: s for s in substitutions for layer in s.subgraph.layers}
        self._net = Network()
        self._known: dict[Value, Value] = {}
        # New ids go on behind the graph's, as layers that stay keep theirs.
        self._next_id = max((layer.id for layer in graph.layers), default=-1) + 1
        self._made_from: dict[int, tuple[Layer, ...]] = {}

    def run(self) -> SubstitutedGraph:
        """Walk the units in an order in which they can run."""
        graph, net = self._graph, self._net
        for value, shape in zip(graph.inputs, graph.default_shapes, strict=True):
            self._known[value] = net.input(value.name, value.info, default_shape=shape)
        for variable in graph.variables:
            self._known[variable.value] = net.variable_like(variable)
        for unit in self._ordered_units():
            if isinstance(unit, Layer):
                self._add(unit, self._known, unit.id)
            else:
                self._expand(unit)
        for name, value in zip(graph.output_names, graph.outputs, strict=True):
            net.output(name, self._mapped(value, self._known))
        for variable in graph.variables:
            net.assign(self._known[variable.value], self._mapped(variable.next_value, self._known))
        return SubstitutedGraph(net.build(), self._made_from)

    def _ordered_units(self) -> list[Layer | Substitution]:
        """Units sorted topologically, in the layers' order where that leaves a choice."""
        # In order of their first layers, so that a graph comes out the same every time.
        units = list(dict.fromkeys(self._owner.get(layer, layer) for layer in self._graph.layers))
        producer = {
            value: self._owner.get(layer, layer)
            for layer in self._graph.layers
            for value in layer.outputs
        }
        done: set[Layer | Substitution] = set()
        ordered: list[Layer | Substitution] = []

        for unit in units:
            # A stack of its own: a chain of units can be longer than Python's recursion goes.
            stack = [unit]
            while stack:
                top = stack[-1]
                reads = top.inputs if isinstance(top, Layer) else top.subgraph.inputs
                waiting = (
                    [producer[v] for v in reads if v in producer and producer[v] not in done]
                    if top not in done
                    else []
                )
                if waiting:
                    stack += waiting
                    continue
                stack.pop()
                if top not in done:
                    done.add(top)
                    ordered.append(top)
        return ordered

    def _expand(self, substitution: Substitution) -> None:
        """Add a replacement's layers."""
        view, replacement = substitution.subgraph, substitution.replacement
        inner = {
            new: self._mapped(old, self._known)
            for old, new in zip(view.inputs, replacement.inputs, strict=True)
        }
        for layer in replacement.layers:
            self._made_from[self._next_id] = view.layers
            self._add(layer, inner, self._next_id, _origins(layer, view))
            self._next_id += 1
        for old, new in zip(view.outputs, replacement.outputs, strict=True):
            self._known[old] = self._mapped(new, inner)

    def _add(
        self,
        layer: Layer,
        known: dict[Value, Value],
        layer_id: int,
        origins: tuple[str, ...] | None = None,
    ) -> None:
        """Add one layer and remember its outputs."""
        made = self._net.add_layer(
            layer.operation,
            [None if value is None else self._mapped(value, known) for value in layer.inputs],
            name=layer.name,
            outputs=layer.output_infos,
            output_names=[value.name for value in layer.outputs],
            layer_id=layer_id,
            origins=layer.origins if origins is None else origins,
        )
        known.update(zip(layer.outputs, made.outputs, strict=True))

    def _mapped(self, value: Value, known: dict[Value, Value]) -> Value:
        """The new graph's value for one of the old graph or of a replacement."""
        # Constants are in no order of layers: they come along with their first reader.
        if value not in known and value.data is not None:
            known[value] = self._net.constant(
                value.data,
                name=value.name,
                data_type=value.info.data_type,
                quantization=value.info.quantization,
            )
        return known[value]


def _origins(layer: Layer, view: SubgraphView) -> tuple[str, ...]:
    """What a replacement's layer stands for: what its backend says of the view, or all of it."""
    # Names that are not among the replaced layers are no claim that a backend can make.
    replaced, said = tuple(layer.name for layer in view.layers), set(layer.origins)
    return tuple(name for name in replaced if name in said) or replaced


def backends_after(
    substituted: SubstitutedGraph, backends: Mapping[int, IBackendInternal]
) -> dict[int, IBackendInternal]:
    """Backend of each layer of the new graph, by layer id."""
    return {
        # All layers of a part had one backend, so that any of them tells it.
        layer.id: backends[substituted.made_from.get(layer.id, (layer,))[0].id]
        for layer in substituted.graph.layers
    }
