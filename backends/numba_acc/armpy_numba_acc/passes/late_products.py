"""Order of products: moves them after other summands, so that they can add these."""

from __future__ import annotations

from dataclasses import replace

from armpy.graph import Layer, SubgraphView
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary
from armpy_numba_acc.passes.consumers import only_consumer
from armpy_numba_acc.program.fusion import is_fusing


def with_late_products(view: SubgraphView) -> SubgraphView:
    """A region whose products stand in front of their sums where other summands come after them.

    Networks of the BlazeFace sort compute the shortcut after the product that it is added to.
    """
    numbers = {layer: number for number, layer in enumerate(view.layers)}
    outside = set(view.outputs)
    places: dict[Layer, float] = {}
    for layer, number in numbers.items():
        follower = only_consumer(view, layer.outputs[0], outside) if is_fusing(layer) else None
        if follower is None or not _is_sum(follower):
            continue
        lhs, rhs = follower["lhs"], follower["rhs"]
        producer = view.producers.get(rhs if lhs is layer.output else lhs)
        # A product that comes after this one adds it: that order is right already.
        is_late = producer is not None and numbers[producer] > number and not is_fusing(producer)
        if is_late and follower in numbers:
            places[layer] = numbers[follower] - 0.5
    if not places:
        return view
    layers = sorted(view.layers, key=lambda layer: places.get(layer, numbers[layer]))
    return replace(view, layers=tuple(layers))


def _is_sum(layer: Layer) -> bool:
    """Return whether a layer adds two tensors."""
    operation = layer.operation
    return isinstance(operation, ElementwiseBinary) and operation.operation is BinaryOperation.ADD
