"""Share of a recurrent layer's inputs in its gates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armpy.graph import Layer
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.tiles import F32
from armpy_numba_acc.lowering.weighted_real import UNBOUNDED, Rows, emit_real, pack_real
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter


def emit_inputs_share(
    emit: Emitter,
    layer: Layer,
    weights: npt.NDArray[np.float32],
    bias: npt.NDArray[np.float32],
) -> Buffer:
    """Multiply the inputs of all times and batches with their weights, by one command.

    Parameters
    ----------
    weights : ndarray, float32, shape (depth, columns)
    bias : ndarray, float32, shape (columns)

    Returns
    -------
    Buffer
        A row of columns for each row of the input.
    """
    source, (depth, columns) = layer["input"], weights.shape
    rows = source.info.num_elements // depth
    share = emit.scratch(rows * columns * 4)
    patches = Patches(emit.source(source), 1, 1, rows, 0, 0, depth * 4, (0,), depth)
    packed = pack_real(emit, F32, patches, weights.T[:, np.newaxis], bias)
    emit_real(emit, patches, packed, Rows(share, columns), UNBOUNDED, layer.name)
    return share
