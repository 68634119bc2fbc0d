"""Operations on rows of elements, whatever axis of a tensor the rows lie along."""

from __future__ import annotations

import numpy as np

from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_reference.quantization import dequantize, quantize
from armpy_reference.quantized.lookup_table import Array, UnaryKernel


def along_axis(kernel: UnaryKernel, axis: int, values: Array, out: Array) -> None:
    """Run a kernel that works along the last axis along another one.

    Rows that lie along another axis are copied first, so that sums are taken in one order
    wherever they lie.

    Parameters
    ----------
    values, out : ndarray, shape (...)
        Nothing is done if they are empty.
    """
    if not out.size:
        return
    rows, target = np.moveaxis(values, axis, -1), np.moveaxis(out, axis, -1)
    if rows.flags.c_contiguous and target.flags.c_contiguous:
        kernel(rows, target)
        return
    result = np.empty(target.shape, out.dtype)
    kernel(np.ascontiguousarray(rows), result)
    target[...] = result


def float_kernel(source: TensorInfo, target: TensorInfo, kernel: UnaryKernel) -> UnaryKernel:
    """A kernel for any floating-point or quantised type from one for float32.

    Parameters
    ----------
    source, target
        Quantised types through scales and zero points, float16 rounded once.
    kernel
        Function from float32 to float32; from float64 to float64, if it is to be used for that
        type.
    """
    if source.data_type in (DataType.FLOAT32, DataType.FLOAT64):
        return kernel

    def compute(values: Array, out: Array) -> None:
        quantized = source.data_type.is_quantized
        real = dequantize(values, source) if quantized else values.astype(np.float32)
        result = np.empty_like(real)
        kernel(real, result)
        if quantized:
            quantize(result, target, out)
        else:
            out[...] = result

    return compute
