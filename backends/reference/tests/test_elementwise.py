"""CpuRef's elementwise operations and conversions on hand-worked values.

Quantised cases use scales that are powers of two, for which the results can be worked out on
paper; rounding and saturation are in reach of each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armpy.ops import (
    Activation,
    BinaryOperation,
    Cast,
    Comparison,
    ComparisonOperation,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    LogicalBinary,
    LogicalBinaryOperation,
    Prelu,
    Quantize,
    Select,
    UnaryOperation,
)
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Operation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.run_operation import check, declared, run_operation, tensor

Array = npt.NDArray[Any]  # Any: every element type occurs

F32, F16, BOOL = DataType.FLOAT32, DataType.FLOAT16, DataType.BOOLEAN
S8, U8, S16 = DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16
I32 = DataType.SIGNED32
INFINITY = math.inf


def binary(
    kind: BinaryOperation, lhs: object, rhs: object, data_type: DataType = F32, **options: Any
) -> Array:
    operation = ElementwiseBinary(operation=kind, **options)
    return run_operation(operation, [tensor(lhs, data_type), tensor(rhs, data_type)])[0]


@pytest.mark.parametrize("data_type", [F32, F16], ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (BinaryOperation.ADD, [9, -5, 0]),
        (BinaryOperation.SUB, [5, -9, -4]),
        (BinaryOperation.MUL, [14, -14, -4]),
        (BinaryOperation.DIV, [3.5, -3.5, -1]),
        (BinaryOperation.MAXIMUM, [7, 2, 2]),
        (BinaryOperation.MINIMUM, [2, -7, -2]),
        (BinaryOperation.SQUARED_DIFFERENCE, [25, 81, 16]),
        (BinaryOperation.POWER, [49, 49, 4]),
        (BinaryOperation.FLOOR_DIV, [3, -4, -1]),
        (BinaryOperation.FLOOR_MOD, [1, 1, 0]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_binary_functions_of_floats(
    kind: BinaryOperation, expected: object, data_type: DataType
) -> None:
    check(binary(kind, [7, -7, -2], [2, 2, 2], data_type), expected)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (BinaryOperation.DIV, [3, -3, -3, 0]),
        (BinaryOperation.FLOOR_DIV, [3, -4, -4, 0]),
        (BinaryOperation.FLOOR_MOD, [1, 1, -1, 0]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_integer_division_truncates_or_floors_and_is_0_by_0(
    kind: BinaryOperation, expected: object
) -> None:
    check(binary(kind, [7, -7, 7, 5], [2, 2, -2, 0], I32), expected)


def test_integer_power_with_negative_exponents_rounds_towards_0() -> None:
    values = binary(BinaryOperation.POWER, [2, 2, 1, -1, -1], [3, -1, -5, -3, -2], I32)
    check(values, [8, 0, 1, -1, 1])


def test_integers_wrap() -> None:
    check(binary(BinaryOperation.ADD, [2**31 - 1], [1], I32), [-(2**31)])


@pytest.mark.parametrize("data_type", [F32, F16, I32], ids=lambda t: t.name)
def test_fused_activation_clamps_plain_numbers(data_type: DataType) -> None:
    result = binary(
        BinaryOperation.ADD, [-3, 1, 9], [1, 1, 1], data_type, activation=FusedActivation.RELU6
    )
    check(result, [0, 2, 6])


def test_binary_functions_broadcast_and_take_scalars() -> None:
    check(binary(BinaryOperation.ADD, [[1.0], [2.0]], [10.0, 20.0]), [[11, 21], [12, 22]])
    check(binary(BinaryOperation.MUL, 3.0, 2.0), 6)


def quantized(
    kind: BinaryOperation, lhs: object, rhs: object, data_type: DataType, **options: Any
) -> Array:
    """With scales 1/2, 1/4 and 1/2 and, in 8 bits, zero points 1, 0 and -2."""
    points = (0, 0, 0) if data_type is S16 else (1, 0, -2)
    inputs = [tensor(lhs, data_type, 0.5, points[0]), tensor(rhs, data_type, 0.25, points[1])]
    output = declared(data_type, 0.5, points[2])
    return run_operation(ElementwiseBinary(operation=kind, **options), inputs, [output])[0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # Real numbers: 2, -3, 30 and 1, 0.5, 31.75.
        (BinaryOperation.ADD, [4, -7, 122]),
        (BinaryOperation.SUB, [0, -9, -6]),
        (BinaryOperation.MUL, [2, -5, 127]),
        (BinaryOperation.DIV, [2, -14, 0]),
        (BinaryOperation.MAXIMUM, [2, -1, 62]),
        (BinaryOperation.MINIMUM, [0, -8, 58]),
        (BinaryOperation.SQUARED_DIFFERENCE, [0, 23, 4]),
        (BinaryOperation.POWER, [2, -2, 127]),
        (BinaryOperation.FLOOR_DIV, [2, -14, -2]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_quantised_binary_functions(kind: BinaryOperation, expected: object) -> None:
    check(quantized(kind, [5, -5, 61], [4, 2, 127], S8), expected)


def test_quantised_quotients_by_0_saturate() -> None:
    check(quantized(BinaryOperation.DIV, [5, -5, 1], [0, 0, 0], S8), [127, -128, -2])


def test_quantised_quotients_above_the_range_of_the_shift_saturate() -> None:
    inputs = [tensor([100, -100], S8, 1.0), tensor([1, 1], S8, 2.0**-20)]
    operation = ElementwiseBinary(operation=BinaryOperation.DIV)
    check(run_operation(operation, inputs, [declared(S8, 2.0**-15)])[0], [127, -128])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # Real numbers: 500, -500, 16000 and 100, 0.25, 8000.
        (BinaryOperation.ADD, [1200, -1000, 32767]),
        (BinaryOperation.SUB, [800, -1001, 16000]),
        (BinaryOperation.MUL, [32767, -250, 32767]),
        (BinaryOperation.SQUARED_DIFFERENCE, [32767, 32767, 32767]),
        (BinaryOperation.MAXIMUM, [1000, 1, 32000]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_quantised_binary_functions_of_16_bits(kind: BinaryOperation, expected: object) -> None:
    check(quantized(kind, [1000, -1000, 32000], [400, 1, 32000], S16), expected)


def test_fused_activation_clamps_quantised_numbers() -> None:
    result = quantized(
        BinaryOperation.ADD, [5, -5, 61], [4, 2, 127], S8, activation=FusedActivation.RELU6
    )
    check(result, [4, -2, 10])


def test_power_of_two_scales_shift_the_finer_input() -> None:
    result = quantized(BinaryOperation.ADD, [1000, 0, 0], [3, 3, -3], S16, power_of_two_scales=True)
    check(result, [1002, 2, -2])


@pytest.mark.parametrize(
    ("scales", "zero_point"), [((0.5, 0.5, 0.3), 0), ((0.5, 0.25, 1.0), 0), ((0.5, 0.5, 0.5), 1)]
)
def test_other_scales_are_not_shifted(scales: tuple[float, ...], zero_point: int) -> None:
    """Whatever the flag says, 1 + 1 is 2 within half a step."""
    inputs = [
        tensor([round(1 / scale) + zero_point], S16, scale, zero_point) for scale in scales[:2]
    ]
    operation = ElementwiseBinary(power_of_two_scales=True)
    (result,) = run_operation(operation, inputs, [declared(S16, scales[2])])
    assert abs(float(result[0]) * scales[2] - 2) <= scales[2] / 2


@pytest.mark.parametrize("data_type", [F32, F16], ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (UnaryOperation.ABS, [-2, 3], [2, 3]),
        (UnaryOperation.EXP, [0, 1], [1, math.e]),
        (UnaryOperation.SQRT, [4, 2], [2, math.sqrt(2)]),
        (UnaryOperation.RSQRT, [4, 0.25], [0.5, 2]),
        (UnaryOperation.NEG, [-2, 3], [2, -3]),
        (UnaryOperation.LOG, [1, 8], [0, 3 * math.log(2)]),
        (UnaryOperation.SIN, [0, 1], [0, math.sin(1)]),
        (UnaryOperation.COS, [0, 1], [1, math.cos(1)]),
        (UnaryOperation.CEIL, [-1.5, 1.25], [-1, 2]),
        (UnaryOperation.FLOOR, [-1.5, 1.25], [-2, 1]),
        (UnaryOperation.ROUND, [0.5, 1.5, -2.5], [0, 2, -2]),
        (UnaryOperation.SQUARE, [-3, 0.5], [9, 0.25]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_unary_functions_of_floats(
    kind: UnaryOperation, values: object, expected: object, data_type: DataType
) -> None:
    operation = ElementwiseUnary(operation=kind)
    (result,) = run_operation(operation, [tensor(values, data_type)])
    check(result, expected, 1e-6 if data_type is F32 else 1e-3)


def test_logical_not() -> None:
    operation = ElementwiseUnary(operation=UnaryOperation.LOGICAL_NOT)
    check(run_operation(operation, [tensor([True, False], BOOL)])[0], [False, True])


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        # Real numbers are (stored - 2) / 4, results (stored + 3) / 2.
        (UnaryOperation.ABS, [-6, 10, -128], [1, 1, 62]),
        (UnaryOperation.NEG, [-6, 10], [1, -7]),
        (UnaryOperation.SQRT, [18, 17, 2, -5], [1, 0, -3, -3]),
        (UnaryOperation.RSQRT, [18, 3, 2, 1], [-2, 1, 127, 127]),
        (UnaryOperation.EXP, [2, 6, 127], [-1, 2, 127]),
        (UnaryOperation.LOG, [6, 2, -5], [-3, -128, -128]),
        (UnaryOperation.SQUARE, [10], [5]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_quantised_unary_functions(kind: UnaryOperation, values: object, expected: object) -> None:
    operation = ElementwiseUnary(operation=kind)
    (result,) = run_operation(operation, [tensor(values, S8, 0.25, 2)], [declared(S8, 0.5, -3)])
    check(result, expected)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(UnaryOperation.ABS, 8), (UnaryOperation.EXP, 2981), (UnaryOperation.LOG, 2.079)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_unary_functions_of_16_bits(kind: UnaryOperation, expected: float) -> None:
    scale = 1 / 8
    operation = ElementwiseUnary(operation=kind)
    (result,) = run_operation(
        operation, [tensor([8 * 1024], S16, 1 / 1024)], [declared(S16, scale)]
    )
    # Samples of the interpolated functions lie 1/8 apart.
    assert abs(result[0] * scale - expected) <= max(scale, expected / 500)


def test_absolute_values_with_equal_scales_are_copied() -> None:
    (result,) = run_operation(ElementwiseUnary(), [tensor([-5, 7], S8, 0.3, 1)])
    check(result, [7, 7])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ComparisonOperation.EQUAL, [False, True, False]),
        (ComparisonOperation.NOT_EQUAL, [True, False, True]),
        (ComparisonOperation.LESS, [True, False, False]),
        (ComparisonOperation.LESS_OR_EQUAL, [True, True, False]),
        (ComparisonOperation.GREATER, [False, False, True]),
        (ComparisonOperation.GREATER_OR_EQUAL, [False, True, True]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_comparisons(kind: ComparisonOperation, expected: object) -> None:
    operation = Comparison(operation=kind)
    check(run_operation(operation, [tensor([1, 2, 3]), tensor([2, 2, 2])])[0], expected)
    # The same real numbers in two quantisations.
    for data_type in (S8, S16):
        inputs = [tensor([2, 4, 6], data_type, 0.5), tensor([1, 1, 1], data_type, 2.0)]
        check(run_operation(operation, inputs)[0], expected)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (LogicalBinaryOperation.LOGICAL_AND, [True, False, False]),
        (LogicalBinaryOperation.LOGICAL_OR, [True, True, False]),
    ],
)
def test_logical_functions(kind: LogicalBinaryOperation, expected: object) -> None:
    inputs = [tensor([True, True, False], BOOL), tensor([True, False, False], BOOL)]
    check(run_operation(LogicalBinary(operation=kind), inputs)[0], expected)


@pytest.mark.parametrize("data_type", [F32, F16], ids=lambda t: t.name)
def test_prelu_of_floats(data_type: DataType) -> None:
    inputs = [tensor([[-4, 2], [-8, -2]], data_type), tensor([0.25, 0.5], data_type)]
    check(run_operation(Prelu(), inputs)[0], [[-1, 2], [-2, -1]])


@pytest.mark.parametrize("data_type", [S8, S16], ids=lambda t: t.name)
def test_prelu_of_quantised_numbers(data_type: DataType) -> None:
    # Real numbers -4, 2, -8 and 0.25, 0.5, 0.125.
    inputs = [tensor([-8, 4, -16], data_type, 0.5), tensor([4, 8, 2], data_type, 1 / 16)]
    check(run_operation(Prelu(), inputs, [declared(data_type, 0.25)])[0], [-4, 8, -4])


def test_select_copies_elements() -> None:
    inputs = [tensor([[True], [False]], BOOL), tensor([1, 2], I32), tensor(7, I32)]
    check(run_operation(Select(), inputs)[0], [[1, 2], [7, 7]])


def test_select_converts_other_quantisations() -> None:
    inputs = [tensor([True, False], BOOL), tensor([3, 3], S8, 0.25), tensor([5, 5], S8, 0.5, 1)]
    check(run_operation(Select(), inputs, [declared(S8, 0.5, 1)])[0], [3, 5])


@pytest.mark.parametrize("data_type", [F32, F16], ids=lambda t: t.name)
def test_quantize_rounds_halves_away_from_0_and_saturates(data_type: DataType) -> None:
    source = tensor([0.25, -0.25, 0.75, 1000, -1000], data_type)
    (result,) = run_operation(Quantize(), [source], [declared(S8, 0.5, 1)])
    check(result, [2, 0, 3, 127, -128])


def test_quantize_does_not_round_up_just_below_a_half() -> None:
    below_half = np.nextafter(np.float32(0.5), np.float32(0))
    check(run_operation(Quantize(), [tensor([below_half])], [declared(S8, 1.0)])[0], [0])


def test_quantize_makes_not_a_number_0_and_infinities_saturate() -> None:
    source = tensor([math.nan, INFINITY, -INFINITY])
    check(run_operation(Quantize(), [source], [declared(U8, 1.0, 7)])[0], [7, 255, 0])


def test_quantize_along_an_axis() -> None:
    output = TensorInfo(None, S8, Quantization((0.5, 2.0), (0, 10), axis=1))
    check(run_operation(Quantize(), [tensor([[4.0, 4.0]] * 2)], [output])[0], [[8, 12]] * 2)


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        (tensor([0, 128, 255], U8, 0.5, 128), declared(S8, 0.5), [-128, 0, 127]),
        # A factor of at least 1/2 needs no right shift, and the product rounds halves up.
        (tensor([3, -3], S8, 0.5), declared(S8, 1.0), [2, -1]),
        (tensor([2, -2], S8, 0.5), declared(S8, 2.0), [1, -1]),
        (tensor([1000, -1000], S16, 0.25), declared(S8, 2.0, 1), [126, -124]),
        (tensor([5, -5], S16, 2.0**-6), declared(I32, 2.0**-8), [20, -20]),
        (tensor([256, -900], I32, 2.0**-8), declared(S8, 2.0**-5), [32, -113]),
    ],
    ids=["U8-S8", "S8-S8 half", "S8-S8 quarter", "S16-S8", "S16-I32", "I32-S8"],
)
def test_requantisation(source: Any, output: TensorInfo, expected: object) -> None:
    check(run_operation(Quantize(), [source], [output])[0], expected)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (tensor([-128, 3], S8, 0.5, 3), [-65.5, 0]),
        (tensor([0, 255], U8, 0.25, 128), [-32, 31.75]),
        (tensor([-32768], S16, 2.0**-15), [-1]),
        (tensor([2**24 + 1], I32, 0.5), [2.0**23]),
        (tensor([1.5, -2], F16), [1.5, -2]),
    ],
    ids=["S8", "U8", "S16", "I32", "F16"],
)
def test_dequantize(source: Any, expected: object) -> None:
    check(run_operation(Dequantize(), [source])[0], expected)


def test_dequantize_along_an_axis_and_without_quantisation() -> None:
    info = TensorInfo((2, 2), S8, Quantization((0.5, 2.0), (0, 1), axis=-1))
    stored = np.array([[4, 4], [-4, 0]], np.int8)
    check(run_operation(Dequantize(), [(info, stored)])[0], [[2, 6], [-2, -2]])
    check(run_operation(Dequantize(), [tensor([5], I32)])[0], [5])


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (tensor([1.9, -1.9, 300, -300, math.nan]), DataType.SIGNED8, [1, -1, 127, -128, 127]),
        (tensor([1e30, -1e30]), DataType.SIGNED64, [2**63 - 1, -(2**63)]),
        (tensor([1e30, 2.0**31]), I32, [2**31 - 1, 2**31 - 1]),
        (tensor([300, -1], I32), DataType.UNSIGNED8, [44, 255]),
        (tensor([300, -1], I32), U8, [255, 0]),
        (tensor([2, 0], I32), BOOL, [True, False]),
        (tensor([True, False], BOOL), F32, [1, 0]),
        (tensor([1e6]), F16, [INFINITY]),
        (tensor([5], U8, 0.5, 3), F32, [5]),
        (tensor([7], I32), I32, [7]),
        (tensor([0x3FC0], DataType.BFLOAT16), F32, [1.5]),
        (tensor([0x3FC0], DataType.BFLOAT16), I32, [1]),
        # 1 + 2**-8 lies in the middle and goes to the even neighbour, 1 + 3 * 2**-8 too.
        (tensor([1 + 2.0**-8, 1 + 3 * 2.0**-8]), DataType.BFLOAT16, [0x3F80, 0x3F82]),
        (tensor([math.nan]), DataType.BFLOAT16, [0x7FC0]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_cast(source: Any, target: DataType, expected: object) -> None:
    check(run_operation(Cast(), [source], [declared(target)])[0], expected)


@pytest.mark.parametrize(
    ("operation", "data_type"),
    [
        (Activation(), F32),
        (Activation(), S8),
        (ElementwiseUnary(), F32),
        (ElementwiseUnary(), S8),
        (Quantize(), S8),
    ],
    ids=lambda value: value.name,
)
def test_many_elements_in_blocks_equal_each_block_alone(
    operation: Operation, data_type: DataType
) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(-128, 128, (5, 20_000)).astype(data_type.dtype)
    scale = 0.1 if data_type is S8 else None
    output = [declared(data_type, scale)]
    (together,) = run_operation(operation, [tensor(values, data_type, scale)], output)
    for row, expected in zip(together, values, strict=True):
        check(row, run_operation(operation, [tensor(expected, data_type, scale)], output)[0])
