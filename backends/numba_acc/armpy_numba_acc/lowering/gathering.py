"""Lowers operations that gather slices by constant indices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from armpy.errors import InvalidArgumentError
from armpy.graph import Layer
from armpy.ops import Gather, GatherNd
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_numba_acc.kernels import Kernel
from armpy_numba_acc.lowering.emitter import Emitter
from armpy_numba_acc.lowering.registry import Lowering


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Constant indices: compiled code cannot say that one is out of range."""
    indices = inputs[1]
    return "" if indices is not None and indices.is_constant else "the indices are not constant"


def lower_gather(emit: Emitter, layer: Layer) -> None:
    """Slices along one axis."""
    operation = layer.operation
    assert isinstance(operation, Gather)
    value, indices = layer.inputs[0], _indices(layer)
    assert value is not None
    shape = value.info.known_shape
    axis, batch = operation.resolved_axes(len(shape), indices.ndim)
    run = prod(shape[axis + 1 :]) * value.info.data_type.size_bytes
    _check_range(indices, shape[axis], layer)
    batches, outers = prod(shape[:batch]), prod(shape[batch:axis])
    _emit(emit, layer, indices * run, (batches, outers, run, shape[axis] * run))


def lower_gather_nd(emit: Emitter, layer: Layer) -> None:
    """Slices by coordinates along the outer axes."""
    value, indices = layer.inputs[0], _indices(layer)
    assert value is not None
    shape, depth = value.info.known_shape, indices.shape[-1]
    size = value.info.data_type.size_bytes
    offsets = np.zeros(indices.shape[:-1], np.int64)
    for axis in range(depth):
        _check_range(indices[..., axis], shape[axis], layer)
        offsets += indices[..., axis] * (prod(shape[axis + 1 :]) * size)
    _emit(emit, layer, offsets, (1, 1, prod(shape[depth:]) * size, 0))


def _indices(layer: Layer) -> Array:
    """The indices as int64."""
    value = layer.inputs[1]
    assert value is not None
    assert value.data is not None
    return value.data.astype(np.int64)


def _check_range(indices: Array, size: int, layer: Layer) -> None:
    """Check that indices lie within an axis.

    Raises
    ------
    InvalidArgumentError
        If one does not.
    """
    wrong = indices[(indices < 0) | (indices >= size)]
    if wrong.size:
        raise InvalidArgumentError(
            "an index is out of range",
            where=f"NumbaAcc / '{layer.name}'",
            expected=f"0 to {size - 1}",
            actual=str(wrong.flat[0]),
        )


def _emit(emit: Emitter, layer: Layer, offsets: Array, numbers: tuple[int, int, int, int]) -> None:
    """Add the command."""
    batches, outers, run, pitch = numbers
    value = layer.inputs[0]
    assert value is not None
    arguments = (
        emit.source(value),
        emit.target(layer.outputs[0]),
        emit.constant(offsets),
        batches,
        outers,
        offsets.size // batches,
        run,
        pitch,
    )
    emit.command(Kernel("gather_runs"), arguments, layer.name)


LOWERINGS = {Gather: Lowering(check, lower_gather), GatherNd: Lowering(check, lower_gather_nd)}
