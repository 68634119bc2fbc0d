"""Kernels on the elements of one quantised tensor: tables, integer arithmetic, or float32."""

from __future__ import annotations

from functools import partial

from armpy.core.numerics.lookup_table import RealFunction, StoredFunction, by_table
from armpy.tensor import TensorInfo
from armpy_reference.quantization import dequantize, parameters_of, quantize
from armpy_reference.quantized.lookup_table import Array, UnaryKernel, look_up, table_of


def unary_kernel(
    source: TensorInfo,
    target: TensorInfo,
    real: RealFunction,
    integer: StoredFunction | None = None,
) -> UnaryKernel:
    """Quickest kernel for a function of stored integers.

    Parameters
    ----------
    real : callable
        Function of real numbers, as for `by_table`.
    integer
        Integer arithmetic to use in its place.

    Returns
    -------
    UnaryKernel
        A table's for 8-bit inputs; else `integer`, or computation in float32.
    """
    if integer is not None:
        return integer_kernel(source, target, integer)
    if source.data_type.size_bytes == 1:
        function = by_table(real, parameters_of(source), parameters_of(target))
        return integer_kernel(source, target, function)
    return partial(_through_float, source, target, real)


def integer_kernel(source: TensorInfo, target: TensorInfo, function: StoredFunction) -> UnaryKernel:
    """Kernel of a function of stored integers; a table's for 8-bit inputs."""
    if source.data_type.size_bytes == 1:
        return partial(look_up, table_of(function, source, target))
    return partial(_write, function)


def _write(function: StoredFunction, stored: Array, out: Array) -> None:
    """Compute with integers."""
    out[...] = function(stored)


def _through_float(
    source: TensorInfo, target: TensorInfo, function: RealFunction, stored: Array, out: Array
) -> None:
    """Compute with float32 numbers."""
    quantize(function(dequantize(stored, source)), target, out)
