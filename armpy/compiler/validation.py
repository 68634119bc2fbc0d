"""Validation of a graph as it is loaded, and the shapes that it is prepared for then."""

from __future__ import annotations

from armpy.compiler.graph_dumps import dump
from armpy.compiler.options import OptimizerOptions
from armpy.errors import LayerValidationError
from armpy.graph import Graph, nested_graphs, verify_graph
from armpy.profiling import phase
from armpy.tensor import format_shape


def validate(graph: Graph, options: OptimizerOptions) -> None:
    """Verify a graph and all graphs inside it; write it down if the options ask for dumps.

    Raises GraphValidationError if one of them is not well formed.
    """
    with phase("validate"):
        for part in (graph, *nested_graphs(graph)):
            verify_graph(part)
    dump(options, "loaded", graph)


def default_shapes(graph: Graph) -> tuple[tuple[int, ...], ...] | None:
    """Return the shape of each input to prepare for; None if one is not known."""
    shapes = []
    for value, default in zip(graph.inputs, graph.default_shapes, strict=True):
        shape = value.info.known_shape if value.info.is_fully_shaped else default
        if shape is None:
            return None
        shapes.append(shape)
    return tuple(shapes)


def check_shapes_known(
    graph: Graph,  # as `armpy.compiler.specialization` leaves it
) -> None:
    """Check that nothing is left to be inferred from a call's shapes or values.

    Raises LayerValidationError if the shape of an input, or of what a layer gives, is not known.

    References
    ----------
    Arm NN ShapeInferenceMethod::ValidateOnly.
    """
    named = [(f"input '{value.name}'", value) for value in graph.inputs]
    named += [(layer.where, value) for layer in graph.layers for value in layer.outputs]
    for where, value in named:
        if not value.info.is_fully_shaped:
            raise LayerValidationError(
                f"the shape of '{value.name}' is not known when the network is loaded",
                where=where,
                expected="sizes of all dimensions, as shape_inference is 'validate_only'",
                actual=format_shape(value.info.shape),
                fix="Give the inputs concrete shapes, or choose 'infer_and_validate'",
            )
