"""What NNAPI says of activations, softmax and normalisation beyond the table of types."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import Operand

from .nnapi_operation import (
    output,
    run,
    run_chain,
    scalar,
    tensor,
)

F32, F16 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16
Q8A, Q8S = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
O = OperationCode  # noqa: E741  # stands before every name
BETA = scalar(OperandCode.FLOAT32, 1.0)


@pytest.mark.parametrize(
    ("code", "expected"),
    [(O.RELU, [10, 10, 11, 30]), (O.RELU1, [6, 9, 11, 14]), (O.RELU6, [10, 10, 11, 30])],
    ids=lambda value: getattr(value, "name", ""),
)
def test_clamps_keep_the_inputs_quantisation(code: OperationCode, expected: list[int]) -> None:
    # Steps of 0.25 from 10: -1 is 6, 1 is 14, 6 is 34.
    values = tensor(Q8A, [0, 9, 11, 30], 0.25, 10)

    assert run(code, [values], [output(Q8A, [4], 0.25, 10)])[0].tolist() == expected
    with pytest.raises(LayerValidationError, match=r"quantisation.*0\.5.*got.*0\.25"):
        run(code, [values], [output(Q8A, [4], 0.5, 10)])


@pytest.mark.parametrize(
    ("code", "kind", "scale", "zero_point", "stored"),
    [
        (O.LOGISTIC, Q8A, 1 / 256, 0, 128),
        (O.LOGISTIC, Q8S, 1 / 256, -128, 0),
        (O.TANH, Q8A, 1 / 128, 128, 128),
        (O.TANH, Q8S, 1 / 128, 0, 0),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_quantisation_of_the_output_is_prescribed(
    code: OperationCode, kind: OperandCode, scale: float, zero_point: int, stored: int
) -> None:
    values = tensor(kind, [5], 0.5, 5)
    other = output(kind, [1], 0.5, zero_point)

    assert run(code, [values], [output(kind, [1], scale, zero_point)])[0].tolist() == [stored]
    with pytest.raises(LayerValidationError, match=rf"wrong quantisation.*{scale:g}.*got 0\.5"):
        run(code, [values], [other])
    # Inside of a model the declared one gives way.
    (inner,) = run_chain([(code, [values]), (O.DEQUANTIZE, [])], [output(F32, [1])], [other])
    assert inner.tolist() == [0.5 if code is O.LOGISTIC else 0]


def test_fixed_point_does_not_reach_tiny_input_scales() -> None:
    values = tensor(Q8A, [5], 2.0**-27, 5)

    with pytest.raises(LayerValidationError, match=r"input's scale is too small"):
        run(O.LOGISTIC, [values], [output(Q8A, [1], 1 / 256, 0)])


def elu(x: float, alpha: float) -> float:
    """As NNAPI writes it."""
    return max(0.0, x) + min(0.0, alpha * (math.exp(x) - 1))


@pytest.mark.parametrize(
    ("kind", "number"), [(F32, OperandCode.FLOAT32), (F16, OperandCode.FLOAT16)]
)
@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.0, -0.25])
def test_elu_is_a_sum_of_two_clamps(kind: OperandCode, number: OperandCode, alpha: float) -> None:
    values = [-2.0, -0.5, 0.0, 0.5, 1.0]

    (result,) = run(O.ELU, (tensor(kind, values), scalar(number, alpha)), [output(kind, [5])])

    tolerance = 1e-6 if kind is F32 else 2e-3
    np.testing.assert_allclose(result, [elu(x, alpha) for x in values], tolerance, tolerance)


def test_hard_swish_needs_an_output_scale_above_a_128th_of_the_inputs() -> None:
    values = tensor(Q8A, [1], 1.0, 0)

    with pytest.raises(LayerValidationError, match=r"above 0\.0078125; got 0\.0078125"):
        run(O.HARD_SWISH, [values], [output(Q8A, [1], 1 / 128, 0)])


def softmax(values: Operand, *more: Operand, declared: Operand | None = None) -> list[float]:
    """The result, flat."""
    wanted = output(OperandCode(values.type)) if declared is None else declared
    (result,) = run(O.SOFTMAX, (values, *more), [wanted])
    return [float(item) for item in result.reshape(-1)]


@pytest.mark.parametrize("beta", [0.0, -1.0])
def test_softmax_needs_a_positive_beta(beta: float) -> None:
    with pytest.raises(LayerValidationError, match=r"beta is not positive"):
        softmax(tensor(F32, [1.0]), scalar(OperandCode.FLOAT32, beta))


@pytest.mark.parametrize(("kind", "zero_point"), [(Q8A, 0), (Q8S, -128)])
def test_softmax_fails_for_another_quantisation_even_inside_of_a_model(
    kind: OperandCode, zero_point: int
) -> None:
    values = tensor(kind, [7, 7], 0.5, 0)
    right = output(kind, [2], 1 / 256, zero_point)
    wrong = output(kind, [2], 1 / 128, zero_point)

    assert softmax(values, BETA, declared=right) == [128 + zero_point] * 2
    steps = [(O.SOFTMAX, [values, BETA]), (O.DEQUANTIZE, [])]
    with pytest.raises(LayerValidationError, match=r"wrong quantisation.*0\.00390625.*0\.0078125"):
        run_chain(steps, [output(F32, [2])], [wrong])


def test_l2_normalization_of_zeros_is_zero() -> None:
    unsigned = tensor(Q8A, [[7, 7]], 0.5, 7)
    signed = tensor(Q8S, [[7, 7]], 0.5, 7)

    assert run(O.L2_NORMALIZATION, [tensor(F32, [0.0, 0.0])], [output(F32)])[0].tolist() == [0, 0]
    whole = run(O.L2_NORMALIZATION, [unsigned], [output(Q8A, (1, 2), 1 / 128, 128)])[0]
    assert whole.tolist() == [[128, 128]]
    whole = run(O.L2_NORMALIZATION, [signed], [output(Q8S, (1, 2), 1 / 128, 0)])[0]
    assert whole.tolist() == [[0, 0]]
