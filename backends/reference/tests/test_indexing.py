"""CpuRef's scatters, searches and cumulations on small tensors worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_reference.workloads.unique import _unique_rows

from armpy.errors import InvalidArgumentError
from armpy.ops import (
    Cumulate,
    GatherElements,
    NonZero,
    Operation,
    ReduceOperation,
    ReverseSequence,
    ScatterElements,
    ScatterNd,
    ScatterReduction,
    TopkV2,
    Unique,
)
from armpy.types import DataType
from armpy_testing.labels import operation_label
from armpy_testing.run_operation import run_operation, tensor

I32, NAN = DataType.SIGNED32, float("nan")
PROD, NONE, ADD = ReduceOperation.PROD, ScatterReduction.NONE, ScatterReduction.ADD
X = [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("operation", "inputs", "expected"),
    [
        (GatherElements(1), [X, [[2, 0], [1, 1]]], [[3, 1], [5, 5]]),
        (GatherElements(0, wraps_negative=True), [X, [[-1, 0, -2]]], [[4, 2, 3]]),
        (ScatterElements(1), [X, [[1], [0]], [[9], [8]]], [[1, 9, 3], [8, 5, 6]]),
        (ScatterElements(0, ADD), [[1, 2], [0, 0, 1], [5, 6, 7]], [12, 9]),
        (ScatterElements(0, NONE, True), [[1, 2], [-1, -1], [5, 6]], [1, 6]),
        (ScatterNd(), [X, [[0, 2], [1, 0]], [7, 8]], [[1, 2, 7], [8, 5, 6]]),
        (ScatterNd(ADD), [X, [[1], [1]], [[1, 1, 1], [2, 2, 2]]], [[1, 2, 3], [7, 8, 9]]),
        (ScatterNd(NONE, True), [X, [[-1, -3]], [0]], [[1, 2, 3], [0, 5, 6]]),
        (ScatterNd(ScatterReduction.MAX), [[3, 4], [[0], [1]], [5, 1]], [5, 4]),
        (ReverseSequence(1, 0), [X, [2, 3]], [[2, 1, 3], [6, 5, 4]]),
    ],
    ids=operation_label,
)
def test_elements_end_up_in_their_places(
    operation: Operation, inputs: list[object], expected: object
) -> None:
    (result,) = run_operation(operation, [tensor(values, I32) for values in inputs])
    assert result.tolist() == expected


@pytest.mark.parametrize(
    "operation",
    [ScatterElements(0), ScatterNd(), ScatterElements(0, NONE, True), ScatterNd(NONE, True)],
    ids=operation_label,
)
@pytest.mark.parametrize("wrong", [3, -4])
def test_nothing_is_written_outside(operation: Operation, wrong: int) -> None:
    place = [[wrong]] if isinstance(operation, ScatterNd) else [wrong]
    inputs = [tensor(values, I32) for values in ([1, 2, 3], place, [0])]
    with pytest.raises(InvalidArgumentError, match=f"out of range.*{wrong} to {wrong}"):
        run_operation(operation, inputs)


def test_sequences_are_no_longer_than_their_axis() -> None:
    with pytest.raises(InvalidArgumentError, match="0 to 3; got 2 to 4"):
        run_operation(ReverseSequence(1, 0), [tensor(X, I32), tensor([2, 4], I32)])


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Cumulate(axis=1), [[1, 3, 6], [4, 9, 15]]),
        (Cumulate(axis=0, reverse=True), [[5, 7, 9], [4, 5, 6]]),
        (Cumulate(axis=1, exclusive=True), [[0, 1, 3], [0, 4, 9]]),
        (Cumulate(PROD, -1, exclusive=True, reverse=True), [[6, 3, 1], [30, 6, 1]]),
    ],
    ids=operation_label,
)
def test_numbers_are_cumulated(operation: Operation, expected: object) -> None:
    for data_type in (I32, DataType.FLOAT32, DataType.FLOAT64, DataType.UNSIGNED8):
        (result,) = run_operation(operation, [tensor(X, data_type)])
        assert result.tolist() == expected
        assert result.dtype == data_type.dtype


def test_positions_of_what_is_not_zero_are_in_row_major_order() -> None:
    for data_type in (DataType.FLOAT32, DataType.BOOLEAN, DataType.SIGNED64):
        (positions,) = run_operation(NonZero(), [tensor([[0, 1, 0], [1, 0, 1]], data_type)])
        assert positions.tolist() == [[0, 1, 1], [1, 0, 2]]
    (positions,) = run_operation(NonZero(), [tensor([0.0, NAN, -0.0])])
    assert positions.tolist() == [[1]]
    assert run_operation(NonZero(), [tensor(5)])[0].tolist() == [[0]]
    assert run_operation(NonZero(), [tensor([[0, 0]], I32)])[0].shape == (2, 0)


def test_different_values_are_found_with_their_places_and_counts() -> None:
    values = tensor([2, 1, 1, 3, 4, 3], I32)
    outputs = [array.tolist() for array in run_operation(Unique(), [values])]
    assert outputs == [[1, 2, 3, 4], [1, 0, 3, 4], [1, 0, 0, 2, 3, 2], [2, 1, 2, 1]]
    outputs = [array.tolist() for array in run_operation(Unique(is_sorted=False), [values])]
    assert outputs == [[2, 1, 3, 4], [0, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]]


def test_different_slices_are_found_along_an_axis() -> None:
    values = tensor([[1, 0, 0], [1, 0, 0], [2, 3, 4]], I32)
    outputs = [array.tolist() for array in run_operation(Unique(0), [values])]
    assert outputs == [[[1, 0, 0], [2, 3, 4]], [0, 2], [0, 0, 1], [2, 1]]
    outputs = [array.tolist() for array in run_operation(Unique(1, is_sorted=False), [values])]
    assert outputs[0] == [[1, 0, 0], [1, 0, 0], [2, 3, 4]]


def test_of_equal_smallest_elements_the_first_comes_first() -> None:
    values = tensor([3, 1, 2, 1])
    top, indices = run_operation(TopkV2(3, largest=False), [values])
    assert (top.tolist(), indices.tolist()) == ([1, 1, 2], [1, 3, 2])
    _, indices = run_operation(TopkV2(3, larger_index_first=True, largest=False), [values])
    np.testing.assert_array_equal(indices, [3, 1, 2])


def test_unique_slices_are_found_by_rank_and_not_by_field() -> None:
    rows = np.array([[0.0, 2], [-1, 5], [-0.0, 2], [np.nan, 0], [np.nan, 0], [-1, 4]], np.float32)
    first, kinds, counts = _unique_rows(rows)
    assert first.tolist() == [5, 1, 0, 3, 4]  # NaN is the last, and equals nothing
    assert kinds.tolist() == [2, 1, 2, 3, 4, 0]
    assert counts.tolist() == [1, 1, 2, 1, 1]


def test_unique_slices_without_elements() -> None:
    none = _unique_rows(np.zeros((0, 1 << 40), np.float32))
    assert [array.size for array in none] == [0, 0, 0]
    assert [array.tolist() for array in _unique_rows(np.zeros((3, 0)))] == [[0], [0, 0, 0], [3]]
