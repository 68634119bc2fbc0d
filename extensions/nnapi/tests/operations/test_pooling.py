"""NNAPI pooling operations."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import Operand

from .nnapi_operation import (
    integer,
    output,
    run,
    run_chain,
    tensor,
)

AVERAGE, L2, MAX = (
    OperationCode.AVERAGE_POOL_2D,
    OperationCode.L2_POOL_2D,
    OperationCode.MAX_POOL_2D,
)
F32 = OperandCode.TENSOR_FLOAT32
U8, S8 = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
IMAGE = tensor(F32, np.arange(1.0, 7.0).reshape(1, 2, 3, 1))


def integers(*values: int) -> list[Operand]:
    """INT32 constants."""
    return [integer(value) for value in values]


def test_windows_are_given_horizontal_first() -> None:
    # Windows three wide and one high, from row to row: strides 1 and 2 mean no second row.
    arguments = [IMAGE, *integers(2), *integers(1, 2), *integers(3, 1), integer(0)]
    (result,) = run(MAX, arguments, [output(F32)])
    assert result.tolist() == [[[[3]]]]


def test_padding_elements_do_not_count() -> None:
    # One column to the left: windows (., 1), (1, 2), (2, 3) and the row below.
    arguments = [IMAGE, *integers(1, 0, 0, 0), *integers(1, 1), *integers(2, 1), integer(0)]
    (mean,) = run(AVERAGE, arguments, [output(F32)])
    assert mean[0, ..., 0].tolist() == [[1, 1.5, 2.5], [4, 4.5, 5.5]]
    (root,) = run(L2, arguments, [output(F32)])
    assert root[0, 0, :, 0] == pytest.approx([1, 2.5**0.5, 6.5**0.5])


@pytest.mark.parametrize("side", range(4))
def test_padding_is_smaller_than_the_window(side: int) -> None:
    padding = [0, 0, 0, 0]
    padding[side] = 2
    arguments = [IMAGE, *integers(*padding), *integers(1, 1), *integers(2, 2), integer(0)]
    with pytest.raises(LayerValidationError, match=r"holds whole windows.*less than 2"):
        run(MAX, arguments, [output(F32)])


def test_signed_means_are_rounded_half_away_from_zero() -> None:
    image = tensor(S8, np.reshape([-1, -2, 1, 2], (1, 2, 2, 1)), 0.5, 3)
    arguments = [image, integer(2), *integers(1, 1), *integers(2, 1), integer(0)]
    (result,) = run(AVERAGE, arguments, [output(S8, (), 0.5, 3)])
    assert result.ravel().tolist() == [-2, 2]


def test_activations_clamp_stored_elements() -> None:
    # RELU6 with scale 0.5 and zero point 3 keeps 3 to 15.
    image = tensor(U8, np.reshape([0, 3, 15, 200], (1, 1, 4, 1)), 0.5, 3)
    arguments = [image, integer(2), *integers(1, 1), *integers(1, 1), integer(3)]
    (result,) = run(MAX, arguments, [output(U8, (), 0.5, 3)])
    assert result.ravel().tolist() == [3, 3, 15, 15]


def test_the_models_output_is_quantised_as_the_input() -> None:
    image = tensor(U8, np.ones((1, 1, 1, 1)), 0.5, 3)
    arguments = [image, integer(2), *integers(1, 1), *integers(1, 1), integer(0)]
    with pytest.raises(LayerValidationError, match=r"wrong quantisation.*scale 0.5.*zero point 3"):
        run(MAX, arguments, [output(U8, (), 0.5, 4)])


def test_between_operations_the_inputs_quantisation_holds() -> None:
    image = tensor(U8, np.reshape([10, 20], (1, 1, 2, 1)), 0.5, 3)
    scalars = [integer(2), *integers(1, 1), *integers(2, 1), integer(0)]
    single = [integer(2), *integers(1, 1), *integers(1, 1), integer(0)]
    (result,) = run_chain(
        [(MAX, [image, *scalars]), (MAX, single)],
        [output(U8, (), 0.5, 3)],
        between=[output(U8, (), 9.0, 7)],
    )
    assert result.ravel().tolist() == [20]
