"""Operations on images and rows by their definitions, in real arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from armpy.ops import (
    Determinant,
    GridPadding,
    GridSample,
    LayerNormalization,
    MaxPoolWithIndices,
    Operation,
    Pooling3d,
    PoolingAlgorithm,
    RmsNormalization,
    SampleMode,
)
from armpy.types import DataLayout
from armpy_conformance.definitions.functions import (
    Definition,
    Numbers,
    clamped,
    padding_of,
    summarized,
)


def _normalized(operation: Any, inputs: Sequence[Numbers], _: Any) -> Sequence[Numbers]:
    """LayerNormalization and RmsNormalization; Any: either of them."""
    values = inputs[0]
    if isinstance(operation, LayerNormalization):
        values = values - values.mean(operation.axes, keepdims=True)
    power = np.mean(values**2, operation.axes, keepdims=True)
    result = values / np.sqrt(power + operation.eps)
    for combine, other in zip((np.multiply, np.add), inputs[1:], strict=False):
        result = combine(result, other)
    return (result,)


def _windows(operation: Any, image: Numbers, fill: float) -> Numbers:
    """Elements of every window over an image with its channels last, shape (n, ..., c, taps)."""
    rank = len(operation.pool_size)
    pairs = zip(operation.pool_size, operation.dilation, strict=True)
    extents = [(k - 1) * d + 1 for k, d in pairs]
    around = [padding_of(operation, image.shape[1 + i], e, i) for i, e in enumerate(extents)]
    padded = np.pad(image, ((0, 0), *around, (0, 0)), constant_values=fill)
    axes = tuple(range(1, rank + 1))
    views = np.lib.stride_tricks.sliding_window_view(padded, tuple(extents), axis=axes)
    steps = (slice(None, None, step) for step in operation.stride)
    gaps = (slice(None, None, step) for step in operation.dilation)
    windows = views[(slice(None), *steps, slice(None), *gaps)]
    return windows.reshape(*windows.shape[: rank + 2], -1)


def _pooled(operation: Pooling3d, inputs: Sequence[Numbers], _: object) -> Sequence[Numbers]:
    is_first = operation.data_layout is DataLayout.NCDHW
    volume = np.moveaxis(inputs[0], 1, 4) if is_first else inputs[0]
    is_max = operation.algorithm is PoolingAlgorithm.MAX
    windows = _windows(operation, volume, -np.inf if is_max else 0)
    inside = _windows(operation, np.ones_like(volume), 0)
    pooled = summarized(operation.algorithm, windows, inside, -1)
    return clamped(operation, np.moveaxis(pooled, 4, 1) if is_first else pooled)


def _pooled_with_indices(
    operation: MaxPoolWithIndices, inputs: Sequence[Numbers], _: object
) -> Sequence[Numbers]:
    image = inputs[0]
    sizes = image.shape[1:-1]
    places = np.arange(np.prod(sizes)).reshape(1, *sizes, 1)
    windows, where = (
        _windows(operation, array, fill) for array, fill in ((image, -np.inf), (places, -1))
    )
    best = np.argmax(windows, axis=-1)[..., None]
    where = np.broadcast_to(where, windows.shape)
    return tuple(np.take_along_axis(array, best, -1)[..., 0] for array in (windows, where))


def _hat(distance: Numbers) -> Numbers:
    """Weight of linear interpolation at a distance."""
    return np.asarray(np.maximum(1 - np.abs(distance), 0))


def _keys(distance: Numbers) -> Numbers:
    """Weight of cubic convolution at a distance, with -0.75."""
    d, a = np.abs(distance), -0.75
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * (d**3 - 5 * d**2 + 8 * d - 4)
    return np.asarray(np.where(d <= 1, near, np.where(d < 2, far, 0)))


def _sampled(operation: GridSample, inputs: Sequence[Numbers], _: object) -> Sequence[Numbers]:
    """Every element of the image, extended on all sides, with its weight in every sample."""
    image, grid = inputs
    weigh = _keys if operation.mode is SampleMode.CUBIC else _hat
    aligned = operation.align_corners
    more = 5  # as far as the cases' grids reach, and a filter further
    modes = {GridPadding.ZEROS: "constant", GridPadding.BORDER: "edge"}
    mode: Any = modes.get(operation.padding, "reflect" if aligned else "symmetric")
    extended = image
    weights = []
    for axis, size in enumerate(image.shape[1:-1], 1):
        around = [(0, 0)] * image.ndim
        around[axis] = (more * size, more * size)
        extended = np.pad(extended, around, mode)
        place = grid[..., image.ndim - 2 - axis]
        where = (place + 1) / 2 * (size - 1) if aligned else ((place + 1) * size - 1) / 2
        if operation.mode is SampleMode.NEAREST:
            where = np.rint(where)
        weights.append(weigh(where[..., None] - np.arange(-more * size, (more + 1) * size)))
    letters = "yxz"[: len(weights)]
    samples = "abc"[: len(weights)]
    terms = ",".join(f"n{samples}{letter}" for letter in letters)
    return (np.einsum(f"n{letters}k,{terms}->n{samples}k", extended, *weights, optimize=True),)


IMAGES: Mapping[type[Operation], Definition] = {
    Determinant: lambda _, inputs, __: (np.asarray(np.linalg.det(inputs[0])),),
    GridSample: _sampled,
    LayerNormalization: _normalized,
    MaxPoolWithIndices: _pooled_with_indices,
    Pooling3d: _pooled,
    RmsNormalization: _normalized,
}
"""Definitions for real numbers."""
