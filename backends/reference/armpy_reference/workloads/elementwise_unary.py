"""CpuRef's ElementwiseUnary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from armpy.core.numerics.elementary import erf
from armpy.core.numerics.integer_functions import absolute, reciprocal_square_root, square_root
from armpy.core.numerics.lookup_table import RealFunction, by_interpolation, total_functions
from armpy.ops import ElementwiseUnary, UnaryOperation
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_reference.blocks import in_blocks
from armpy_reference.quantization import parameters_of
from armpy_reference.quantized.lookup_table import UnaryKernel
from armpy_reference.quantized.unary import integer_kernel, unary_kernel
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
    parameters = parameters_of(source), parameters_of(target)
    real: RealFunction = total_functions(parameters[1]).get(kind.name, _FUNCTIONS[kind])
    if is_16_bit and kind in (UnaryOperation.EXP, UnaryOperation.LOG, UnaryOperation.RSQRT):
        return integer_kernel(source, target, by_interpolation(real, *parameters))
    function = None
    if kind is UnaryOperation.ABS:
        function = absolute(*parameters)
    elif kind is UnaryOperation.RSQRT:
        function = reciprocal_square_root(*parameters)
    elif kind is UnaryOperation.SQRT:
        function = square_root(*parameters)
    return unary_kernel(source, target, real, function)


def _rsqrt(values: Array, out: Array | None = None) -> Array:
    """The reciprocal of the square root."""
    root: Array = np.sqrt(values, out=out)
    return np.reciprocal(root, out=out)


def _erf(values: Array, out: Array | None = None) -> Array:
    """The error function."""
    errors = erf(values)
    if out is not None:
        out[...] = errors
    return errors


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
    UnaryOperation.ERF: _erf,
    UnaryOperation.RECIPROCAL: np.reciprocal,
    UnaryOperation.SIGN: np.sign,
    UnaryOperation.TAN: np.tan,
    UnaryOperation.ASIN: np.arcsin,
    UnaryOperation.ACOS: np.arccos,
    UnaryOperation.ATAN: np.arctan,
    UnaryOperation.SINH: np.sinh,
    UnaryOperation.COSH: np.cosh,
    UnaryOperation.ASINH: np.arcsinh,
    UnaryOperation.ACOSH: np.arccosh,
    UnaryOperation.ATANH: np.arctanh,
    UnaryOperation.BITWISE_NOT: np.invert,
}
