"""CpuRef's functions of floats and of integers, of bits, and random numbers, by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armpy import Model, Network, Runtime, RuntimeOptions, TensorInfo
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    BitCast,
    Cast,
    ElementwiseBinary,
    ElementwiseUnary,
    LogicalBinary,
    LogicalBinaryOperation,
    RandomNormal,
    RandomUniform,
    UnaryOperation,
)
from armpy.types import DataType
from armpy_testing.run_operation import check, declared, run_operation, tensor

Array = npt.NDArray[Any]  # Any: every element type occurs

BOOL, F32, F64 = DataType.BOOLEAN, DataType.FLOAT32, DataType.FLOAT64
BYTE, I8, I32 = DataType.UNSIGNED8, DataType.SIGNED8, DataType.SIGNED32


def binary(kind: BinaryOperation, lhs: object, rhs: object, data_type: DataType) -> Array:
    operation = ElementwiseBinary(kind)
    return run_operation(operation, [tensor(lhs, data_type), tensor(rhs, data_type)])[0]


@pytest.mark.parametrize(
    ("kind", "data_type", "lhs", "rhs", "expected"),
    [
        (BinaryOperation.BITWISE_AND, BYTE, [0b1100, 255], [0b1010, 7], [0b1000, 7]),
        (BinaryOperation.BITWISE_OR, I8, [0b1100, -128], [0b1010, 1], [0b1110, -127]),
        (BinaryOperation.BITWISE_XOR, I32, [0b1100, -1], [0b1010, 1], [0b0110, -2]),
        (BinaryOperation.SHIFT_LEFT, BYTE, [1, 255, 3, 1], [7, 1, 8, 200], [128, 254, 0, 0]),
        (BinaryOperation.SHIFT_RIGHT, BYTE, [128, 255, 3], [7, 1, 8], [1, 127, 0]),
        # The sign stays, however far the bits are shifted; a negative distance is one too far.
        (BinaryOperation.SHIFT_RIGHT, I8, [-128, -128, 64, -1], [3, 9, 9, -1], [-16, -1, 0, -1]),
        (BinaryOperation.TRUNC_MOD, I32, [7, -7, 7, -7], [3, 3, -3, -3], [1, -1, 1, -1]),
        (BinaryOperation.FLOOR_MOD, I32, [7, -7, 7, -7], [3, 3, -3, -3], [1, 2, -2, -1]),
        (BinaryOperation.TRUNC_MOD, F32, [5.5, -5.5], [2, 2], [1.5, -1.5]),
        (
            BinaryOperation.ATAN2,
            F64,
            [1, -1, 0],
            [-1, 0, -1],
            [math.pi * 3 / 4, -math.pi / 2, math.pi],
        ),
        (BinaryOperation.DIV, F64, [1, -1], [3, 0], [1 / 3, -math.inf]),
    ],
)
def test_functions_of_two_numbers(
    kind: BinaryOperation, data_type: DataType, lhs: object, rhs: object, expected: object
) -> None:
    check(binary(kind, lhs, rhs, data_type), expected)


def test_exclusive_or() -> None:
    lhs, rhs = tensor([True, True, False, False], BOOL), tensor([True, False, True, False], BOOL)
    operation = LogicalBinary(LogicalBinaryOperation.LOGICAL_XOR)
    check(run_operation(operation, [lhs, rhs])[0], [False, True, True, False])


@pytest.mark.parametrize(
    ("kind", "function", "number"),
    [
        (UnaryOperation.ERF, math.erf, 0.7),
        (UnaryOperation.RECIPROCAL, lambda x: 1 / x, 0.7),
        (UnaryOperation.SIGN, lambda x: math.copysign(1, x), -0.7),
        (UnaryOperation.TAN, math.tan, 0.7),
        (UnaryOperation.ASIN, math.asin, 0.7),
        (UnaryOperation.ACOS, math.acos, 0.7),
        (UnaryOperation.ATAN, math.atan, 0.7),
        (UnaryOperation.SINH, math.sinh, 0.7),
        (UnaryOperation.COSH, math.cosh, 0.7),
        (UnaryOperation.ASINH, math.asinh, 0.7),
        (UnaryOperation.ACOSH, math.acosh, 1.7),
        (UnaryOperation.ATANH, math.atanh, 0.7),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_functions_of_float64_are_those_of_the_mathematics_library(
    kind: UnaryOperation, function: Callable[[float], float], number: float
) -> None:
    (output,) = run_operation(ElementwiseUnary(kind), [tensor([number], F64)])
    np.testing.assert_allclose(output, [function(number)], rtol=4e-16)


def test_bits_of_integers_are_turned_round() -> None:
    operation = ElementwiseUnary(UnaryOperation.BITWISE_NOT)
    check(run_operation(operation, [tensor([0, 1, 255], BYTE)])[0], [255, 254, 0])
    check(run_operation(operation, [tensor([0, -1, 127], I8)])[0], [-1, 0, -128])


def test_the_sign_of_zero_and_of_what_is_no_number_stays() -> None:
    operation = ElementwiseUnary(UnaryOperation.SIGN)
    (output,) = run_operation(operation, [tensor([0.0, -0.0, math.nan, -math.inf])])
    np.testing.assert_array_equal(output, [0.0, 0.0, math.nan, -1.0])
    check(run_operation(operation, [tensor([-5, 0, 7], I32)])[0], [-1, 0, 1])


def test_mish_is_exact_far_from_zero() -> None:
    mish = Activation(ActivationFunction.MISH)
    (output,) = run_operation(mish, [tensor([100.0, -60.0, 1.0, 0.0])])
    wanted = math.tanh(math.log1p(math.e))
    np.testing.assert_allclose(output, [100.0, -60 * math.exp(-60), wanted, 0.0], rtol=3e-7)


def test_elements_are_split_into_bytes_and_joined_again() -> None:
    (parts,) = run_operation(BitCast(BYTE), [tensor([0x01020304, -1], I32)])
    np.testing.assert_array_equal(parts, [[4, 3, 2, 1], [255] * 4])
    (joined,) = run_operation(BitCast(I32), [tensor(parts.tolist(), BYTE)])
    check(joined, [0x01020304, -1])


@pytest.mark.parametrize(
    ("target", "values", "expected"),
    [
        (DataType.SIGNED4, [-9, -8, 7, 8, 15, 16], [7, -8, 7, -8, -1, 0]),
        (DataType.UNSIGNED4, [-1, 15, 16, 17], [15, 15, 0, 1]),
        (DataType.SIGNED2, [-3, 1, 2, 3], [1, 1, -2, -1]),
        (DataType.UNSIGNED2, [-1, 3, 4], [3, 3, 0]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
@pytest.mark.parametrize("source", [I32, F32, F64], ids=lambda t: t.name)
def test_small_integers_keep_the_low_bits(
    source: DataType, target: DataType, values: list[int], expected: list[int]
) -> None:
    check(run_operation(Cast(), [tensor(values, source)], [declared(target)])[0], expected)


def test_no_seed_draws_other_numbers_each_time() -> None:
    for operation in (RandomUniform((50,)), RandomNormal((50,))):
        first, second = (run_operation(operation, [])[0] for _ in range(2))
        assert (first != second).any()


def test_a_shape_known_at_execution_only_gives_the_same_numbers() -> None:
    network = Network()
    shape = network.input("shape", TensorInfo((2,), I32))
    network.output("drawn", network.add(RandomUniform(seed=3), shape))
    model = Model(network, Runtime(RuntimeOptions(backends=["CpuRef"])))
    (expected,) = run_operation(RandomUniform((2, 3), seed=3), [])
    np.testing.assert_array_equal(model(np.array([2, 3], np.int32)), expected)
