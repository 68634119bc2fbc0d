"""Concatenation in place: finds tensors that are written into the one they are parts of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import Concat, ScatterElements, ScatterNd, Stack
from armpy.ops.shapes import normalize_axis
from armpy_numba_acc.lowering.movement import RESHAPES
from armpy_numba_acc.passes.consumers import only_consumer
from armpy_numba_acc.program.memory import Join

_DEEPEST = 64
"""How deep tensors may lie in each other: what touches one touches all that it is in."""


def find_joins(view: SubgraphView) -> Mapping[Value, Join]:
    """The parts of concatenated tensors that can be written in place.

    They lie one after the other if no axis in front of the concatenated one is longer than
    1. A part has to be made in the region, for no other tensor of the caller's, and to be
    quantised like the whole. So is the tensor that a part is another shape of.

    A concatenated tensor that only a scattering layer reads is made where that layer's output is,
    which has other elements later: its parts are not written in place.
    """
    outside = set(view.outputs)
    scattered = {
        layer.inputs[0]: Join(layer.outputs[0], 0)
        for layer in view.layers
        if isinstance(layer.operation, ScatterElements | ScatterNd)
        and layer.inputs[0] is not None
        and only_consumer(view, layer.inputs[0], outside) is layer
        and (producer := view.producers.get(layer.inputs[0]))
        and isinstance(producer.operation, Concat)
    }
    joins: dict[Value, Join] = dict(scattered)
    depths: dict[Value, int] = {}
    for layer in view.layers:
        if not isinstance(layer.operation, Concat | Stack):
            continue
        whole = layer.outputs[0]
        axis = normalize_axis(layer.operation.axis, len(whole.info.known_shape))
        if whole in scattered or prod(whole.info.known_shape[:axis]) != 1:
            continue
        for value, offset in _parts(layer):
            for same in _reshaped(view, value):
                fits = same in view.producers and same not in outside and same not in joins
                depth = depths.get(same, 0) + 1
                if (
                    not fits
                    or depth > _DEEPEST
                    or same.info.quantization != whole.info.quantization
                ):
                    break
                joins[same] = Join(whole, offset)
                depths[whole] = max(depths.get(whole, 0), depth)
    return joins


def _reshaped(view: SubgraphView, value: Value) -> Iterator[Value]:
    """A tensor, and those that it is another shape of."""
    yield value
    while (layer := view.producers.get(value)) and isinstance(layer.operation, RESHAPES):
        value = layer["input"]
        yield value


def _parts(layer: Layer) -> Iterator[tuple[Value, int]]:
    """A layer's inputs with their offsets in the joined tensor."""
    offset = 0
    for value in layer.inputs:
        if value is not None:
            yield value, offset
            offset += value.info.size_bytes
