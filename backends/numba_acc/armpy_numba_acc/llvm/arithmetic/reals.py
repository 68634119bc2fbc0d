"""Functions of floating-point numbers, for code that Numba compiles."""

from __future__ import annotations

from armpy_numba_acc.llvm.primitives import FLOAT, primitive
from armpy_numba_acc.llvm.values import Code, CodeValue


@primitive(FLOAT, FLOAT)
def square_root_f32(code: Code, value: CodeValue) -> CodeValue:
    """Square root of a float32."""
    return value.sqrt()


@primitive("float64", "float64")
def square_root_f64(code: Code, value: CodeValue) -> CodeValue:
    """Square root of a float64."""
    return value.sqrt()


@primitive("boolean", FLOAT)
def is_nan(code: Code, value: CodeValue) -> CodeValue:
    """Return whether a float32 is not a number."""
    return value.is_nan()


@primitive("float64", "float64")
def absolute_f64(code: Code, value: CodeValue) -> CodeValue:
    """Absolute value of a float64."""
    return abs(value)
