"""CpuRef's ElementwiseBinary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_reference.blocks import in_blocks
from armpy_reference.quantization import activation_range
from armpy_reference.quantized import binary as quantized_binary
from armpy_reference.quantized.lookup_table import BinaryKernel, look_up_pairs, table_of_pairs
from armpy_reference.workload import ReferenceWorkload


class ElementwiseBinaryWorkload(ReferenceWorkload[ElementwiseBinary]):
    """Floats and integers with NumPy; 8-bit quantised pairs through a table of all of them."""

    def prepare(self) -> None:
        """Make the kernel for the data type."""
        lhs, rhs = self.input_infos
        output = self.info.outputs[0]
        self.kernel: BinaryKernel
        if not output.data_type.is_quantized:
            self.kernel = _plain_kernel(self.operation, output)
            return
        self.kernel = _quantized_kernel(self.operation, (lhs, rhs), output)
        if output.data_type.size_bytes == 1:
            table = table_of_pairs(self.kernel, lhs, rhs, output)
            self.kernel = partial(look_up_pairs, table)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute with broadcasting."""
        in_blocks(self.kernel, inputs, outputs[0])


def _quantized_kernel(
    operation: ElementwiseBinary, inputs: tuple[TensorInfo, TensorInfo], output: TensorInfo
) -> BinaryKernel:
    """The integer arithmetic of an operation, or computation through float32."""
    bounds = activation_range(operation.activation, output)
    kind = operation.operation
    sign = -1 if kind is BinaryOperation.SUB else 1
    if kind in (BinaryOperation.ADD, BinaryOperation.SUB):
        shifting = None
        if operation.power_of_two_scales:
            shifting = quantized_binary.shifting_addition(inputs, output, bounds, sign)
        return shifting or quantized_binary.addition(inputs, output, bounds, sign)
    if kind is BinaryOperation.MUL:
        return quantized_binary.multiplication(inputs, output, bounds)
    if kind is BinaryOperation.DIV:
        return quantized_binary.division(inputs, output, bounds)
    if kind is BinaryOperation.SQUARED_DIFFERENCE and output.data_type.size_bytes == 1:
        return quantized_binary.squared_difference(inputs, output, bounds)
    if kind in (BinaryOperation.MAXIMUM, BinaryOperation.MINIMUM):
        return quantized_binary.choice(inputs, output, bounds, _FLOAT_FUNCTIONS[kind])
    return quantized_binary.through_float(inputs, output, bounds, _FLOAT_FUNCTIONS[kind])


def _plain_kernel(operation: ElementwiseBinary, output: TensorInfo) -> BinaryKernel:
    """A kernel for floats or plain integers."""
    is_float = output.data_type.is_float
    table = _FLOAT_FUNCTIONS if is_float else _INTEGER_FUNCTIONS
    function = table[operation.operation]
    bounds = (
        operation.activation.bounds if is_float else activation_range(operation.activation, output)
    )
    # float16 is computed in float32 and rounded once.
    widened = np.float32 if output.data_type.dtype == np.float16 else None
    clamps = operation.activation is not FusedActivation.NONE

    def compute(lhs: Array, rhs: Array, out: Array) -> None:
        if widened:
            result = function(lhs.astype(widened), rhs.astype(widened))
            out[...] = np.clip(result, *bounds) if clamps else result
            return
        function(lhs, rhs, out=out)
        if clamps:
            np.clip(out, *bounds, out=out)

    return compute


def _squared_difference(lhs: Array, rhs: Array, out: Array | None = None) -> Array:
    difference: Array = np.subtract(lhs, rhs, out=out)
    return np.multiply(difference, difference, out=out)


def _floor_divide(lhs: Array, rhs: Array, out: Array | None = None) -> Array:
    """The quotient of floats, rounded down after a division in float64."""
    quotient = np.floor(np.divide(lhs, rhs, dtype=np.float64))
    if out is None:
        return quotient.astype(np.float32)
    out[...] = quotient
    return out


def _truncating_divide(lhs: Array, rhs: Array, out: Array) -> Array:
    """The quotient of integers, rounded towards zero; 0 where the divisor is 0."""
    np.floor_divide(lhs, rhs, out=out)
    is_rounded_down = (np.remainder(lhs, rhs) != 0) & ((lhs < 0) != (rhs < 0))
    np.add(out, is_rounded_down, out=out, casting="unsafe")
    return out


def _integer_power(lhs: Array, rhs: Array, out: Array) -> Array:
    """An integer power; negative exponents give the reciprocal rounded towards zero."""
    np.power(lhs, np.maximum(rhs, 0), out=out)
    # Of all reciprocals only those of 1 and -1 are not rounded to 0.
    units = np.where(lhs == 1, 1, np.where((lhs == -1) & (rhs % 2 == 1), -1, np.abs(lhs) == 1))
    np.copyto(out, units.astype(out.dtype), where=rhs < 0)
    return out


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    """Shift bits; all of them where NumPy leaves open what happens."""

    def compute(lhs: Array, rhs: Array, out: Array) -> Array:
        bits = 8 * out.dtype.itemsize
        is_far = (rhs < 0) | (rhs >= bits)
        function(lhs, np.where(is_far, bits - 1, rhs).astype(out.dtype), out=out)
        if function is np.left_shift or out.dtype.kind == "u":  # no sign stays
            out[np.broadcast_to(is_far, out.shape)] = 0
        return out

    return compute


_FLOAT_FUNCTIONS: dict[BinaryOperation, Callable[..., Any]] = {
    BinaryOperation.ADD: np.add,
    BinaryOperation.DIV: np.divide,
    BinaryOperation.MAXIMUM: np.maximum,
    BinaryOperation.MINIMUM: np.minimum,
    BinaryOperation.MUL: np.multiply,
    BinaryOperation.SUB: np.subtract,
    BinaryOperation.SQUARED_DIFFERENCE: _squared_difference,
    BinaryOperation.POWER: np.power,
    BinaryOperation.FLOOR_DIV: _floor_divide,
    BinaryOperation.FLOOR_MOD: np.remainder,
    BinaryOperation.TRUNC_MOD: np.fmod,
    BinaryOperation.ATAN2: np.arctan2,
}

_INTEGER_FUNCTIONS: dict[BinaryOperation, Callable[..., Any]] = {
    **_FLOAT_FUNCTIONS,
    BinaryOperation.DIV: _truncating_divide,
    BinaryOperation.POWER: _integer_power,
    BinaryOperation.FLOOR_DIV: np.floor_divide,
    BinaryOperation.BITWISE_AND: np.bitwise_and,
    BinaryOperation.BITWISE_OR: np.bitwise_or,
    BinaryOperation.BITWISE_XOR: np.bitwise_xor,
    BinaryOperation.SHIFT_LEFT: _shift(np.left_shift),
    BinaryOperation.SHIFT_RIGHT: _shift(np.right_shift),
}
