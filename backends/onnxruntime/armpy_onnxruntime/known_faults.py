"""Faults of single providers that make results wrong, and how they are avoided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from armpy.graph import Layer, SubgraphView
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    ElementwiseBinary,
    ExpandDims,
    FullyConnected,
    Reshape,
    Softmax,
    Squeeze,
    Transpose,
)

GGML = "ggml"

NEEDED_OPTIONS: Mapping[str, Mapping[str, str]] = {
    # By default onnxruntime-ggml 0.2.0 keeps inputs of 256 KiB or more from one run to the next,
    # and compares a sample of their elements: other changes are missed. Where it notices one, it
    # frees what Max, Min and Pow then read, and the process ends.
    GGML: {"sticky": "0"},
}
"""By provider, options without which results do not depend on the inputs alone."""

_MOST_DIMENSIONS = 4
_ON_DEVICE = (ExpandDims, FullyConnected, Reshape, Softmax, Squeeze, Transpose)
_FUNCTIONS = frozenset(
    ActivationFunction[name]
    for name in ("ABS", "BOUNDED_RELU", "LINEAR", "RELU", "SIGMOID", "SQRT", "SQUARE", "TANH")
)
_BINARY = frozenset(
    BinaryOperation[name] for name in ("ADD", "DIV", "MUL", "SQUARED_DIFFERENCE", "SUB")
)


def sound_parts(provider: str, view: SubgraphView) -> Iterator[SubgraphView]:
    """Divide a part into those that a provider computes right; usually it is left whole.

    Notes
    -----
    onnxruntime-ggml 0.2.0 has ggml plan memory for the graph that it computes, and ggml keeps the
    plan for the next graph with as many nodes of the same sizes. The graph is another one after
    each layer that ggml does not have, which is computed beside it, and in each run if there are
    several results, whose order changes by chance. Layers then overwrite what others read.
    """
    if provider != GGML or len(view.layers) == 1 or _is_one_graph(view):
        yield view
        return
    # Layers are in an order of execution, so that each half is convex.
    middle = len(view.layers) // 2
    for half in (view.layers[:middle], view.layers[middle:]):
        yield from sound_parts(provider, view.part(half))


def _is_one_graph(view: SubgraphView) -> bool:
    """Return whether ggml computes the part in one graph, which is the same in each run."""
    return len(view.outputs) == 1 and all(map(_is_on_device, view.layers))


def _is_on_device(layer: Layer) -> bool:
    """Return whether ggml has all of a layer."""
    values = (*layer.input_infos, *layer.output_infos)
    if any(info is not None and (info.rank or 0) > _MOST_DIMENSIONS for info in values):
        return False
    operation = layer.operation
    if isinstance(operation, Activation):
        return operation.function in _FUNCTIONS
    if isinstance(operation, ElementwiseBinary):
        return operation.operation in _BINARY
    return isinstance(operation, _ON_DEVICE)
