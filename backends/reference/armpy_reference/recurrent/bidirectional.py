"""Operands and outputs of operations that run over a sequence in both directions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops.operation import Array
from armpy_reference.recurrent.operands import time_major


def linked_inputs(
    sequence: Array, aux_input: Array | None, has_aux_weights: bool
) -> tuple[Array, Array]:
    """Inputs of the forward and the backward direction, in the order of time.

    Parameters
    ----------
    sequence : ndarray, shape (t, b, i)
    aux_input : ndarray, shape (t, b, a), optional
    has_aux_weights
        Whether both directions read both inputs, side by side as their weights are (see
        `linked_weights`), or the backward direction the auxiliary one only.
    """
    if aux_input is None:
        return sequence, sequence
    if not has_aux_weights:
        return sequence, aux_input
    both = np.concatenate([sequence, aux_input], axis=2)
    return both, both


def linked_weights(weights: Array, aux_weights: Array | None) -> Array:
    """Weights (n, i) of the input, with those (n, a) of the auxiliary input beside them."""
    return weights if aux_weights is None else np.concatenate([weights, aux_weights], axis=1)


def direction_outputs(
    outputs: Sequence[Array], forward_size: int, is_time_major: bool
) -> tuple[Array, Array]:
    """Time-major views for the forward and the backward direction to write to.

    Parameters
    ----------
    outputs : sequence of ndarray
        One for both directions, or one for each.
    forward_size
        Output size of the forward direction, which comes first where both share an output.

    Returns
    -------
    forward, backward : ndarray, shape (t, b, ...)
        The backward one runs against time, as that direction does.
    """
    views = [time_major(output, is_time_major) for output in outputs]
    if len(views) == 1:
        views = [views[0][..., :forward_size], views[0][..., forward_size:]]
    return views[0], views[1][::-1]
