"""Views: finds transposes and slices that attention looks through.

Notes
-----
Its kernel takes bytes from row to row, head to head and batch to batch. So what gives queries, keys
and values their axes of heads, and takes them away from its output, need not move anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import (
    Attention,
    Gather,
    Slice,
    Splitter,
    StridedSlice,
    Transpose,
    Unstack,
)
from armpy.ops.operation import Array
from armpy.ops.shapes import normalize_axis
from armpy_numba_acc.lowering.movement import RESHAPES
from armpy_numba_acc.lowering.moves import stand_in
from armpy_numba_acc.lowering.stand_ins import stand_in_of
from armpy_numba_acc.passes.consumers import only_consumer
from armpy_numba_acc.program.views import TensorView, Views

_MOVES = (*RESHAPES, Gather, Slice, Splitter, StridedSlice, Transpose, Unstack)
_OPERANDS = slice(0, 3)
"""Queries, keys and values among the inputs of attention."""


def find_views(view: SubgraphView) -> Views:
    """Return the tensors that attention reads and writes where they lie."""
    readers = [layer for layer in view.layers if isinstance(layer.operation, Attention)]
    if not readers:
        return Views()
    views = _read(view)
    absorbed: dict[Layer, tuple[Layer, ...]] = {}
    joined: set[Layer] = set()
    for reader in readers:
        above = [layer for layer in _above(view, views, reader) if layer not in joined]
        joined.update(above)
        below, written = _written(view, views, reader)
        if written is not None:
            views[reader.output] = written
        absorbed[reader] = (*above, *below)
    return Views(views, absorbed)


def _read(view: SubgraphView) -> dict[Value, TensorView]:
    """Operands of attention, and what lies between them and the tensors that they are parts of."""
    outside, refused = set(view.outputs), set[Layer]()
    while True:
        looked_through = _looked_through(view, outside, refused)
        sizes = [
            size
            for layer in looked_through
            for value in layer.outputs
            for size in value.info.known_shape
        ]
        views: dict[Value, TensorView] = {}
        failed = set[Layer]()
        for layer in view.layers:
            if layer in looked_through:
                failed.update(() if _follow(layer, views, sizes) else (layer,))
            elif isinstance(layer.operation, Attention):
                operands = [value for value in layer.inputs[_OPERANDS] if value in views]
                odd = [value for value in operands if not _has_rows(views[value].part)]
                failed.update(view.producers[value] for value in odd)
        if not failed:
            return views
        refused |= failed


def _looked_through(view: SubgraphView, outside: set[Value], refused: set[Layer]) -> set[Layer]:
    """Layers whose outputs nothing needs but attention, as operands."""
    layers = set[Layer]()
    for layer in reversed(view.layers):
        if not isinstance(layer.operation, _MOVES) or layer in refused:
            continue
        is_read = [
            reader in layers
            if not isinstance(reader.operation, Attention)
            else value not in reader.inputs[_OPERANDS.stop :]
            for value in layer.outputs
            for reader in view.consumers.get(value, ())
        ]
        if is_read and all(is_read) and outside.isdisjoint(layer.outputs):
            layers.add(layer)
    return layers


def _follow(layer: Layer, views: dict[Value, TensorView], sizes: Sequence[int]) -> bool:
    """Add views of what a layer gives; False if its elements have to be moved.

    Parameters
    ----------
    sizes
        Those that tensors are cut at; some may be traced where the tensors' own are not.
    """
    source = layer.inputs[0]
    if source is None:
        return False
    before = views.get(source)
    if before is None:
        info = source.info
        base = stand_in_of(info.known_shape, info.data_type.size_bytes, *sizes)
        before = TensorView(source, base, base)
    try:
        parts = list(_parts(layer, before.part))
    except NotImplementedError:  # stand-ins of traced sizes do not know all views
        return False
    if len(parts) < len(layer.outputs):
        return False
    for value, part in zip(layer.outputs, parts, strict=True):
        views[value] = TensorView(before.whole, before.base, part)
    return True


def _parts(layer: Layer, whole: Array) -> Iterator[Array]:
    """The outputs of a layer that moves elements as views of its input; none if they are not."""
    operation = layer.operation
    if isinstance(operation, RESHAPES):
        yield from _reshaped(whole, layer.output)
    elif isinstance(operation, Transpose):
        yield whole.transpose(operation.perm)
    elif isinstance(operation, Slice):
        shape = layer.output.info.known_shape
        ranges = zip(operation.begin or (), shape, strict=True)
        yield whole[tuple(slice(begin, begin + size) for begin, size in ranges)]
    elif isinstance(operation, StridedSlice):
        index = operation.index(whole.shape)
        if None not in index:
            yield whole[(*index, ...)]
    elif isinstance(operation, Gather):
        axis, number = normalize_axis(operation.axis, whole.ndim), layer["indices"].data
        if number is not None and number.ndim == 0 and 0 <= number < whole.shape[axis]:
            yield whole[(slice(None),) * axis + (int(number),)]
    elif isinstance(operation, Splitter | Unstack):
        axis, start = normalize_axis(operation.axis or 0, whole.ndim), 0
        for output in layer.outputs:
            size = output.info.known_shape[axis] if isinstance(operation, Splitter) else 1
            part = whole[(slice(None),) * axis + (slice(start, start + size),)]
            yield from _reshaped(part, output)
            start += size


def _reshaped(part: Array, output: Value) -> Iterator[Array]:
    """A view with a tensor's shape; none if elements would have to be copied."""
    reshaped = part.reshape(output.info.known_shape)
    if not isinstance(reshaped, np.ndarray) or np.may_share_memory(reshaped, part):
        yield reshaped


def _has_rows(part: Array) -> bool:
    """Return whether elements lie side by side along the last axis."""
    return part.shape[-1] == 1 or part.strides[-1] == part.itemsize


def _above(view: SubgraphView, views: dict[Value, TensorView], reader: Layer) -> list[Layer]:
    """Layers whose outputs a layer reads through views."""
    layers: list[Layer] = []
    waiting = list(reader.inputs[_OPERANDS])
    while waiting:
        value = waiting.pop()
        layer = view.producers.get(value) if value is not None else None
        if value in views and layer is not None and layer not in layers:
            layers.append(layer)
            waiting += layer.inputs[:1]
    return layers[::-1]


def _written(
    view: SubgraphView, views: dict[Value, TensorView], reader: Layer
) -> tuple[tuple[Layer, ...], TensorView | None]:
    """Transposes after attention, and where its output lies in theirs.

    Other attention may look through the same layers: then what they move is there, not what they
    give.
    """
    outside, below, value = set(view.outputs), list[Layer](), reader.output
    while True:
        layer = only_consumer(view, value, outside)
        if layer is None or not isinstance(layer.operation, (*RESHAPES, Transpose)):
            break
        if layer.output in views:
            break
        below.append(layer)
        value = layer.output
    while below:
        written = _written_into(reader.output, below)
        if written is not None and any(isinstance(layer.operation, Transpose) for layer in below):
            return tuple(below), written
        below.pop()
    return (), None


def _written_into(value: Value, layers: list[Layer]) -> TensorView | None:
    """Return where a tensor lies in what layers make of it; None if rows are torn."""
    last = layers[-1].output
    part = base = stand_in(last.info)
    for layer in reversed(layers):
        if isinstance(layer.operation, Transpose):
            part = part.transpose(np.argsort(layer.operation.perm or ()).tolist())
            continue
        try:
            parts = list(_reshaped(part, layer["input"]))
        except NotImplementedError:
            return None
        if not parts:
            return None
        part = parts[0]
    return TensorView(last, base, part) if _has_rows(part) else None
