"""Convolutions of volumes by their definitions, in real arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from armpy.ops import Convolution3d, Operation, TransposeConvolution3d
from armpy.types import DataLayout
from armpy_conformance.definitions.functions import (
    Definition,
    Numbers,
    bias_of,
    clamped,
    padding_of,
)


def _channels_last(operation: Any, volume: Numbers) -> Numbers:  # Any: an operation with a layout
    is_first = operation.data_layout is DataLayout.NCDHW
    return np.moveaxis(volume, 1, 4) if is_first else volume


def _as_given(operation: Any, volume: Numbers) -> Numbers:  # Any: an operation with a layout
    """An NDHWC volume in the operation's layout."""
    is_first = operation.data_layout is DataLayout.NCDHW
    return np.moveaxis(volume, 4, 1) if is_first else volume


def _meetings(
    operation: Any, sizes: Sequence[int], kernel: Sequence[int], reach: Sequence[int]
) -> list[tuple[Numbers, Numbers, Numbers]]:
    """Per axis: window, element of the kernel and element that it meets; Any: of windows."""
    meetings = []
    for axis, (count, k, size) in enumerate(zip(sizes, kernel, reach, strict=True)):
        extent = (k - 1) * operation.dilation[axis] + 1
        before, _ = padding_of(operation, size, extent, axis)
        window, tap = (a.reshape(-1) for a in np.indices((count, k)))
        meets = window * operation.stride[axis] + tap * operation.dilation[axis] - before
        inside = (meets >= 0) & (meets < size)
        meetings.append((window[inside], tap[inside], meets[inside]))
    return meetings


def _groups(channels: int, weights: Numbers) -> list[tuple[slice, slice]]:
    """Input channels and filters of each group."""
    depth = weights.shape[4]
    own = len(weights) * depth // channels
    return [
        (slice(g * depth, (g + 1) * depth), slice(g * own, (g + 1) * own))
        for g in range(channels // depth)
    ]


def _convolved(
    operation: Convolution3d, inputs: Sequence[Numbers], outputs: Sequence[Any]
) -> Sequence[Numbers]:
    volume, weights = _channels_last(operation, inputs[0]), inputs[1]
    out = np.moveaxis(np.zeros(outputs[0].known_shape), *_axes(operation))
    groups = _groups(volume.shape[4], weights)
    axes = _meetings(operation, out.shape[1:4], weights.shape[1:4], volume.shape[1:4])
    for (z, kz, from_z), (y, ky, from_y), (x, kx, from_x) in itertools.product(
        *(list(zip(*axis, strict=True)) for axis in axes)
    ):
        for channels, own in groups:
            part = volume[:, from_z, from_y, from_x, channels]
            out[:, z, y, x, own] += part @ weights[own, kz, ky, kx].T
    return clamped(operation, _as_given(operation, out + bias_of(inputs)))


def _spread(
    operation: TransposeConvolution3d, inputs: Sequence[Numbers], outputs: Sequence[Any]
) -> Sequence[Numbers]:
    volume, weights = _channels_last(operation, inputs[0]), inputs[1]
    out = np.moveaxis(np.zeros(outputs[0].known_shape), *_axes(operation))
    groups = _groups(volume.shape[4], weights)
    axes = _meetings(operation, volume.shape[1:4], weights.shape[1:4], out.shape[1:4])
    for (z, kz, to_z), (y, ky, to_y), (x, kx, to_x) in itertools.product(
        *(list(zip(*axis, strict=True)) for axis in axes)
    ):
        for channels, own in groups:
            part = volume[:, z, y, x, channels]
            out[:, to_z, to_y, to_x, own] += part @ weights[own, kz, ky, kx].T
    return clamped(operation, _as_given(operation, out + bias_of(inputs)))


def _axes(operation: Any) -> tuple[int, int]:  # Any: an operation with a layout
    """Return where the channels are, and where they are to be."""
    return (1 if operation.data_layout is DataLayout.NCDHW else 4), 4


VOLUMES: Mapping[type[Operation], Definition] = {
    Convolution3d: _convolved,
    TransposeConvolution3d: _spread,
}
