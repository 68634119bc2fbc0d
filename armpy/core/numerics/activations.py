"""Activation functions of float32, or float64, that are more than one function of NumPy's.

Each returns a new array of the shape of `values`. What it needs of elementary functions it is
given: quick ones for tensors, those that are rounded correctly for tables.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.numerics.elementary import FAST, ElementaryFunctions

Float32Array: TypeAlias = npt.NDArray[Any]  # Any: float32; a ufunc's type is not narrower

_ROOT_OF_HALF = 0.7071067811865476
_ROOT_OF_TWO_OVER_PI = 0.7978845608028654


def sigmoid(values: Float32Array, functions: ElementaryFunctions = FAST) -> Float32Array:
    """Logistic function, ``1 / (1 + exp(-x))``."""
    # The exponential of a large number is infinite, which gives the right 0.
    result: Float32Array = np.asarray(functions.exp(np.negative(values)))  # scalars stay arrays
    result += values.dtype.type(1)
    np.reciprocal(result, out=result)
    return result


def tanh(
    values: Float32Array, a: float = 1.0, b: float = 1.0, functions: ElementaryFunctions = FAST
) -> Float32Array:
    """Scaled hyperbolic tangent, ``a * tanh(b * x)``."""
    if a == b == 1:
        return functions.tanh(values)
    number = values.dtype.type
    return np.asarray(number(a) * functions.tanh(number(b) * values))


def soft_relu(values: Float32Array, functions: ElementaryFunctions = FAST) -> Float32Array:
    """Softplus, ``log(1 + exp(x))``."""
    # Without an infinite intermediate result.
    above = np.maximum(values, values.dtype.type(0))
    return np.asarray(above + np.log1p(functions.exp(-np.abs(values))))


def leaky_relu(values: Float32Array, alpha: float) -> Float32Array:
    """Leaky rectified linear unit, ``x`` where it is above 0 and ``alpha * x`` elsewhere."""
    return np.where(values > 0, values, values * values.dtype.type(alpha))


def elu(values: Float32Array, alpha: float, functions: ElementaryFunctions = FAST) -> Float32Array:
    """Exponential linear unit, ``x`` or, below 0, ``alpha * (exp(x) - 1)``."""
    number = values.dtype.type
    below = number(alpha) * functions.expm1(np.minimum(values, number(0)))
    return np.where(values >= 0, values, below)


def hard_swish(values: Float32Array) -> Float32Array:
    """Hard swish, ``x * min(max(x + 3, 0), 6) / 6``."""
    number = values.dtype.type
    result = np.asarray(values + number(3))
    np.clip(result, number(0), number(6), out=result)
    result *= values
    result /= number(6)
    return result


def gelu(
    values: Float32Array, approximate: bool = False, functions: ElementaryFunctions = FAST
) -> Float32Array:
    """Gaussian error linear unit, ``x`` times the normal distribution function of ``x``.

    `approximate` takes the hyperbolic tangent of a polynomial for it.

    Reference: Hendrycks, Gimpel, "Gaussian Error Linear Units", 2016, section 2.
    """
    number = values.dtype.type
    half = number(0.5) * values
    if not approximate:
        return np.asarray(half * functions.erfc(values * -number(_ROOT_OF_HALF)))
    cubic = values + number(0.044715) * values * values * values
    return np.asarray(half * (number(1) + functions.tanh(number(_ROOT_OF_TWO_OVER_PI) * cubic)))


def mish(values: Float32Array, functions: ElementaryFunctions = FAST) -> Float32Array:
    """Mish, ``x * tanh(log(1 + exp(x)))``.

    Reference: Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2020.
    """
    # tanh(log(1 + e)) is n / (n + 2) with n = e (e + 2), which is 1 long before e is infinite.
    number = values.dtype.type
    exponential = functions.exp(np.minimum(values, number(20)))
    n = exponential * (exponential + number(2))
    return np.asarray(values * (n / (n + number(2))))
