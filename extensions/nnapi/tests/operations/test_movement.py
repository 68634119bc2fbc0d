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
    tensor,
)

F32, F16, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_INT32
U8, S8 = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
X = tensor(F32, [[1, 2, 3], [4, 5, 6]])


def test_the_axis_of_a_concatenation_does_not_count_from_the_end() -> None:
    with pytest.raises(LayerValidationError, match=r"axis is negative.*got -1"):
        run(OperationCode.CONCATENATION, [X, X, integer(-1)], [output(F32)])


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


def test_squeeze_only_removes_axes_of_size_1() -> None:
    with pytest.raises(LayerValidationError, match="another size than 1"):
        run(OperationCode.SQUEEZE, [X, tensor(I32, [1])], [output(F32)])


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


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_is_inserted_within_the_output(axis: int) -> None:
    with pytest.raises(LayerValidationError, match="axis is out of range"):
        run(OperationCode.EXPAND_DIMS, [X, integer(axis)], [output(F32)])


def test_tile_needs_a_multiple_per_axis() -> None:
    (result,) = run(OperationCode.TILE, [X, tensor(I32, [1, 2])], [output(F32)])
    assert result.tolist() == [[1, 2, 3, 1, 2, 3], [4, 5, 6, 4, 5, 6]]
    with pytest.raises(LayerValidationError, match="multiples has the wrong shape"):
        run(OperationCode.TILE, [X, tensor(I32, [2])], [output(F32)])
