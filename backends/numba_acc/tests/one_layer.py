"""Networks of one layer, compared with CpuRef; a table of them on every instruction set."""

from __future__ import annotations

import numpy as np
from armpy_numba_acc.machine.isa import Isa

from armpy import Network, ops
from armpy.ops.operation import Array, Operation
from armpy.ops.tolerance import Tolerance
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.effort import IS_CAMPAIGN, first_and_another

from .support import (
    ISAS,
    check_against_reference,
    run_reference,
    without_subnormals,
)

BROADCASTS = [
    ((2, 3, 5, 67), (2, 3, 5, 67)),
    ((2, 3, 5, 33), (33,)),
    ((2, 3, 5, 16), (2, 1, 1, 16)),
    ((2, 3, 5, 7), ()),
    ((), (3, 41)),
    ((2, 3, 5, 9), (2, 3, 5, 1)),
    ((2, 1, 5, 1, 4), (3, 1, 6, 1)),
    ((1, 1), (1,)),
    ((3, 1, 129), (1, 2, 1)),
]
"""Same shape, channels, channels of each image, a number, pixels, alternating, one element."""

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
QUANTIZED_OPERATIONS = [
    operation for operation in FLOAT_OPERATIONS if not operation.name.startswith(("FLOOR", "TRUNC"))
]
"""Functions of two numbers that NumbaAcc computes."""


def random_array(info: TensorInfo, rng: np.random.Generator) -> Array:
    """Elements of any type: floats around 0, all stored integers."""
    shape, dtype = info.known_shape, info.data_type.dtype
    if info.data_type is DataType.FLOAT32:
        return np.asarray(rng.normal(size=shape) * 3, np.float32)
    if info.data_type is DataType.BOOLEAN:
        return np.asarray(rng.integers(0, 2, shape), bool)
    if info.data_type in (DataType.SIGNED32, DataType.SIGNED64):
        return np.asarray(rng.integers(-9, 10, shape), dtype)
    return np.asarray(rng.integers(*info.data_type.integer_range, shape, endpoint=True), dtype)


def network_of(operation: Operation, inputs: list[TensorInfo], output: TensorInfo) -> Network:
    """One layer, whose output is of the type and quantisation of `output`."""
    network = Network()
    values = [network.input(f"x{number}", info) for number, info in enumerate(inputs)]
    network.output("y", network.add(operation, *values, output=output))
    return network


def isas_for(operation: Operation) -> list[Isa]:
    """The best instruction set, for every third operation another one as well; all in full."""
    return [*ISAS] if IS_CAMPAIGN else first_and_another(ISAS, repr(operation))


def check_layer(
    operation: Operation,
    inputs: list[TensorInfo],
    output: TensorInfo,
    tolerance: Tolerance | None = None,
    given: list[Array] | None = None,
) -> None:
    """Compare one layer on the instruction sets of `isas_for` with CpuRef, to which subnormal
    inputs are given as zeros."""
    rng = np.random.default_rng(7)
    arrays = given or [random_array(info, rng) for info in inputs]
    feeds = {f"x{number}": array for number, array in enumerate(arrays)}
    network = network_of(operation, inputs, output)
    expected = run_reference(network, without_subnormals(feeds))
    for isa in isas_for(operation):
        check_against_reference(network, feeds, isa, expected, tolerance)


def quantized(
    shape: tuple[int, ...] | None, data_type: DataType, scale: float, zero_point: int
) -> TensorInfo:
    """A tensor of a quantised type."""
    return TensorInfo(shape, data_type, Quantization.per_tensor(scale, zero_point))


def quantized_bytes(
    shape: tuple[int, ...] | None, data_type: DataType, scale: float, zero: int
) -> TensorInfo:
    """The same with a zero point that is counted from the type's lowest number."""
    return quantized(shape, data_type, scale, data_type.integer_range[0] + zero)
