"""Limits and commands of the graphs that loops and branches run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from armpy.graph import Graph, Layer, SubgraphView
from armpy.graph.nesting import graphs_of, nested_graphs
from armpy.ops.operation import OperandInfos, Operation
from armpy_numba_acc.lowering.list_writes import Write
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter

MOST_LAYERS = 1024
"""Of a loop whose graphs lie in each other more than once: each is lowered as often."""

MOST_LAYERS_OF_REGION = 16384
"""Of all loops of a region together: several may run the same graphs."""


def refusal_of_graphs(operation: Operation, inputs: OperandInfos) -> str:
    """Why the graphs of an operation cannot be lowered for these inputs; empty if they can."""
    for name, graph in graphs_of(operation):
        if not graph.is_fully_shaped:
            return f"not all shapes in the {name} graph are known"
        if any(
            given is None or given.shape != info.shape
            for given, info in zip(inputs, graph.input_infos, strict=True)
        ):
            return f"the {name} graph takes other shapes than it is given"
    num_layers, num_distinct = _num_layers(operation, {}), _num_distinct(operation)
    is_too_much = num_layers > max(MOST_LAYERS, 2 * num_distinct)
    return f"written out, it has {num_layers} layers of {num_distinct}" if is_too_much else ""


def refusal_of_region(view: SubgraphView) -> str:
    """Why a region cannot be lowered although each of its layers can; empty if it can."""
    known: dict[Operation, int] = {}
    num_layers = sum(_num_layers(layer.operation, known) for layer in view.layers)
    if num_layers <= MOST_LAYERS_OF_REGION:
        return ""
    return f"written out, its loops have {num_layers} layers"


def _num_distinct(operation: Operation) -> int:
    """Layers of the graphs that an operation runs, each graph counted once."""
    graphs = {graph for _, graph in graphs_of(operation)}
    graphs.update(inner for graph in tuple(graphs) for inner in nested_graphs(graph))
    return sum(len(graph.layers) for graph in graphs)


def _num_layers(operation: Operation, known: dict[Operation, int]) -> int:
    """Layers of the graphs that an operation runs, at any depth."""
    if not graphs_of(operation):  # not looked up, as hashing traced sizes in it would fix them
        return 0
    if operation not in known:
        known[operation] = sum(
            1 + _num_layers(layer.operation, known)
            for _, graph in graphs_of(operation)
            for layer in graph.layers
        )
    return known[operation]


def lowered(
    emit: Emitter,
    name: str,
    graph: Graph,
    states: Sequence[Buffer],
    written: Mapping[int, Write] = MappingProxyType({}),
) -> Emitter:
    """Add the commands of a graph that reads its inputs where they are, but those of writes."""
    left_out = {layer for write in written.values() for layer in write.layers}
    layers = tuple(layer for layer in graph.layers if layer not in left_out)
    made = {value for layer in layers for value in layer.outputs}
    read = (value for write in written.values() for value in (write.element, write.index))
    outputs = tuple(dict.fromkeys(v for v in (*graph.outputs, *read) if v in made))
    view = SubgraphView(layers, graph.inputs, outputs)
    return emit.lower_graph(emit, view, dict(zip(graph.inputs, states, strict=True)), name)


def jump(emit: Emitter, layer: Layer, call: calls.Loop) -> int:
    """Add a command that decides which one runs next; return its number, to set a target later."""
    emit(call, f"{layer.name}: {call.part}", part=call.part)
    return emit.num_commands - 1


def copy(emit: Emitter, layer: Layer, source: Buffer, target: Buffer, size: int) -> None:
    """Copy what a graph takes or gives to where it is read."""
    emit(calls.Copy(source, target, size), f"{layer.name}: carry", part="carry")
