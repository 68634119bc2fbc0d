"""Ways to compute a layer that differ from CpuRef's, all of them correct or declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy import ops
from armpy.backend import HostTensorHandle, WorkloadInfo
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType


def by_reference(
    operation: Operation, info: WorkloadInfo, given: Sequence[Array | None]
) -> list[Array]:
    """What CpuRef computes."""
    arrays = [np.empty(i.known_shape, i.data_type.dtype) for i in info.outputs]
    handles = [
        None if i is None or a is None else HostTensorHandle(i, a)
        for i, a in zip(info.inputs, given, strict=True)
    ]
    results = [HostTensorHandle(i, a) for i, a in zip(info.outputs, arrays, strict=True)]
    ReferenceWorkloadFactory().create_workload(operation, info).execute(handles, results)
    return arrays


def doubles(operation: Operation, info: WorkloadInfo, given: Sequence[Array | None]) -> list[Array]:
    """Compute in float64."""
    wide = replace(
        info,
        inputs=tuple(None if i is None else _wide(i) for i in info.inputs),
        outputs=tuple(map(_wide, info.outputs)),
        constants=tuple(None if a is None else a.astype(np.float64) for a in info.constants),
    )
    arrays = [None if a is None else a.astype(np.float64) for a in given]
    with np.errstate(all="ignore"):
        return [a.astype(np.float32) for a in by_reference(operation, wide, arrays)]


def _wide(info: TensorInfo) -> TensorInfo:
    """The same in float64."""
    return TensorInfo(info.shape, DataType.FLOAT64)


def flushed(operation: Operation, info: WorkloadInfo, given: Sequence[Array | None]) -> list[Array]:
    """Compute without subnormal numbers."""
    arrays = [None if a is None else _flush(a) for a in given]
    return [_flush(a) for a in by_reference(operation, info, arrays)]


def _flush(array: Array) -> Array:
    """Zeros in the place of subnormal numbers."""
    is_subnormal = np.abs(array) < np.finfo(array.dtype).tiny
    return np.where(is_subnormal, np.copysign(np.zeros((), array.dtype), array), array)


def without_nan(
    operation: Operation, info: WorkloadInfo, given: Sequence[Array | None]
) -> list[Array]:
    """Compute maxima and minima that are never NaN beside a number."""
    function = getattr(operation, "operation", None)
    ufuncs = {ops.BinaryOperation.MAXIMUM: np.fmax, ops.BinaryOperation.MINIMUM: np.fmin}
    arrays = [array for array in given if array is not None]
    is_clamped = operation.attributes().get("activation") is not ops.FusedActivation.NONE
    if function in ufuncs and not is_clamped:
        return [ufuncs[function](arrays[0], arrays[1])]
    return by_reference(operation, info, given)


def half_sums(
    operation: Operation, info: WorkloadInfo, given: Sequence[Array | None]
) -> list[Array]:
    """Add products in float16, rounded at each step."""
    assert isinstance(operation, ops.FullyConnected)
    assert given[0] is not None
    assert given[1] is not None
    inputs, weights = given[0], given[1]
    rows = inputs.reshape(-1, weights.shape[1])
    sums = np.zeros((rows.shape[0], weights.shape[0]), np.float16)
    with np.errstate(all="ignore"):
        for k in range(weights.shape[1]):
            sums += rows[:, k : k + 1] * weights[:, k]
        if len(given) > 2 and given[2] is not None:
            sums += given[2]
    return [_activated(operation, sums).reshape(info.outputs[0].known_shape)]


def _activated(operation: ops.FullyConnected, sums: Array) -> Array:
    """Sums within the bounds of the layer's own activation."""
    bounds = {"RELU": (0, np.inf), "RELU1": (-1, 1), "RELU6": (0, 6)}
    return np.clip(sums, *bounds.get(operation.activation.name, (-np.inf, np.inf)))
