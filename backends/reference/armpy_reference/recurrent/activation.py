"""Activation functions of recurrent operations in float."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.ops import RecurrentActivation

Float32Array: TypeAlias = npt.NDArray[np.float32]

_BOUNDS = {
    RecurrentActivation.RELU: (0.0, np.inf),
    RecurrentActivation.RELU1: (-1.0, 1.0),
    RecurrentActivation.RELU6: (0.0, 6.0),
}


def activate(values: Float32Array, activation: RecurrentActivation) -> Float32Array:
    """Apply an activation function.

    Returns
    -------
    ndarray, float32, shape of `values`
        May be `values` itself.
    """
    if activation is RecurrentActivation.SIGMOID:
        # The exponential of a large number is infinite, which gives the right 0.
        return np.float32(1) / (np.float32(1) + np.exp(-values))
    if activation is RecurrentActivation.TANH:
        return np.tanh(values)
    if activation is RecurrentActivation.NONE:
        return values
    low, high = _BOUNDS[activation]
    return np.clip(values, np.float32(low), np.float32(high))


def as_float32(values: npt.NDArray[Any]) -> Float32Array:
    """Convert to float32, without a copy where that is the type."""
    return np.asarray(values, np.float32)
