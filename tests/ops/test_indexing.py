"""Shape rules of operations that read or write where indices say, or go along an axis."""

from __future__ import annotations

import pytest

from armpy.errors import LayerValidationError
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
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataType
from armpy_testing.labels import operation_label

ADD = ScatterReduction.ADD


def info(*shape: int | None, data_type: DataType = DataType.FLOAT32) -> TensorInfo:
    """A tensor of floats, or others."""
    return TensorInfo(shape, data_type)


def places(*shape: int | None) -> TensorInfo:
    """A tensor of indices."""
    return info(*shape, data_type=DataType.SIGNED64)


X = info(2, 3, 4)
BYTES = TensorInfo((2,), DataType.QASYMM_S8, Quantization.per_tensor(0.5, 1))


@pytest.mark.parametrize(
    ("operation", "inputs", "expected"),
    [
        (GatherElements(1), [X, places(2, 9, 1)], [(2, 9, 1)]),
        (GatherElements(-1), [info(2, None), places(None, 3)], [(None, 3)]),
        (ScatterElements(2), [X, places(1, 2, 9), info(1, 2, 9)], [(2, 3, 4)]),
        (ScatterNd(), [X, places(5, 2), info(5, 4)], [(2, 3, 4)]),
        (ScatterNd(ADD), [X, places(3), info()], [(2, 3, 4)]),
        (ScatterNd(), [X, places(5, None), info(5, 4)], [(2, 3, 4)]),
        (Cumulate(axis=-1), [X], [(2, 3, 4)]),
        (Cumulate(axis=(1,)), [info(2, None)], [(2, None)]),  # type: ignore[arg-type]  # as files have it
        (Cumulate(), [X, places(1)], [(2, 3, 4)]),
        (ReverseSequence(1, 0), [X, places(2)], [(2, 3, 4)]),
        (ReverseSequence(-1, 1), [X, places(None)], [(2, 3, 4)]),
        (NonZero(), [X], [(3, None)]),
        (NonZero(), [info()], [(1, None)]),
        (Unique(), [X], [(None,), (None,), (24,), (None,)]),
        (Unique(1), [X], [(2, None, 4), (None,), (3,), (None,)]),
        (TopkV2(2, largest=False), [X], [(2, 3, 2), (2, 3, 2)]),
    ],
    ids=operation_label,
)
def test_shapes(operation: Operation, inputs: list[TensorInfo], expected: list[Shape]) -> None:
    assert [result.shape for result in operation.infer(inputs)] == expected


@pytest.mark.parametrize(
    ("operation", "inputs", "match"),
    [
        (GatherElements(3), [X, places(2, 3, 4)], "axis is out of range"),
        (GatherElements(1), [X, places(2, 3)], "wrong rank, or are larger than the input"),
        (GatherElements(1), [X, places(3, 3, 4)], "larger than the input.*along axis 1"),
        (GatherElements(0), [X, info(2, 3, 4)], "indices have the wrong data type"),
        (ScatterElements(0), [X, places(2, 3, 4), info(2, 3, 3)], "updates have the wrong shape"),
        (ScatterElements(0), [info(2), places(1), places(1)], "updates has another data type"),
        (ScatterElements(0, ADD), [BYTES, places(2), BYTES], "ADD does not take"),
        (ScatterNd(), [X, places(5, 4), info(5)], "1 to 3, the input's rank; got 4"),
        (ScatterNd(), [X, places(5, 0), info(5, 2, 3, 4)], "1 to 3, the input's rank; got 0"),
        (
            ScatterNd(),
            [X, places(5, 2), info(5, 3)],
            r"updates have the wrong shape.*\(5, 4\); got \(5, 3\)",
        ),
        (Cumulate(), [X], "gives axis"),
        (Cumulate(axis=3), [X], "axis is out of range"),
        (Cumulate(ReduceOperation.MAX, 0), [X], "SUM or PROD; got MAX"),
        (ReverseSequence(1, -2), [X, places(3)], "are one"),
        (ReverseSequence(0, 1), [X, places(2)], "number of lengths is wrong.*3; got 2"),
        (ReverseSequence(0, 1), [X, info(3)], "lengths have the wrong data type"),
        (NonZero(), [BYTES], "combination of data types"),
        (Unique(3), [X], "axis is out of range"),
        (Unique(1), [info(0, 3)], "slices without elements"),
    ],
    ids=operation_label,
)
def test_what_cannot_be_is_refused(
    operation: Operation, inputs: list[TensorInfo], match: str
) -> None:
    with pytest.raises(LayerValidationError, match=match):
        operation.infer(inputs)
