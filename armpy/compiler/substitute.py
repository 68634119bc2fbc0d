"""Subgraph substitution: offers parts to their backends and applies what these answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from armpy.backend import IBackendInternal, OptimizationViews, PreparationRequest, Substitution
from armpy.errors import ArmpyError, BackendError
from armpy.graph import Graph, Layer, Rewriter, SubgraphView, Value, verify_graph
from armpy.ops.operation import located
from armpy.plugins.proxy.guarded_call import describe, let_user_interrupt
from armpy.profiling import phase


def offer(
    graph: Graph,
    backend: IBackendInternal,  # the proxy of it: errors are contained there
    view: SubgraphView,
    request: PreparationRequest | None = None,
) -> OptimizationViews:
    """Let a backend optimise a subgraph and check its answer.

    Raises ArmpyError if the backend raises one; BackendError if its answer cannot be applied.

    Deletions are substitutions by nothing.
    """
    views = backend.optimize_subgraph_view(view, request or PreparationRequest())
    return check_answer(graph, f"{backend.get_id()} / optimize_subgraph_view", view, views)


def check_answer(
    graph: Graph,
    where: str,  # backend and method, for messages
    view: SubgraphView,  # what it was offered
    views: OptimizationViews,
) -> OptimizationViews:
    """Check what a backend has answered; result and errors as of `offer`."""
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
    # Edges that the backend has built may lack a value that is read outside.
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
    """Return the properties that a value and its replacement share."""
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


@phase("substitute")
def apply_substitutions(
    graph: Graph,
    substitutions: Sequence[Substitution],  # checked by `offer`, with no layer in two of them
) -> tuple[Graph, dict[int, tuple[int, ...]]]:
    """Build the graph in which every subgraph is exchanged for its replacement.

    Returns
    -------
    graph : Graph
    origins : dict of int to tuple of int
        By id of each of its layers, the ids of the layers in whose place it stands.
    """
    if not substitutions:
        return graph, {layer.id: (layer.id,) for layer in graph.layers}
    owner = {layer: s for s in substitutions for layer in s.subgraph.layers}
    rewriter, origins = Rewriter(graph), dict[int, tuple[int, ...]]()
    for unit in _ordered_units(graph, owner):
        if isinstance(unit, Layer):
            origins[rewriter.keep(unit).id] = (unit.id,)
        else:
            _expand(rewriter, unit, origins)
    return rewriter.finish(drop_dead=False), origins


def _ordered_units(graph: Graph, owner: Mapping[Layer, Substitution]) -> list[Layer | Substitution]:
    """Units sorted topologically, in the layers' order where that leaves a choice."""
    # In order of their first layers, so that a graph comes out the same every time.
    units = list(dict.fromkeys(owner.get(layer, layer) for layer in graph.layers))
    producer = {value: owner.get(layer, layer) for layer in graph.layers for value in layer.outputs}
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


def _expand(
    rewriter: Rewriter, substitution: Substitution, origins: dict[int, tuple[int, ...]]
) -> None:
    """Add a replacement's layers."""
    view, replacement = substitution.subgraph, substitution.replacement
    # Apart from the graph's own values, which a backend's graph may have in other places.
    inner = dict(zip(replacement.inputs, map(rewriter.mapped, view.inputs), strict=True))

    def mapped(value: Value) -> Value:
        return inner[value] if value in inner else rewriter.mapped(value)

    replaced = tuple(layer.name for layer in view.layers)
    for layer in replacement.layers:
        # Inferred when the backend's answer was checked.
        new_layer = rewriter.append(
            layer.operation,
            [None if value is None else mapped(value) for value in layer.inputs],
            layer.name,
            layer.output_infos,
            [value.name for value in layer.outputs],
            # Other names are not a claim that a backend can make.
            tuple(name for name in replaced if name in layer.origins) or replaced,
        )
        origins[new_layer.id] = tuple(replaced.id for replaced in view.layers)
        inner.update(zip(layer.outputs, new_layer.outputs, strict=True))
    for old, new in zip(view.outputs, replacement.outputs, strict=True):
        rewriter.alias(old, mapped(new))
