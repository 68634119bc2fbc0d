"""The layers that a file's operators became in armpy's network, with actual shapes."""

from __future__ import annotations

from armpy.compiler import Evaluator, specialize
from armpy.errors import ArmpyError
from armpy.graph import Graph
from armpy.graph.nesting import graphs_of
from armpy.inspect.flat_outline import Flat
from armpy.plugins import BackendRegistry
from armpy.plugins.proxy.guard import BackendProxy
from armpy.tensor import Shape, TensorInfo
from armpy.types import REFERENCE_BACKEND_ID


def evaluator_of(registry: BackendRegistry) -> Evaluator | None:
    """Return the evaluator of constants for shapes; None without CpuRef."""
    try:
        return Evaluator(BackendProxy(registry.get(REFERENCE_BACKEND_ID)))
    except ArmpyError:  # shapes that depend on constants stay open
        return None


def shape_layers(
    graph: Graph,
    flat: Flat,
    shapes: dict[str, tuple[int, ...]],
    evaluator: Evaluator | None = None,
) -> None:
    """Find the layers of each operator, and the shapes that its tensors have.

    `shapes` of inputs, by name, may be missing: these stay open. The evaluator computes constants,
    on which shapes may depend.
    """
    known = _bound(graph, shapes, evaluator)
    _walk(known, flat, "", "")
    for tensor, value in zip(flat.inputs, known.inputs, strict=False):
        _note(flat, tensor, value.info)


def _bound(graph: Graph, shapes: dict[str, tuple[int, ...]], evaluator: Evaluator | None) -> Graph:
    """A graph with the shapes of its inputs; as it is where these do not go together."""
    if graph.is_fully_shaped:
        return graph
    input_shapes = [shapes.get(value.name) for value in graph.inputs]
    if not any(input_shapes):
        input_shapes = list(graph.default_shapes)
    try:
        return specialize(graph, input_shapes, (), evaluator)
    except ArmpyError:  # running it raises the error; here shapes stay open
        return graph


def _walk(graph: Graph, flat: Flat, inside: str, place: str) -> None:
    """Link a graph's layers, and those of graphs that they run."""
    for layer in graph.layers:
        index = flat.linker.find(layer.name, inside)
        operator = None if index is None else flat.operators[index]
        for role, inner in graphs_of(layer.operation):
            here = f"{place}{layer.name}/{role}"
            if here not in flat.insides:
                name = layer.name if operator is None else operator.operator.name
                flat.insides[here] = "/".join(filter(None, (inside, name, role)))
                _walk(inner, flat, flat.insides[here], f"{here}/")
        if operator is None:
            continue
        operator.layers.append(layer)
        if len(operator.outputs) == len(layer.outputs):
            for tensor, info in zip(operator.outputs, layer.output_infos, strict=True):
                _note(flat, tensor, info)


def _note(flat: Flat, tensor: int, info: TensorInfo) -> None:
    """Take what a layer gives for a tensor of the file, if the shapes can be the same."""
    if tensor >= 0 and _can_be(flat.tensors[tensor][0].shape, info.shape):
        flat.infos[tensor] = info


def _can_be(said: tuple[int | None, ...] | None, shape: Shape | None) -> bool:
    """Return whether a tensor of the file's shape may turn out to have this one."""
    if said is None or shape is None:
        return shape is not None
    pairs = zip(said, shape, strict=False)
    return len(said) == len(shape) and all(a is None or a == b for a, b in pairs)
