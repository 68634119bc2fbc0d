"""CpuRef's ElementwiseUnary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from armpy.ops import ElementwiseUnary, UnaryOperation
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_reference import quantized_unary
from armpy_reference.blocks import in_blocks
from armpy_reference.elementary_functions import ROUNDED
from armpy_reference.lookup_table import RealFunction, UnaryKernel
from armpy_reference.workload import ReferenceWorkload


class ElementwiseUnaryWorkload(ReferenceWorkload[ElementwiseUnary]):
    """Floats, integers and booleans with NumPy; quantised integers as TFLite's kernels."""

    def prepare(self) -> None:
        """Make the kernel for the data type."""
        source, target = self.input_infos[0], self.info.outputs[0]
        kind = self.operation.operation
        self.kernel: UnaryKernel
        if target.data_type.is_quantized:
            self.kernel = _quantized_kernel(kind, source, target)
        else:
            self.kernel = _plain_kernel(_FUNCTIONS[kind])

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute each element."""
        in_blocks(self.kernel, inputs, outputs[0])


def _plain_kernel(function: Callable[..., Any]) -> UnaryKernel:
    """A kernel that computes float16 in float32 and rounds once."""

    def compute(values: Array, out: Array) -> None:
        if values.dtype == np.float16:
            out[...] = function(values.astype(np.float32))
        else:
            function(values, out=out)

    return compute


def _quantized_kernel(kind: UnaryOperation, source: TensorInfo, target: TensorInfo) -> UnaryKernel:
    """The arithmetic of TFLite where it has the operation, computation in float32 elsewhere."""
    is_16_bit = target.data_type.size_bytes == 2
    real = _rounded_function(kind, target)
    if is_16_bit and kind in (UnaryOperation.EXP, UnaryOperation.LOG, UnaryOperation.RSQRT):
        return quantized_unary.interpolating_kernel(source, target, real)
    kernel = None
    if kind is UnaryOperation.ABS:
        kernel = quantized_unary.absolute(source, target)
    elif kind is UnaryOperation.RSQRT:
        kernel = quantized_unary.reciprocal_square_root(source, target)
    return quantized_unary.unary_kernel(source, target, real, kernel)


def _rounded_function(kind: UnaryOperation, target: TensorInfo) -> RealFunction:
    """The function of float32 numbers for tables.

    Notes
    -----
    Where a logarithm is not defined it is the lowest number of the output, where a
    reciprocal root is not it is the highest.
    """
    lowest, highest = (
        np.float32(target.scale) * np.float32(bound - target.zero_point)
        for bound in target.data_type.integer_range
    )
    special: dict[UnaryOperation, RealFunction] = {
        UnaryOperation.EXP: ROUNDED.exp,
        UnaryOperation.LOG: lambda x: np.where(x > 0, ROUNDED.log(x), lowest),
        UnaryOperation.RSQRT: lambda x: np.where(x > 0, 1 / np.sqrt(x), highest),
    }
    return special.get(kind, _FUNCTIONS[kind])


def _rsqrt(values: Array, out: Array | None = None) -> Array:
    """The reciprocal of the square root."""
    root: Array = np.sqrt(values, out=out)
    return np.reciprocal(root, out=out)


_FUNCTIONS: dict[UnaryOperation, Callable[..., Any]] = {
    UnaryOperation.ABS: np.abs,
    UnaryOperation.EXP: np.exp,
    UnaryOperation.SQRT: np.sqrt,
    UnaryOperation.RSQRT: _rsqrt,
    UnaryOperation.NEG: np.negative,
    UnaryOperation.LOGICAL_NOT: np.logical_not,
    UnaryOperation.LOG: np.log,
    UnaryOperation.SIN: np.sin,
    UnaryOperation.COS: np.cos,
    UnaryOperation.CEIL: np.ceil,
    UnaryOperation.FLOOR: np.floor,
    UnaryOperation.ROUND: np.rint,
    UnaryOperation.SQUARE: np.square,
}
