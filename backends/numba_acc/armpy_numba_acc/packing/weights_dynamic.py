"""Integer weights that are multiplied with floats, which are quantised for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.origins import PackedArray
from armpy_numba_acc.packing.panels import in_panels, side_by_side
from armpy_numba_acc.packing.weights_real import bias_origins
from armpy_numba_acc.packing.weights_u8 import lines_of_groups, lines_origin

Array = npt.NDArray[Any]  # Any: integers of any width, or float32


def pack_weights_dynamic(
    isa: Isa,
    weights: Array,
    scales: Array,
    bias: Array | None,
    width: int,
    arranged: Callable[[Array], Array] = lambda values: values,
) -> PackedArray:
    """Weights for `armpy_numba_acc.tiles.finish.real_finish.DynamicFinish`.

    Parameters
    ----------
    weights : ndarray, int8, shape (columns, taps, depth)
    scales : ndarray, float32, shape (columns,)
        Of the weights.
    bias : ndarray, float32, shape (columns,), optional
        Zeros if left out.
    width
        Columns of a panel; the last one is filled up with zeros.
    arranged : callable, optional
        As for `armpy_numba_acc.packing.weights_u8.pack_weights_u8`.

    Returns
    -------
    PackedArray
        uint8, shape (panels, bytes): each panel's sums of weights as int32, its scales and bias as
        float32, then its lines.
    """
    heads = np.zeros((len(weights), 3), np.int32)
    heads[:, 0] = weights.sum(axis=(1, 2), dtype=np.int64)
    heads[:, 1] = scales.astype(np.float32).view(np.int32)
    if bias is not None:
        heads[:, 2] = bias.astype(np.float32).view(np.int32)
    head = in_panels(heads, width).swapaxes(1, 2)
    panels = side_by_side(head, lines_of_groups(isa, arranged(weights), width))
    origin = lines_origin(isa, weights, panels, width, arranged)
    return PackedArray(panels, (origin, *bias_origins(bias, width, 8 * width, panels.shape[1])))
