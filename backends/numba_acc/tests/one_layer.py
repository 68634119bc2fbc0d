"""Networks of one layer, and the functions of floats."""

from __future__ import annotations

from armpy_numba_acc.machine.isa import Isa

from armpy import Network, ops
from armpy.ops.operation import Operation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.effort import IS_CAMPAIGN, first_and_another

from .support import (
    ISAS,
)

FLOAT_OPERATIONS = [
    ops.BinaryOperation.ADD,
    ops.BinaryOperation.DIV,
    ops.BinaryOperation.MAXIMUM,
    ops.BinaryOperation.MINIMUM,
    ops.BinaryOperation.MUL,
    ops.BinaryOperation.SUB,
    ops.BinaryOperation.SQUARED_DIFFERENCE,
    ops.BinaryOperation.POWER,
    ops.BinaryOperation.FLOOR_DIV,
    ops.BinaryOperation.FLOOR_MOD,
    ops.BinaryOperation.TRUNC_MOD,
]
FLOAT_FUNCTIONS = [
    ops.UnaryOperation.ABS,
    ops.UnaryOperation.EXP,
    ops.UnaryOperation.SQRT,
    ops.UnaryOperation.RSQRT,
    ops.UnaryOperation.NEG,
    ops.UnaryOperation.LOG,
    ops.UnaryOperation.SIN,
    ops.UnaryOperation.CEIL,
    ops.UnaryOperation.COS,
    ops.UnaryOperation.FLOOR,
    ops.UnaryOperation.ROUND,
    ops.UnaryOperation.SQUARE,
    ops.UnaryOperation.ERF,
    ops.UnaryOperation.RECIPROCAL,
    ops.UnaryOperation.SIGN,
    ops.UnaryOperation.ATAN,
]
"""Functions of two numbers and of one that NumbaAcc computes."""


def network_of(operation: Operation, inputs: list[TensorInfo], output: TensorInfo) -> Network:
    """One layer, whose output is of the type and quantisation of `output`."""
    network = Network()
    values = [network.input(f"x{number}", info) for number, info in enumerate(inputs)]
    network.output("y", network.add(operation, *values, output=output))
    return network


def isas_for(operation: Operation) -> list[Isa]:
    """The best instruction set, for every third operation another one as well; all in full."""
    return [*ISAS] if IS_CAMPAIGN else first_and_another(ISAS, repr(operation))


def quantized(
    shape: tuple[int, ...] | None, data_type: DataType, scale: float, zero_point: int
) -> TensorInfo:
    """A tensor of a quantised type."""
    return TensorInfo(shape, data_type, Quantization.per_tensor(scale, zero_point))
