"""Gives the graphs of loops the shapes that they have in every turn.

Notes
-----
Lists that TensorFlow's converters write as tensors, one element a turn, are cut in two and joined
again around the element: ``concat(list[:i], element, list[i + 1:])``. Where ``i`` is a counter that
stays within the list, an element is exchanged, and no shape depends on ``i``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from armpy.errors import ArmpyError
from armpy.graph import Graph, Layer, Rewriter, Value, graphs_of, nested_graphs
from armpy.graph.counting import LoopCount, added_constant, counted
from armpy.ops.composite import Composite
from armpy.ops.control_flow import If, While
from armpy.ops.elementwise import Comparison, ComparisonOperation, Select
from armpy.ops.joining import Concat
from armpy.ops.operation import Array
from armpy.ops.reshaping import Reshape
from armpy.ops.slicing import Slice
from armpy.tensor import TensorInfo

Specialize: TypeAlias = Callable[[Graph, Sequence[tuple[int, ...]], Sequence[Array | None]], Graph]
"""Binds the shapes of a graph's inputs, and their known elements."""

LARGEST_BOUND_BYTES = 1024
"""Of a constant that a loop hands on from turn to turn: sizes and limits, not weights."""


def with_fixed_shapes(
    loop: While,
    inputs: Sequence[Value | None],  # the layer's, of known shapes
    specialize: Specialize,
) -> While:
    """A loop whose graphs know all shapes and layers; the same if shapes change in turns.

    Errors in a graph are raised when it has to run.
    """
    values = [value for value in inputs if value is not None]
    infos = tuple(value.info for value in values)
    if not all(info.is_fully_shaped for info in infos):
        return loop
    (_, condition), (_, body) = graphs_of(loop)
    bound = [
        bindable(value)
        if number >= len(body.outputs) or body.outputs[number] is body.inputs[number]
        else None
        for number, value in enumerate(values)
    ]
    is_done = _is_fixed(loop, infos) and not is_unfinished(condition, body)
    if is_done and not any(data is not None for data in bound):
        return loop
    shapes = [info.known_shape for info in infos]
    try:
        condition = specialize(condition, shapes, bound)
        body = specialize(body, shapes, bound)
        # A constant in the place of the input would hide that no turn changes it.
        known = {n: body.inputs[n] for n, data in enumerate(bound) if data is not None}
        outputs = tuple(known.get(n, value) for n, value in enumerate(body.outputs))
        body = replace(body, outputs=outputs)
        fixed = While(condition, body)
        if not _is_fixed(fixed, infos):
            # Only a loop whose turns can be counted has a counter with known bounds.
            turns = counted(fixed, inputs)
            if turns is None:
                return loop
            fixed = While(condition, specialize(_with_exchanges(body, turns), shapes, ()))
    except ArmpyError:
        return loop
    # Half known is of no use: a backend takes a loop with all its graphs, or not at all.
    return fixed if _is_fixed(fixed, infos) else loop


def is_unfinished(*graphs: Graph) -> bool:
    """Return whether specialising graphs of known shapes expands, chooses or folds layers.

    Layers of graphs that they run count.
    """
    return any(
        isinstance(layer.operation, Composite) or _is_constant(layer)
        for graph in graphs
        for part in (graph, *nested_graphs(graph))
        for layer in part.layers
    )


def _is_constant(layer: Layer) -> bool:
    """Return whether constants alone decide what a layer gives, or which graph it runs."""
    deciding = layer.inputs[:1] if isinstance(layer.operation, If) else layer.inputs
    return bool(deciding) and all(value is None or value.is_constant for value in deciding)


def bindable(value: Value | None) -> Array | None:
    """The elements of an input of a loop, if they are constant, few, and numbers."""
    data = None if value is None else value.data
    if data is None or data.dtype.hasobject:  # the bytes of an object are its address
        return None
    return data if data.nbytes <= LARGEST_BOUND_BYTES else None


def _is_fixed(loop: While, infos: Sequence[TensorInfo]) -> bool:
    """Return whether the graphs are shaped, and a turn gives the shapes that it takes."""
    graphs = (loop.condition_graph, loop.body_graph)
    if not all(isinstance(graph, Graph) and graph.is_fully_shaped for graph in graphs):
        return False
    shapes = [info.shape for info in infos]
    return all([info.shape for info in graph.input_infos] == shapes for graph in graphs) and all(
        after.shape == before
        for before, after in zip(shapes, loop.body_graph.output_infos, strict=False)
    )


def _with_exchanges(body: Graph, turns: LoopCount) -> Graph:
    """A body that exchanges elements of lists instead of joining the parts around them."""
    rewriter = Rewriter(body)
    for layer in body.layers:
        exchange = _exchange(body, layer, turns)
        if exchange is None:
            rewriter.keep(layer)
            continue
        whole, element, index = map(rewriter.mapped, exchange)
        length, rank = whole.info.known_shape[0], len(whole.info.known_shape)
        numbers: Array = np.arange(length, dtype=index.info.data_type.dtype)
        numbers = numbers.reshape(length, *(1,) * (rank - 1))
        positions = rewriter.constant(numbers, index.info, f"{layer.name}/positions")
        compare = Comparison(ComparisonOperation.EQUAL)
        here = rewriter.insert(compare, (positions, index), f"{layer.name}/position").output
        rewriter.replace(layer, Select(), (here, element, whole))
    return rewriter.finish(drop_dead=False)


def _exchange(body: Graph, layer: Layer, turns: LoopCount) -> tuple[Value, Value, Value] | None:
    """The list, the element and the counter, if a layer is ``concat(l[:i], e, l[i + 1:])``."""
    if layer.operation != Concat(0) or len(layer.inputs) != 3:
        return None
    values = layer.inputs
    front, back = _maker(body, values[0]), _maker(body, values[2])
    if front is None or back is None or values[1] is None:
        return None
    if not isinstance(front.operation, Slice) or not isinstance(back.operation, Slice):
        return None
    whole = front.inputs[0]
    if whole is None or back.inputs[0] is not whole or whole not in body.inputs:
        return None
    index = _before(body, front)
    if index is None or not _begins_behind(body, back, index):
        return None
    number = body.inputs.index(index)
    shape = whole.info.known_shape
    # A choice between elements equals the join only where the counter stays within the list, the
    # lengths agree, and nothing is requantised on the way.
    fits = (
        number in turns.counters
        and turns.counters[number].start >= 0
        and turns.largest(number) < shape[0]
        and values[1].info.shape == (1, *shape[1:])
        and {values[1].info.quantization, layer.outputs[0].info.quantization}
        == {whole.info.quantization}
    )
    return (whole, values[1], index) if fits else None


def _before(body: Graph, layer: Layer) -> Value | None:
    """The input ``i`` of a body if a layer takes ``[:i]`` of a tensor along its first axis."""
    operation = layer.operation
    assert isinstance(operation, Slice)
    if operation.begin is None or any(operation.begin) or len(layer.inputs) < 3:
        return None
    value = _first_of(body, layer.inputs[2], -1)
    return value if value in body.inputs else None


def _begins_behind(body: Graph, layer: Layer, index: Value) -> bool:
    """Return whether a layer takes ``[index + 1:]`` of a tensor along its first axis."""
    operation = layer.operation
    assert isinstance(operation, Slice)
    if operation.size is None or any(size != -1 for size in operation.size):
        return False
    value = _first_of(body, layer.inputs[1], 0)
    return value is not None and added_constant(body, value) == (index, 1)


def _first_of(body: Graph, value: Value | None, others: int) -> Value | None:
    """The scalar ``i`` of which a tensor ``(i, others, others, ...)`` is made."""
    layer = _maker(body, value)
    if layer is None or layer.operation != Concat(0):
        if layer is not None and isinstance(layer.operation, Reshape):
            return _flattened(layer)
        return None
    first, *rest = layer.inputs
    if any(v is None or v.data is None or (v.data != others).any() for v in rest):
        return None
    maker = _maker(body, first)
    return _flattened(maker) if maker is not None else None


def _flattened(layer: Layer) -> Value | None:
    """The input of one element that a layer makes a vector of."""
    value = layer.inputs[0]
    is_one = value is not None and value.info.is_fully_shaped and value.info.num_elements == 1
    return value if isinstance(layer.operation, Reshape) and is_one else None


def _maker(body: Graph, value: Value | None) -> Layer | None:
    """The layer that writes a value."""
    return None if value is None else body.producers.get(value)
