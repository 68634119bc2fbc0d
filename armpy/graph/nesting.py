"""The graphs that a graph's control flow layers run."""

from __future__ import annotations

from armpy.errors import GraphValidationError
from armpy.graph.graph import Graph
from armpy.ops.control_flow import ControlFlow
from armpy.ops.operation import Operation

MAX_NESTING = 64
"""Maximum depth of graphs within each other; each level takes some of Python's stack."""


def graphs_of(operation: Operation, where: str = "") -> tuple[tuple[str, Graph], ...]:
    """The graphs that an operation runs, by its names for them; none for most operations.

    Parameters
    ----------
    where : str
        The layer, for messages.

    Raises
    ------
    GraphValidationError
        If something else is in the place of a graph, or a graph has variables.
    """
    if not isinstance(operation, ControlFlow):
        return ()
    graphs = []
    for name, graph in operation.graphs:
        if not isinstance(graph, Graph):
            raise GraphValidationError(
                f"the {name} graph is none",
                where=where or operation.name,
                expected="a Graph, as Network.build makes it",
                actual=type(graph).__name__,
            )
        if graph.variables:
            raise GraphValidationError(
                f"the {name} graph has variables",
                where=where or operation.name,
                actual=", ".join(variable.value.name for variable in graph.variables),
                fix="Keep the state in the outer graph and hand it in and out",
            )
        graphs.append((name, graph))
    return tuple(graphs)


def nested_graphs(graph: Graph) -> tuple[Graph, ...]:
    """Every graph that layers run, at any depth, each once, inner ones before outer ones.

    Raises
    ------
    GraphValidationError
        If graphs lie too deep in each other or in themselves, or `graphs_of` raises.
    """
    depths: dict[Graph, int] = {}
    opened: set[Graph] = set()
    stack = [graph]
    while stack:
        top = stack[-1]
        inner = [
            nested for layer in top.layers for _, nested in graphs_of(layer.operation, layer.where)
        ]
        waiting = [nested for nested in inner if nested not in depths]
        if waiting:
            if top in opened:  # all that it runs has been looked at since, but what it is in
                raise GraphValidationError("control flow runs a graph that it is in", where="graph")
            opened.add(top)
            stack += waiting
            continue
        stack.pop()
        depths[top] = 1 + max((depths[nested] for nested in inner), default=-1)
    if depths[graph] > MAX_NESTING:
        raise GraphValidationError(
            "control flow lies too deep in control flow",
            expected=f"at most {MAX_NESTING} levels",
            actual=str(depths[graph]),
        )
    return tuple(nested for nested in depths if nested is not graph)
