"""CpuRef's activations, softmax and normalisation on hand-worked values.

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
    ActivationFunction,
    L2Normalization,
    LogSoftmax,
    Softmax,
)
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.run_operation import check, declared, run_operation, tensor

Array = npt.NDArray[Any]  # Any: every element type occurs

F32, F16, BOOL = DataType.FLOAT32, DataType.FLOAT16, DataType.BOOLEAN
S8, U8, S16 = DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16
I32 = DataType.SIGNED32


ACTIVATIONS = [
    (Activation(ActivationFunction.SIGMOID), [0, 0.5, 1 / (1 + math.e)]),
    (Activation(ActivationFunction.TANH, a=1, b=1), [0, 0, math.tanh(-1)]),
    (Activation(ActivationFunction.TANH, a=2, b=3), [0, 0, 2 * math.tanh(-3)]),
    (Activation(ActivationFunction.LINEAR, a=2, b=1), [0, 1, -1]),
    (Activation(ActivationFunction.RELU), [0, 0, 0]),
    (Activation(ActivationFunction.BOUNDED_RELU, a=1, b=-0.5), [0, 0, -0.5]),
    (Activation(ActivationFunction.SOFT_RELU), [0, math.log(2), math.log(1 + math.exp(-1))]),
    (Activation(ActivationFunction.LEAKY_RELU, a=0.25), [0, 0, -0.25]),
    (Activation(ActivationFunction.ABS), [0, 0, 1]),
    (Activation(ActivationFunction.SQUARE), [0, 0, 1]),
    (Activation(ActivationFunction.ELU, a=0.5), [0, 0, 0.5 * (math.exp(-1) - 1)]),
    (Activation(ActivationFunction.HARD_SWISH), [0, 0, -1 / 3]),
    (Activation(ActivationFunction.GELU), [0, 0, -0.5 * math.erfc(math.sqrt(0.5))]),
    (Activation(ActivationFunction.GELU, approximate=True), [0, 0, -0.158808]),
]
LARGE = {
    ActivationFunction.SIGMOID: 1,
    ActivationFunction.TANH: 1,
    ActivationFunction.BOUNDED_RELU: 1,
    ActivationFunction.SQUARE: 1e4,
}


@pytest.mark.parametrize("data_type", [F32, F16], ids=lambda t: t.name)
@pytest.mark.parametrize(("operation", "expected"), ACTIVATIONS, ids=str)
def test_activation_functions(
    operation: Activation, expected: list[float], data_type: DataType
) -> None:
    factor = {ActivationFunction.TANH: operation.a, ActivationFunction.LINEAR: 2}
    large = LARGE.get(operation.function, 100) * factor.get(operation.function, 1)
    large += operation.b if operation.function is ActivationFunction.LINEAR else 0
    (result,) = run_operation(operation, [tensor([100, 0, -1], data_type)])
    check(result, [large, *expected[1:]], 1e-6 if data_type is F32 else 1e-3)


def test_sigmoid_of_a_very_negative_number_is_0() -> None:
    check(run_operation(Activation(), [tensor([-200.0, 200.0])])[0], [0, 1])


def test_square_root_activation() -> None:
    check(run_operation(Activation(ActivationFunction.SQRT), [tensor([4.0, 9.0])])[0], [2, 3])


@pytest.mark.parametrize("data_type", [S8, S16], ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        # Real numbers -2, 1.5, 8; steps of the output are 1/2.
        (Activation(ActivationFunction.RELU), [0, 3, 16]),
        (Activation(ActivationFunction.BOUNDED_RELU, a=6), [0, 3, 12]),
        (Activation(ActivationFunction.BOUNDED_RELU, a=1, b=-1), [-2, 2, 2]),
        (Activation(ActivationFunction.LEAKY_RELU, a=0.5), [-2, 3, 16]),
        (Activation(ActivationFunction.LEAKY_RELU, a=-0.5), [2, 3, 16]),
        (Activation(ActivationFunction.HARD_SWISH), [-1, 2, 16]),
        (Activation(ActivationFunction.LINEAR, a=2, b=1), [-6, 8, 34]),
        (Activation(ActivationFunction.ABS), [4, 3, 16]),
        (Activation(ActivationFunction.SIGMOID), [0, 2, 2]),
        (Activation(ActivationFunction.TANH, a=1, b=1), [-2, 2, 2]),
    ],
    ids=str,
)
def test_quantised_activation_functions(
    operation: Activation, expected: object, data_type: DataType
) -> None:
    (result,) = run_operation(
        operation, [tensor([-8, 6, 32], data_type, 0.25)], [declared(data_type, 0.5)]
    )
    check(result, expected)


@pytest.mark.parametrize("source_scale", [2.0**-12, 1 / 3000], ids=["power of two", "other"])
@pytest.mark.parametrize(
    ("operation", "function"),
    [
        (Activation(ActivationFunction.SIGMOID), lambda x: 1 / (1 + math.exp(-x))),
        (Activation(ActivationFunction.TANH, a=1, b=1), math.tanh),
    ],
    ids=["SIGMOID", "TANH"],
)
def test_interpolated_activation_functions(
    operation: Activation, function: Any, source_scale: float
) -> None:
    values = [-30000, -5000, -1, 0, 1, 3000, 32767]
    source = tensor(values, S16, source_scale)
    (result,) = run_operation(operation, [source], [declared(S16, 2.0**-15)])
    expected = [32768 * function(value * source_scale) for value in values]
    np.testing.assert_allclose(result, expected, atol=6)


def test_tanh_with_parameters_is_not_interpolated() -> None:
    operation = Activation(ActivationFunction.TANH, a=0.5, b=2)
    (result,) = run_operation(operation, [tensor([4096], S16, 2.0**-12)], [declared(S16, 2.0**-15)])
    check(result, [round(32768 * 0.5 * math.tanh(2))])


@pytest.mark.parametrize(
    ("is_approximate", "scale", "wanted"),
    [
        (False, 0.00012252849410288036, [-2, -51, -519, -1387, 1359, 9726, 19061, 27730]),
        (True, 0.00012253013846930116, [-1, -47, -520, -1388, 1359, 9724, 19064, 27732]),
    ],
)
def test_gelu_of_16_bits_is_that_of_litert(
    is_approximate: bool, scale: float, wanted: list[int]
) -> None:
    # LiteRT 2.3's results, by interpolation between 513 samples: some are off by more than 1.
    values = np.arange(-31768, 32768, 8501)
    source = tensor(values, S16, 0.00012253213208168745)
    operation = Activation(ActivationFunction.GELU, approximate=is_approximate)
    (result,) = run_operation(operation, [source], [declared(S16, scale)])
    check(result, wanted)


def test_hard_swish_of_finely_quantised_numbers() -> None:
    operation = Activation(ActivationFunction.HARD_SWISH)
    source = tensor([-128, 64, 127], S8, 2.0**-8)
    (result,) = run_operation(operation, [source], [declared(S8, 2.0**-8)])
    expected = [256 * x * (x + 3) / 6 for x in (-0.5, 0.25, 127 / 256)]
    np.testing.assert_allclose(result, expected, atol=1)


@pytest.mark.parametrize("data_type", [F32, F16], ids=lambda t: t.name)
@pytest.mark.parametrize("axis", [0, -1])
def test_softmax_of_floats(axis: int, data_type: DataType) -> None:
    values = np.log([[1.0, 3.0], [4.0, 12.0]])
    expected = {0: [[0.2, 0.2], [0.8, 0.8]], -1: [[0.25, 0.75], [0.25, 0.75]]}[axis]
    tolerance = 1e-6 if data_type is F32 else 1e-3
    check(run_operation(Softmax(axis=axis), [tensor(values, data_type)])[0], expected, tolerance)
    (logarithms,) = run_operation(LogSoftmax(axis=axis), [tensor(values, data_type)])
    check(logarithms, np.log(expected), tolerance)


def test_beta_multiplies_the_exponents() -> None:
    source = tensor([[0.0, math.log(3)]])
    check(run_operation(Softmax(beta=2.0), [source])[0], [[0.1, 0.9]], 1e-6)
    check(run_operation(LogSoftmax(beta=2.0), [source])[0], np.log([[0.1, 0.9]]), 1e-6)


@pytest.mark.parametrize(
    ("source_type", "output", "expected"),
    [
        (S8, declared(S8, 2.0**-8, -128), [-64, -64, -64, -64]),
        (U8, declared(U8, 2.0**-8), [64, 64, 64, 64]),
        (S8, declared(S16, 2.0**-16, -32768), [-16384] * 4),
        (S16, declared(S16, 2.0**-15), [8192] * 4),
        (S8, declared(S8, 2.0**-4), [4] * 4),
        (S16, declared(S16, 2.0**-4), [4] * 4),
    ],
    ids=str,
)
def test_softmax_of_equal_quantised_numbers(
    source_type: DataType, output: TensorInfo, expected: list[int]
) -> None:
    (result,) = run_operation(Softmax(), [tensor([[9] * 4], source_type, 0.1)], [output])
    np.testing.assert_allclose(result, [expected], atol=1)


def test_softmax_ignores_what_is_far_below_the_largest() -> None:
    source = tensor([[127, -128]], S8, 1.0)
    (result,) = run_operation(Softmax(), [source], [declared(S8, 2.0**-8, -128)])
    check(result, [[127, -128]])


@pytest.mark.parametrize(
    ("source_type", "output", "zero"),
    [(S8, declared(S8, 1 / 16, 127), 127), (U8, declared(U8, 1 / 16, 255), 255)],
    ids=str,
)
def test_log_softmax_of_quantised_numbers(
    source_type: DataType, output: TensorInfo, zero: int
) -> None:
    # Differences 0, 2 and 20 in steps of 1/16 after log(1 + exp(-2)) = 0.127; 20 is below -16.
    (result,) = run_operation(LogSoftmax(), [tensor([[100, 80, 0]], source_type, 0.1)], [output])
    check(result, [[zero - 2, zero - 34, zero - 162]])


def test_log_softmax_saturates_far_below_the_largest() -> None:
    source = tensor([[127, -128]], S8, 1.0)
    (result,) = run_operation(LogSoftmax(), [source], [declared(S8, 1 / 16, 127)])
    check(result, [[127, -128]])


def test_log_softmax_with_another_output_goes_through_floats() -> None:
    (result,) = run_operation(LogSoftmax(), [tensor([[9, 9]], S8, 0.1)], [declared(S8, 0.125)])
    check(result, [[-6, -6]])


@pytest.mark.parametrize("axis", [0, 1])
def test_l2_normalization_of_floats(axis: int) -> None:
    values = np.array([[3.0, 0.0], [4.0, 0.0]])
    values = values if axis == 0 else values.T
    expected = np.array([[0.6, 0.0], [0.8, 0.0]])
    expected = expected if axis == 0 else expected.T
    check(run_operation(L2Normalization(axis=axis), [tensor(values)])[0], expected, 1e-6)


@pytest.mark.parametrize(
    ("source_type", "zero_point", "output"),
    [
        (S8, 0, declared(S8, 2.0**-7)),
        (U8, 10, declared(U8, 2.0**-7, 128)),
        (S16, 0, declared(S16, 2.0**-7)),
    ],
    ids=str,
)
def test_l2_normalization_of_quantised_numbers(
    source_type: DataType, zero_point: int, output: TensorInfo
) -> None:
    stored = [[30 + zero_point, 40 + zero_point], [zero_point, zero_point]]
    source = tensor(stored, source_type, 0.1, zero_point)
    (result,) = run_operation(L2Normalization(), [source], [output])
    offset = output.zero_point
    check(result, [[77 + offset, 102 + offset], [offset, offset]])


def test_softmax_of_nothing_is_nothing() -> None:
    assert run_operation(Softmax(), [tensor(np.zeros((0, 3)))])[0].shape == (0, 3)
