"""Lowers operations that gather slices by indices."""

from __future__ import annotations

from math import prod

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.core.symbolic import is_traced
from armpy.errors import InvalidArgumentError
from armpy.graph import Layer
from armpy.ops import Gather, GatherNd
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.operands import anything, expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.call import Call
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Loops of a lookup; numbers as for `armpy_numba_acc.machine.calls.gathering.GatherCall`."""

    batches: int
    outers: int
    count: int
    run: int
    pitch: int
    # Of each axis that an index counts along its size, bytes from one of its elements to the next,
    # and the least index.
    axes: tuple[tuple[int, int, int], ...]


def lower_gather(emit: Emitter, layer: Layer) -> None:
    """Slices along one axis."""
    operation = expect(layer.operation, Gather)
    value, indices = layer["input"], layer["indices"]
    shape, places = value.info.known_shape, indices.info.known_shape
    axis, batch = operation.resolved_axes(len(shape), len(places))
    run = prod(shape[axis + 1 :]) * value.info.data_type.size_bytes
    lookup = _Lookup(
        batches=prod(shape[:batch]),
        outers=prod(shape[batch:axis]),
        count=prod(places[batch:]),
        run=run,
        pitch=shape[axis] * run,
        axes=((shape[axis], run, -shape[axis] if operation.wraps_negative else 0),),
    )
    _emit(emit, layer, lookup)


def lower_gather_nd(emit: Emitter, layer: Layer) -> None:
    """Slices by coordinates along the outer axes."""
    operation = expect(layer.operation, GatherNd)
    value, indices = layer["input"], layer["indices"]
    shape, places = value.info.known_shape, indices.info.known_shape
    size, batch = value.info.data_type.size_bytes, operation.batch_dims
    indexed = range(batch, batch + places[-1])
    lookup = _Lookup(
        batches=prod(shape[:batch]),
        outers=1,
        count=prod(places[batch:-1]),
        run=prod(shape[indexed.stop :]) * size,
        pitch=prod(shape[batch:]) * size,
        axes=tuple(
            (
                shape[axis],
                prod(shape[axis + 1 :]) * size,
                -shape[axis] if operation.wraps_negative else 0,
            )
            for axis in indexed
        ),
    )
    _emit(emit, layer, lookup)


def _emit(emit: Emitter, layer: Layer, lookup: _Lookup) -> None:
    """Add the command: constant indices are checked, and turned into offsets, now."""
    output, indices = layer.output, layer["indices"]
    begin = None if indices.data is None else _begin(indices.data, lookup)
    if begin is not None:
        emit.place_part(output, layer["input"], begin)
        return
    numbers = lookup.batches, lookup.outers, lookup.count, lookup.run, lookup.pitch
    places = emit.source(layer["input"]), emit.target(output)
    num_bytes = 2 * output.info.size_bytes + indices.info.size_bytes
    call: Call
    # Offsets that follow from traced sizes are computed whenever the network runs.
    if indices.data is not None and not is_traced(
        *(number for axis in lookup.axes for number in axis)
    ):
        offsets = emit.constant(_offsets(indices.data.astype(np.int64), lookup, layer))
        call = calls.GatherRuns(*places, *numbers, offsets)
    else:
        call = calls.GatherByIndex(
            *places,
            *numbers,
            index_bytes=indices.info.data_type.size_bytes,
            indices=emit.source(indices),
            axes=emit.table(lookup.axes),
            depth=len(lookup.axes),
            failure=emit.failure(),
        )
    emit(call, layer.name, num_bytes=num_bytes)


def _begin(indices: Array, lookup: _Lookup) -> int | None:
    """Return the offset in bytes of adjacent slices; None if slices have to be moved.

    The axes' sizes may be traced.
    """
    depth = len(lookup.axes)
    rows = indices.reshape(indices.size // max(depth, 1), depth).astype(np.int64)
    is_run = len(rows) == 1 or (depth == 1 and bool(np.all(np.diff(rows[:, 0]) == 1)))
    if not (rows.size and is_run and lookup.batches * lookup.outers == 1):
        return None
    begin = 0
    firsts, lasts = rows[[0, -1]].tolist()
    for first, last, (size, pitch, least) in zip(firsts, lasts, lookup.axes, strict=True):
        if first < least or last >= size or first < 0 <= last:
            return None
        begin = begin + (first if first >= 0 else size + first) * pitch
    return begin


def _offsets(indices: Array, lookup: _Lookup, layer: Layer) -> Array:
    """Bytes from the beginning of a slice to each place."""
    coordinates = indices.reshape(lookup.batches * lookup.count, len(lookup.axes))
    offsets = np.zeros(len(coordinates), np.int64)
    for along, (size, pitch, least) in zip(coordinates.T, lookup.axes, strict=True):
        _check_range(along, least, size, layer)
        offsets += np.where(along < 0, along + size, along) * pitch
    return offsets


def _check_range(indices: Array, least: int, size: int, layer: Layer) -> None:
    """Check that indices lie within an axis."""
    wrong = indices[(indices < least) | (indices >= size)]
    if wrong.size:
        raise InvalidArgumentError(
            "an index is out of range",
            where=f"NumbaAcc / '{layer.name}'",
            expected=f"{least} to {size - 1}",
            actual=str(wrong.flat[0]),
        )


LOWERINGS = {
    Gather: LoweringRule(anything, lower_gather),
    GatherNd: LoweringRule(anything, lower_gather_nd),
}
