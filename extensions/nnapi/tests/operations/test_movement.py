"""NNAPI operations that rearrange, repeat or make elements."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode

from .nnapi_operation import (
    integer,
    omitted,
    output,
    run,
    run_chain,
    scalar,
    tensor,
)

F32, F16, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_INT32
U8, S8 = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
AXIS_0 = integer(0)
X = tensor(F32, [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(("code", "shift"), [(U8, 0), (S8, 128)])
def test_concatenated_inputs_are_requantised_to_the_output(code: OperandCode, shift: int) -> None:
    # Reals 0, 0.5, 100, -5 (scale 0.5, zero point 10), to scale 0.25, zero point 20.
    coarse = tensor(code, np.array([10, 11, 210, 0]) - shift, 0.5, 10 - shift)
    same = tensor(code, np.array([0, 255, 7]) - shift, 0.25, 20 - shift)
    declared = output(code, (7,), 0.25, 20 - shift)
    (result,) = run(OperationCode.CONCATENATION, [coarse, same, AXIS_0], [declared])
    expected = np.array([20, 22, 255, 0, 0, 255, 7]) - shift
    assert result.tolist() == expected.tolist()


def test_halves_are_requantised_away_from_zero() -> None:
    # Less the zero point, both are halves of the new scale: -0.5 and 0.5.
    halves = tensor(S8, [-1, 1], 0.5, 0)
    declared = output(S8, (2,), 1.0, 0)
    (result,) = run(OperationCode.CONCATENATION, [halves, AXIS_0], [declared])
    assert result.tolist() == [-1, 1]


def test_concatenation_skips_inputs_without_elements() -> None:
    empty = tensor(F32, np.zeros((0, 3)))
    (result,) = run(OperationCode.CONCATENATION, [empty, X, AXIS_0], [output(F32)])
    assert result.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_the_axis_of_a_concatenation_does_not_count_from_the_end() -> None:
    with pytest.raises(LayerValidationError, match=r"axis is negative.*got -1"):
        run(OperationCode.CONCATENATION, [X, X, integer(-1)], [output(F32)])


def test_one_size_of_a_reshape_follows_from_the_others() -> None:
    (result,) = run(OperationCode.RESHAPE, [X, tensor(I32, [3, -1])], [output(F32)])
    assert result.tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("shape", [[-1, -1], [4], [4, -1], [[6]]])
def test_shapes_that_cannot_be_reshaped_to_fail(shape: list[int]) -> None:
    with pytest.raises(LayerValidationError, match="shape"):
        run(OperationCode.RESHAPE, [X, tensor(I32, shape)], [output(F32)])


def test_moved_elements_keep_the_quantisation_that_the_model_must_declare() -> None:
    stored = tensor(U8, [[1, 2]], 0.5, 3)
    with pytest.raises(LayerValidationError, match=r"wrong quantisation.*0.5.*0.25"):
        run(OperationCode.RESHAPE, [stored, tensor(I32, [2])], [output(U8, (2,), 0.25, 3)])


def test_between_operations_the_quantisation_that_is_computed_holds() -> None:
    shape = tensor(I32, [2])
    steps = [
        (OperationCode.RESHAPE, [tensor(U8, [[1, 2]], 0.5, 3), shape]),
        (OperationCode.RESHAPE, [shape]),
    ]
    declared = [output(U8, (2,), 0.25, 3)]
    (result,) = run_chain(steps, [output(U8, (2,), 0.5, 3)], declared)
    assert result.tolist() == [1, 2]


def test_squeeze_without_axes_removes_all_of_size_1() -> None:
    single = tensor(F32, [[[1], [2]]])
    for axes in (omitted(I32), omitted(I32, (2,))):
        (result,) = run(OperationCode.SQUEEZE, [single, axes], [output(F32)])
        assert result.tolist() == [1, 2]


def test_what_would_have_no_axis_left_has_one_of_size_1() -> None:
    (result,) = run(OperationCode.SQUEEZE, [tensor(F32, [[7]]), omitted(I32)], [output(F32)])
    assert result.tolist() == [7]


def test_squeeze_only_removes_axes_of_size_1() -> None:
    with pytest.raises(LayerValidationError, match="another size than 1"):
        run(OperationCode.SQUEEZE, [X, tensor(I32, [1])], [output(F32)])


def test_a_matrix_is_transposed_without_perm() -> None:
    (result,) = run(OperationCode.TRANSPOSE, [X, omitted(I32, (2,))], [output(F32)])
    assert result.tolist() == [[1, 4], [2, 5], [3, 6]]


def test_only_a_matrix_is_transposed_without_perm() -> None:
    cube = tensor(F32, np.zeros((2, 2, 2)))
    with pytest.raises(LayerValidationError, match="only be left out for a matrix"):
        run(OperationCode.TRANSPOSE, [cube, omitted(I32, (3,))], [output(F32)])


@pytest.mark.parametrize("perm", [[0, -1], [0], [0, 2], [0, 0]])
def test_perm_names_each_axis_from_the_front(perm: list[int]) -> None:
    with pytest.raises(LayerValidationError, match=r"axis is|perm"):
        run(OperationCode.TRANSPOSE, [X, tensor(I32, perm)], [output(F32)])


def test_reshape_does_not_take_inputs_without_elements() -> None:
    empty = tensor(F32, np.zeros((0, 3)))
    with pytest.raises(LayerValidationError, match="RESHAPE does not support"):
        run(OperationCode.RESHAPE, [empty, tensor(I32, [-1])], [output(F32)])


@pytest.mark.parametrize(("axis", "shape"), [(0, (1, 2, 3)), (-1, (2, 3, 1)), (-3, (1, 2, 3))])
def test_an_axis_is_inserted(axis: int, shape: tuple[int, ...]) -> None:
    inputs = [X, integer(axis)]
    (result,) = run(OperationCode.EXPAND_DIMS, inputs, [output(F32)])
    assert result.shape == shape


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_is_inserted_within_the_output(axis: int) -> None:
    with pytest.raises(LayerValidationError, match="axis is out of range"):
        run(OperationCode.EXPAND_DIMS, [X, integer(axis)], [output(F32)])


def test_tile_needs_a_multiple_per_axis() -> None:
    (result,) = run(OperationCode.TILE, [X, tensor(I32, [1, 2])], [output(F32)])
    assert result.tolist() == [[1, 2, 3, 1, 2, 3], [4, 5, 6, 4, 5, 6]]
    with pytest.raises(LayerValidationError, match="multiples has the wrong shape"):
        run(OperationCode.TILE, [X, tensor(I32, [2])], [output(F32)])


@pytest.mark.parametrize(
    ("tensor_type", "scalar_type", "value"),
    [(F32, OperandCode.FLOAT32, 1.5), (F16, OperandCode.FLOAT16, 1.5), (I32, OperandCode.INT32, 7)],
)
def test_fill(tensor_type: OperandCode, scalar_type: OperandCode, value: float) -> None:
    inputs = [tensor(I32, [2, 1]), scalar(scalar_type, value)]
    (result,) = run(OperationCode.FILL, inputs, [output(tensor_type)])
    assert result.tolist() == [[value], [value]]


@pytest.mark.parametrize("code", [F32, U8, OperandCode.TENSOR_BOOL8])
def test_the_rank_is_a_scalar(code: OperandCode) -> None:
    operand = tensor(code, [[0, 1]], 0.5 if code == U8 else 0.0)
    (result,) = run(OperationCode.RANK, [operand], [output(OperandCode.INT32)])
    assert result.shape == ()
    assert result == 2
