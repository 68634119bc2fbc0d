"""Convolutions of volumes: the order of axes, and how much padding goes ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from armpy.ops.operation import Array
from armpy.types import DataLayout


def volume_shape(shape: Sequence[int], layout: DataLayout) -> tuple[int, ...]:
    """Shape of a volume in the order (n, d, h, w, c)."""
    n, *sizes = shape
    return (n, *sizes) if layout is DataLayout.NDHWC else (n, *sizes[1:], sizes[0])


def run_channels_last_3d(
    run: Callable[[Array, Array], None], volume: Array, out: Array, layout: DataLayout
) -> None:
    """Call ``run(volume, out)`` with both as C-contiguous arrays of shape (n, d, h, w, c)."""
    if layout is DataLayout.NDHWC:
        run(volume, out)
        return
    result = np.empty(volume_shape(out.shape, layout), out.dtype)
    run(np.ascontiguousarray(np.moveaxis(volume, 1, 4)), result)
    out[...] = np.moveaxis(result, 4, 1)
