"""Activation functions of real numbers, in float32 or float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from armpy.core.numerics import activations
from armpy.core.numerics.activations import Float32Array
from armpy.core.numerics.elementary import ElementaryFunctions
from armpy.ops import Activation, ActivationFunction

RealActivation: TypeAlias = Callable[[Activation, ElementaryFunctions, Float32Array], Float32Array]
"""Computes a new array from the parameters, the functions to use, and `x`."""


def apply_activation(
    operation: Activation, functions: ElementaryFunctions, values: Float32Array
) -> Float32Array:
    """Compute an activation function.

    Returns
    -------
    ndarray, dtype and shape of `values`
        A new array.
    """
    return _FUNCTIONS[operation.function](operation, functions, values)


_FUNCTIONS: dict[ActivationFunction, RealActivation] = {
    ActivationFunction.SIGMOID: lambda _, f, x: activations.sigmoid(x, f),
    ActivationFunction.TANH: lambda op, f, x: activations.tanh(x, op.a, op.b, f),
    ActivationFunction.LINEAR: lambda op, _, x: x.dtype.type(op.a) * x + x.dtype.type(op.b),
    ActivationFunction.RELU: lambda _, __, x: np.maximum(x, x.dtype.type(0)),
    ActivationFunction.BOUNDED_RELU: lambda op, _, x: np.clip(
        x, x.dtype.type(op.b), x.dtype.type(op.a)
    ),
    ActivationFunction.SOFT_RELU: lambda _, f, x: activations.soft_relu(x, f),
    ActivationFunction.LEAKY_RELU: lambda op, _, x: activations.leaky_relu(x, op.a),
    ActivationFunction.ABS: lambda _, __, x: np.abs(x),
    ActivationFunction.SQRT: lambda _, __, x: np.sqrt(x),
    ActivationFunction.SQUARE: lambda _, __, x: np.square(x),
    ActivationFunction.ELU: lambda op, f, x: activations.elu(x, op.a, f),
    ActivationFunction.HARD_SWISH: lambda _, __, x: activations.hard_swish(x),
    ActivationFunction.GELU: lambda op, f, x: activations.gelu(x, op.approximate, f),
    ActivationFunction.MISH: lambda _, f, x: activations.mish(x, f),
}
