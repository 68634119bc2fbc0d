"""Activation functions of float32 that are more than one function of NumPy's.

Each returns a new array of the shape of `values`. What it needs of elementary functions it is
given: quick ones for tensors, those that are rounded correctly for tables.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.numerics.elementary import FAST, ElementaryFunctions

Float32Array: TypeAlias = npt.NDArray[Any]  # Any: float32; a ufunc's type is not narrower

_ROOT_OF_HALF = np.float32(0.7071067811865476)
_ROOT_OF_TWO_OVER_PI = np.float32(0.7978845608028654)


def sigmoid(values: Float32Array, functions: ElementaryFunctions = FAST) -> Float32Array:
    """Logistic function, ``1 / (1 + exp(-x))``.

    Parameters
    ----------
    values : ndarray, float32, shape (...)
    functions : ElementaryFunctions
    """
    # The exponential of a large number is infinite, which gives the right 0.
    result: Float32Array = np.asarray(functions.exp(np.negative(values)))  # scalars stay arrays
    result += np.float32(1)
    np.reciprocal(result, out=result)
    return result


def tanh(
    values: Float32Array, a: float = 1.0, b: float = 1.0, functions: ElementaryFunctions = FAST
) -> Float32Array:
    """Scaled hyperbolic tangent, ``a * tanh(b * x)``.

    Parameters
    ----------
    values : ndarray, float32, shape (...)
    a, b : float
    functions : ElementaryFunctions
    """
    if a == b == 1:
        return functions.tanh(values)
    return np.float32(a) * functions.tanh(np.float32(b) * values)


def soft_relu(values: Float32Array, functions: ElementaryFunctions = FAST) -> Float32Array:
    """Softplus, ``log(1 + exp(x))``.

    Parameters
    ----------
    values : ndarray, float32, shape (...)
    functions : ElementaryFunctions
    """
    # Without an infinite intermediate result.
    return np.maximum(values, np.float32(0)) + np.log1p(functions.exp(-np.abs(values)))


def leaky_relu(values: Float32Array, alpha: float) -> Float32Array:
    """Leaky rectified linear unit, ``x`` where it is above 0 and ``alpha * x`` elsewhere.

    Parameters
    ----------
    values : ndarray, float32, shape (...)
    alpha : float
    """
    return np.where(values > 0, values, values * np.float32(alpha))


def elu(values: Float32Array, alpha: float, functions: ElementaryFunctions = FAST) -> Float32Array:
    """Exponential linear unit, ``x`` or, below 0, ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    values : ndarray, float32, shape (...)
    alpha : float
    functions : ElementaryFunctions
    """
    below = np.float32(alpha) * functions.expm1(np.minimum(values, np.float32(0)))
    return np.where(values >= 0, values, below)


def hard_swish(values: Float32Array) -> Float32Array:
    """Hard swish, ``x * min(max(x + 3, 0), 6) / 6``.

    Parameters
    ----------
    values : ndarray, float32, shape (...)
    """
    result = np.asarray(values + np.float32(3))
    np.clip(result, np.float32(0), np.float32(6), out=result)
    result *= values
    result /= np.float32(6)
    return result


def gelu(
    values: Float32Array, approximate: bool = False, functions: ElementaryFunctions = FAST
) -> Float32Array:
    """Gaussian error linear unit, ``x`` times the normal distribution function of ``x``.

    Parameters
    ----------
    values : ndarray, float32, shape (...)
    approximate : bool
        Whether with the hyperbolic tangent of a polynomial.
    functions : ElementaryFunctions

    References
    ----------
    Hendrycks, Gimpel, "Gaussian Error Linear Units", 2016, section 2.
    """
    half = np.float32(0.5) * values
    if not approximate:
        return half * functions.erfc(values * -_ROOT_OF_HALF)
    cubic = values + np.float32(0.044715) * values * values * values
    return half * (np.float32(1) + functions.tanh(_ROOT_OF_TWO_OVER_PI * cubic))
