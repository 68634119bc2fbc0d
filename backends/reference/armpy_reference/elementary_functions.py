"""Elementary functions of floats, as NumPy has them and as C's mathematics library has them.

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

from armpy.records import dataclass

FloatArray: TypeAlias = npt.NDArray[Any]  # Any: float32 or float64
Function: TypeAlias = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class ElementaryFunctions:
    """Functions of float arrays that return new arrays of the same type."""

    exp: Function
    expm1: Function
    log: Function
    tanh: Function
    erfc: Function


def erfc(values: FloatArray) -> FloatArray:
    """The complementary error function, which NumPy lacks, rounded once.

    Parameters
    ----------
    values : ndarray, float32 or float64, shape (...)

    Returns
    -------
    ndarray, dtype and shape of `values`
    """
    each = map(math.erfc, values.reshape(-1).tolist())
    return np.fromiter(each, np.float64, values.size).astype(values.dtype).reshape(values.shape)


def _rounded(function: Function) -> Function:
    """The function computed in float64 and rounded once to the argument's type."""

    def compute(values: FloatArray) -> FloatArray:
        return function(values.astype(np.float64)).astype(values.dtype)

    return compute


FAST = ElementaryFunctions(np.exp, np.expm1, np.log, np.tanh, erfc)
"""For tensors."""

ROUNDED = ElementaryFunctions(
    exp=_rounded(np.exp),
    expm1=_rounded(np.expm1),
    log=_rounded(np.log),
    tanh=_rounded(np.tanh),
    erfc=erfc,
)
"""For tables."""
