"""Finds lists that a loop writes one element of in each turn: these need not be copied."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Layer, Value
from armpy.ops import Comparison, ComparisonOperation, Select
from armpy.types import DataType

_EQUAL = Comparison(ComparisonOperation.EQUAL)


@dataclass(frozen=True, slots=True)
class Write:
    """A carried tensor of which one element along its first axis is exchanged."""

    number: int  # of the carried tensor
    whole: Value  # the tensor, the inserted one, and the position
    element: Value
    index: Value
    layers: tuple[Layer, ...]  # the body's layers for it


def find_writes(body: Graph) -> Mapping[int, Write]:
    """Return the writes that can go into the carried tensor itself, by the tensor's number.

    The core writes an exchanged element as ``select(positions == index, element, whole)``. No other
    layer may read the turn's input tensor or the result.
    """
    pairs = enumerate(zip(body.inputs, body.outputs, strict=False))
    writes = (_write(body, number, whole, result) for number, (whole, result) in pairs)
    return {write.number: write for write in writes if write is not None}


def _write(body: Graph, number: int, whole: Value, result: Value) -> Write | None:
    """The exchange that a carried tensor comes from."""
    layer = body.producers.get(result)
    if layer is None or not isinstance(layer.operation, Select):
        return None
    here, element, other = layer.inputs
    compare = None if here is None else body.producers.get(here)
    if here is None or element is None or compare is None or other is not whole:
        return None
    if not _is_read_by(body, whole, layer) or not _is_read_by(body, here, layer):
        return None
    if result in body.consumers or body.outputs.count(result) != 1:
        return None
    infos = (whole.info, element.info, result.info)
    shape = whole.info.known_shape
    is_one = bool(shape) and element.info.known_shape == (1, *shape[1:])
    if not is_one or len({(info.data_type, info.quantization) for info in infos}) != 1:
        return None
    index = _position(compare, whole)
    return None if index is None else Write(number, whole, element, index, (compare, layer))


def _is_read_by(body: Graph, value: Value, layer: Layer) -> bool:
    return body.consumers.get(value) == (layer,) and value not in body.outputs


def _position(compare: Layer, whole: Value) -> Value | None:
    """Return the index that a layer compares with all positions along a tensor's first axis."""
    positions, index = compare.inputs
    if compare.operation != _EQUAL or positions is None or index is None:
        return None
    length, *others = whole.info.known_shape
    is_index = index.info.num_elements == 1 and index.info.data_type in (
        DataType.SIGNED32,
        DataType.SIGNED64,
    )
    if (
        not is_index
        or positions.data is None
        or positions.data.shape != (length, *[1] * len(others))
    ):
        return None
    return index if np.array_equal(positions.data.ravel(), np.arange(length)) else None
