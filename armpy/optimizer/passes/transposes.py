"""Pass that cancels transposes, also where layers lie between them that know no axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from armpy.graph import Graph, Layer, Value
from armpy.ops.movement import Transpose
from armpy.optimizer.passes.context import PassContext
from armpy.optimizer.passes.rebuild import Rebuild, only_reader
from armpy.optimizer.simplify import ELEMENTWISE, kind_of
from armpy.records import dataclass
from armpy.tensor import TensorInfo

Permutation = tuple[int, ...]


@dataclass(eq=False)
class _Region:
    """Elementwise layers between transposes and the one that takes these back.

    Parameters
    ----------
    perm : tuple of int
        Of the last one.
    layers : dict of Layer to None
    """

    perm: Permutation
    layers: dict[Layer, None] = field(default_factory=dict)


def cancel_transposes(graph: Graph, context: PassContext) -> Graph:
    """Make consecutive transposes one, or none where axes return, also around elementwise layers.

    Notes
    -----
    An elementwise layer is computed with its axes in the other order if every tensor that it
    reads is there in that order, or constant, and only the last transpose reads what it gives.

    References
    ----------
    Arm NN OptimizeInversePermutes, OptimizeInverseTransposes, MovePermuteUp, MoveTransposeUp.
    """
    merged: dict[Layer, tuple[Value, Permutation]] = {}
    regions: dict[Layer, _Region] = {}
    for layer in graph.layers:
        if (chain := _chain(graph, layer)) is not None:
            merged[layer] = chain
        elif (region := _region(graph, context, layer)) is not None:
            regions |= dict.fromkeys((*region.layers, layer), region)
    if not merged and not regions:
        return graph
    rebuild = Rebuild(graph)
    for layer in graph.layers:
        if layer in merged:
            _add_merged(rebuild, layer, *merged[layer])
        elif layer not in regions:
            rebuild.keep(layer)
        elif layer in regions[layer].layers:
            _add_turned(rebuild, layer, regions[layer])
        else:
            rebuild.alias(layer.output, rebuild.mapped(layer["input"]))
    return rebuild.finish()


def _perm(layer: Layer | None) -> Permutation | None:
    """The order that a transpose gives the axes; None if a layer is none, or scales would move."""
    if layer is None or not isinstance(layer.operation, Transpose):
        return None
    perm = layer.operation.perm
    if perm is None or layer.output.info.has_per_axis_quantization:
        return None
    return tuple(axis % len(perm) for axis in perm)


def _chain(graph: Graph, layer: Layer) -> tuple[Value, Permutation] | None:
    """What several transposes read, and the order that they give; None if there is only one."""
    perm, value, length = _perm(layer), layer, 0
    while perm is not None:
        above = graph.producers.get(value["input"])
        first = _perm(above)
        if above is None or first is None:
            break
        perm, value, length = tuple(first[axis] for axis in perm), above, length + 1
    return (value["input"], perm) if perm is not None and length else None


def _add_merged(rebuild: Rebuild, layer: Layer, root: Value, perm: Permutation) -> None:
    """Add one transpose for several, or none."""
    if perm == tuple(range(len(perm))):
        rebuild.alias(layer.output, rebuild.mapped(root))
    else:
        rebuild.replace(layer, Transpose(perm), [rebuild.mapped(root)])


def _region(graph: Graph, context: PassContext, last: Layer) -> _Region | None:
    """The elementwise layers in front of a transpose that need none; None if there are none."""
    perm = _perm(last)
    if perm is None:
        return None
    region, has_source = _Region(perm), False
    waiting = [last["input"]]
    while waiting:
        value = waiting.pop()
        layer = graph.producers.get(value)
        if layer is None or not _can_turn(graph, layer, len(perm)):
            return None
        if layer in region.layers:
            continue
        region.layers[layer] = None
        for source in layer.inputs:
            if source is None or source.data is not None:
                continue
            if _taken_back(graph, source, perm) is None:
                waiting.append(source)
            else:
                has_source = True
    is_kept = has_source and all(_stays(graph, context, layer, perm) for layer in region.layers)
    return region if is_kept else None


def _can_turn(graph: Graph, layer: Layer, rank: int) -> bool:
    """Whether a layer gives the same with its axes in another order, and nobody else reads it."""
    if kind_of(layer) not in ELEMENTWISE or only_reader(graph, layer.output) is None:
        return False
    values = [value for value in layer.inputs if value is not None]
    if any(value.info.has_per_axis_quantization for value in (*values, layer.output)):
        return False
    return layer.output.info.rank == rank and all(
        value.data is not None or value.info.rank == rank for value in values
    )


def _taken_back(graph: Graph, value: Value, perm: Permutation) -> Value | None:
    """What a value was before a transpose that another one takes back; None if it is not so."""
    producer = graph.producers.get(value)
    first = _perm(producer)
    if producer is None or first is None or len(first) != len(perm):
        return None
    is_inverse = all(first[axis] == index for index, axis in enumerate(perm))
    return producer["input"] if is_inverse else None


def _turned_info(info: TensorInfo, perm: Permutation) -> TensorInfo:
    """A tensor with its axes in the other order."""
    return info.with_shape(tuple(info.known_shape[axis] for axis in perm))


def _turned_constant(value: Value, perm: Permutation) -> Value:
    """A constant with its axes in the other order; it is broadcast as before."""
    assert value.data is not None
    data = value.data.reshape((1,) * (len(perm) - value.data.ndim) + value.data.shape)
    data = np.ascontiguousarray(data.transpose(perm))
    return Value(value.id, value.info.with_shape(data.shape), value.name, data)


def _stays(graph: Graph, context: PassContext, layer: Layer, perm: Permutation) -> bool:
    """Whether a layer stays on its backend with its axes in the other order."""
    return context.stays(
        layer, layer.operation, _turned_inputs(layer, perm), [_turned_info(layer.output.info, perm)]
    )


def _turned_inputs(layer: Layer, perm: Permutation) -> Sequence[Value | None]:
    """A layer's inputs with their axes in the other order."""
    return [
        value
        and (
            Value(value.id, _turned_info(value.info, perm), value.name)
            if value.data is None
            else _turned_constant(value, perm)
        )
        for value in layer.inputs
    ]


def _add_turned(rebuild: Rebuild, layer: Layer, region: _Region) -> None:
    """Add a layer with its axes in the other order."""
    inputs: list[Value | None] = []
    for value in layer.inputs:
        if value is None:
            inputs.append(None)
        elif value.data is not None:
            turned = _turned_constant(value, region.perm)
            assert turned.data is not None
            inputs.append(rebuild.constant(turned.data, turned.info, value.name))
        else:
            before = _taken_back(rebuild.graph, value, region.perm)
            inputs.append(rebuild.mapped(value if before is None else before))
    info = _turned_info(layer.output.info, region.perm)
    rebuild.replace(layer, layer.operation, inputs, [info])
