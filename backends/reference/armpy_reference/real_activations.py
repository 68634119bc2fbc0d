"""Activation functions of real numbers, in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.ops import Activation, ActivationFunction
from armpy_reference.elementary_functions import ElementaryFunctions

Float32Array: TypeAlias = npt.NDArray[Any]  # Any: float32; a ufunc's type is not narrower
RealActivation: TypeAlias = Callable[[Activation, ElementaryFunctions, Float32Array], Float32Array]
"""Computes a new array from the parameters, the functions to use, and `x`."""

_ROOT_OF_HALF = np.float32(0.7071067811865476)
_ROOT_OF_TWO_OVER_PI = np.float32(0.7978845608028654)


def apply_activation(
    operation: Activation, functions: ElementaryFunctions, values: Float32Array
) -> Float32Array:
    """Compute an activation function.

    Parameters
    ----------
    operation : Activation
    functions : ElementaryFunctions
    values : ndarray, float32, shape (...)

    Returns
    -------
    ndarray, float32, shape of `values`
        A new array.
    """
    return _FUNCTIONS[operation.function](operation, functions, values)


def _sigmoid(_: Activation, f: ElementaryFunctions, x: Float32Array) -> Float32Array:
    # The exponential of a large number is infinite, which gives the right 0.
    result: Float32Array = np.asarray(f.exp(np.negative(x)))  # scalars stay arrays
    result += np.float32(1)
    np.reciprocal(result, out=result)
    return result


def _tanh(operation: Activation, f: ElementaryFunctions, x: Float32Array) -> Float32Array:
    if operation.a == operation.b == 1:
        return f.tanh(x)
    return np.float32(operation.a) * f.tanh(np.float32(operation.b) * x)


def _bounded(operation: Activation, _: ElementaryFunctions, x: Float32Array) -> Float32Array:
    return np.clip(x, np.float32(operation.b), np.float32(operation.a))


def _soft_relu(_: Activation, f: ElementaryFunctions, x: Float32Array) -> Float32Array:
    # log(1 + exp(x)) without an infinite intermediate result.
    return np.maximum(x, np.float32(0)) + np.log1p(f.exp(-np.abs(x)))


def _leaky_relu(operation: Activation, _: ElementaryFunctions, x: Float32Array) -> Float32Array:
    return np.where(x > 0, x, x * np.float32(operation.a))


def _elu(operation: Activation, f: ElementaryFunctions, x: Float32Array) -> Float32Array:
    return np.where(x >= 0, x, np.float32(operation.a) * f.expm1(np.minimum(x, np.float32(0))))


def _hard_swish(_: Activation, __: ElementaryFunctions, x: Float32Array) -> Float32Array:
    result = np.asarray(x + np.float32(3))
    np.clip(result, np.float32(0), np.float32(6), out=result)
    result *= x
    result /= np.float32(6)
    return result


def _gelu(operation: Activation, f: ElementaryFunctions, x: Float32Array) -> Float32Array:
    half = np.float32(0.5) * x
    if not operation.approximate:
        return half * f.erfc(x * -_ROOT_OF_HALF)
    cubic = x + np.float32(0.044715) * x * x * x
    return half * (np.float32(1) + f.tanh(_ROOT_OF_TWO_OVER_PI * cubic))


_FUNCTIONS: dict[ActivationFunction, RealActivation] = {
    ActivationFunction.SIGMOID: _sigmoid,
    ActivationFunction.TANH: _tanh,
    ActivationFunction.LINEAR: lambda op, _, x: np.float32(op.a) * x + np.float32(op.b),
    ActivationFunction.RELU: lambda _, __, x: np.maximum(x, np.float32(0)),
    ActivationFunction.BOUNDED_RELU: _bounded,
    ActivationFunction.SOFT_RELU: _soft_relu,
    ActivationFunction.LEAKY_RELU: _leaky_relu,
    ActivationFunction.ABS: lambda _, __, x: np.abs(x),
    ActivationFunction.SQRT: lambda _, __, x: np.sqrt(x),
    ActivationFunction.SQUARE: lambda _, __, x: np.square(x),
    ActivationFunction.ELU: _elu,
    ActivationFunction.HARD_SWISH: _hard_swish,
    ActivationFunction.GELU: _gelu,
}
