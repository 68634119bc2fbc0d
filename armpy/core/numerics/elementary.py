"""Elementary functions of floats: NumPy's quick ones, and ones that are rounded correctly.

Tables of 8-bit functions are compared bit by bit, so that the last bit of a float32 function
can matter. NumPy's vectorised ones may be off by more than C's, which are nearly always
rounded correctly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass

FloatArray: TypeAlias = npt.NDArray[Any]  # Any: float32 or float64
Function: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class ElementaryFunctions:
    """Elementary functions of float32 or float64 arrays; they return new arrays of that type."""

    exp: Function
    expm1: Function
    log: Function
    tanh: Function
    erfc: Function


def erf(values: FloatArray) -> FloatArray:
    """Error function, which NumPy lacks, rounded once."""
    return _each(math.erf, values)


def erfc(values: FloatArray) -> FloatArray:
    """Complementary error function, 1 less the error function; see `erf`."""
    return _each(math.erfc, values)


def _each(function: Callable[[float], float], values: FloatArray) -> FloatArray:
    results = map(function, values.reshape(-1).tolist())
    return np.fromiter(results, np.float64, values.size).astype(values.dtype).reshape(values.shape)


def _rounded(function: Function) -> Function:
    """The function computed in float64 and rounded once to the argument's type."""

    def compute(values: FloatArray) -> FloatArray:
        return function(values.astype(np.float64)).astype(values.dtype)

    return compute


FAST = ElementaryFunctions(np.exp, np.expm1, np.log, np.tanh, erfc)
"""NumPy's functions, for tensors."""

ROUNDED = ElementaryFunctions(
    exp=_rounded(np.exp),
    expm1=_rounded(np.expm1),
    log=_rounded(np.log),
    tanh=_rounded(np.tanh),
    erfc=erfc,
)
"""Functions computed in float64 and rounded once, for tables."""
