"""NNAPI operations that take parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from armpy.errors import ArmpyError, LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import Operand

from .nnapi_operation import (
    feature_level,
    integer,
    output,
    run,
    tensor,
)

F32, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_INT32
U8 = OperandCode.TENSOR_QUANT8_ASYMM
X = tensor(F32, [[1, 2, 3], [4, 5, 6]])
TABLE = tensor(U8, [[1, 2], [3, 4], [5, 6]], 0.5, 9)


@pytest.mark.parametrize("position", [-1, 3])
@pytest.mark.parametrize("code", [OperationCode.EMBEDDING_LOOKUP, OperationCode.GATHER])
def test_positions_beyond_the_table_fail(code: OperationCode, position: int) -> None:
    positions = tensor(I32, [position])
    is_gather = code == OperationCode.GATHER
    inputs = [TABLE, integer(0), positions] if is_gather else [positions, TABLE]
    with pytest.raises(ArmpyError, match=rf"range|{position}"):
        run(code, inputs, [output(U8, (), 0.5, 9)])


@pytest.mark.parametrize(
    ("lookups", "values"), [(tensor(I32, [[0]]), X), (tensor(I32, [0]), tensor(F32, [1]))]
)
def test_embeddings_are_looked_up_by_a_vector_in_a_table(lookups: Operand, values: Operand) -> None:
    with pytest.raises(LayerValidationError, match="lookups or values have the wrong rank"):
        run(OperationCode.EMBEDDING_LOOKUP, [lookups, values], [output(F32)])


@pytest.mark.parametrize(
    ("begin", "size"), [([0, 3], [1, 1]), ([-1, 0], [1, 1]), ([0, 0], [1, -2]), ([0], [1])]
)
def test_slices_beyond_the_input_fail(begin: list[int], size: list[int]) -> None:
    with pytest.raises(LayerValidationError, match=r"slice does not lie|begin has the wrong shape"):
        run(OperationCode.SLICE, [X, tensor(I32, begin), tensor(I32, size)], [output(F32)])


def test_split_parts_keep_their_quantisation() -> None:
    parts = [output(U8, (3, 1), 0.5, 9)] * 2
    left, right = run(OperationCode.SPLIT, [TABLE, integer(-1), integer(2)], parts)
    assert left.tolist() == [[1], [3], [5]]
    assert right.tolist() == [[2], [4], [6]]
    with pytest.raises(LayerValidationError, match="wrong quantisation"):
        run(OperationCode.SPLIT, [TABLE, integer(1), integer(2)], [parts[0], output(U8, (), 1.0)])


def test_a_split_needs_one_output_per_part() -> None:
    outputs = [output(F32)] * 3
    with pytest.raises(LayerValidationError, match=r"num_splits.*Expected 3; got 2"):
        feature_level(OperationCode.SPLIT, [X, integer(1), integer(2)], outputs)
    assert feature_level(OperationCode.SPLIT, [X, integer(1), integer(3)], outputs) == 29


def test_the_axis_splits_into_equal_parts_only() -> None:
    with pytest.raises(LayerValidationError, match="does not split into equal parts"):
        run(OperationCode.SPLIT, [X, integer(1), integer(2)], [output(F32)] * 2)


def strided_slice(
    given: Operand, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], *masks: int
) -> list[object]:
    """Elements that a strided slice takes."""
    lists = [tensor(I32, values) for values in (begin, end, strides)]
    flags = [integer(mask) for mask in (masks or (0, 0, 0))]
    (result,) = run(OperationCode.STRIDED_SLICE, [given, *lists, *flags], [output(F32)])
    elements: list[object] = result.tolist()
    return elements


# Elements are their positions.
LINE = tensor(F32, [0, 1, 2, 3])


def test_a_shrunk_axis_may_start_in_front_of_the_border() -> None:
    assert strided_slice(X, [-9, 0], [1, 3], [1, 1], 0, 0, 1) == [1, 2, 3]
    assert strided_slice(X, [5, 0], [1, 3], [1, 1], 1, 0, 1) == [1, 2, 3]


@pytest.mark.parametrize(("begin", "end", "stride"), [(0, 2, 1), (1, 0, -1), (1, 1, 1), (1, -1, 1)])
def test_a_shrunk_axis_needs_a_positive_stride_and_one_element(
    begin: int, end: int, stride: int
) -> None:
    with pytest.raises(LayerValidationError, match="axis 0 cannot be shrunk"):
        strided_slice(X, [begin, 0], [end, 3], [stride, 1], 0, 0, 1)


def test_a_stride_is_not_0() -> None:
    with pytest.raises(LayerValidationError, match="a stride is 0"):
        strided_slice(LINE, [0], [4], [0])
