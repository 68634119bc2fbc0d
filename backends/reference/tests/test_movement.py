"""CpuRef's data movement on small tensors worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import InvalidArgumentError
from armpy.ops import (
    BatchToSpaceNd,
    BroadcastTo,
    Concat,
    DepthToSpace,
    ExpandDims,
    Fill,
    Gather,
    GatherNd,
    OneHot,
    Operation,
    Pad,
    PaddingMode,
    Range,
    Rank,
    Reshape,
    ReverseV2,
    Shape,
    Slice,
    SpaceToBatchNd,
    SpaceToDepth,
    Splitter,
    Squeeze,
    Stack,
    StridedSlice,
    Tile,
    Transpose,
    Unstack,
)
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataLayout, DataType
from armpy_testing.labels import operation_label
from armpy_testing.run_operation import run_operation, tensor

X = [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("operation", "values", "expected"),
    [
        (Reshape((3, -1)), X, [[1, 2], [3, 4], [5, 6]]),
        (ExpandDims(1), X, [[[1, 2, 3]], [[4, 5, 6]]]),
        (Squeeze(), [[[7]], [[8]]], [7, 8]),
        (Pad(((1, 0), (0, 1))), X, [[0, 0, 0, 0], [1, 2, 3, 0], [4, 5, 6, 0]]),
        (Pad(((0, 0), (2, 1)), pad_value=9), X, [[9, 9, 1, 2, 3, 9], [9, 9, 4, 5, 6, 9]]),
        (Pad(()), 5, 5),
        (Pad(((2, 1),), padding_mode=PaddingMode.REFLECT), [1, 2, 3], [3, 2, 1, 2, 3, 2]),
        (Pad(((2, 1),), padding_mode=PaddingMode.SYMMETRIC), [1, 2, 3], [2, 1, 1, 2, 3, 3]),
        (Pad(((2, 1),), padding_mode=PaddingMode.EDGE), [1, 2, 3], [1, 1, 1, 2, 3, 3]),
        (Pad(((1, 4),), padding_mode=PaddingMode.WRAP), [1, 2, 3], [3, 1, 2, 3, 1, 2, 3, 1]),
        (Transpose((1, 0)), X, [[1, 4], [2, 5], [3, 6]]),
        (Transpose(()), 5, 5),
        (Tile((1, 2)), X, [[1, 2, 3, 1, 2, 3], [4, 5, 6, 4, 5, 6]]),
        (Tile((2, 1)), [[1, 2]], [[1, 2], [1, 2]]),
        (BroadcastTo((2, 2)), [[1], [2]], [[1, 1], [2, 2]]),
        (ReverseV2((-1,)), X, [[3, 2, 1], [6, 5, 4]]),
        (ReverseV2((0, 1)), X, [[6, 5, 4], [3, 2, 1]]),
        (ReverseV2(()), X, X),
        (Slice((0, 1), (-1, 2)), X, [[2, 3], [5, 6]]),
        (StridedSlice((0, 2), (2, 0), (1, -1)), X, [[3, 2], [6, 5]]),
        (StridedSlice((0, 2), (2, 0), (1, -2), end_mask=2), X, [[3, 1], [6, 4]]),
        (StridedSlice((1, 0), (0, 1), (1, 1), shrink_axis_mask=1), X, [4]),
        (StridedSlice((0, 0), (0, 2), (1, 1), new_axis_mask=1), X, [X]),
        (StridedSlice((-9,), (-9,), (-1,)), [1, 2], []),
        (Range(3, 9, 2), None, [3, 5, 7]),
    ],
    ids=operation_label,
)
def test_elements_end_up_in_their_places(
    operation: Operation, values: object, expected: object
) -> None:
    inputs = [] if values is None else [tensor(values, DataType.SIGNED32)]
    (result,) = run_operation(operation, inputs)
    np.testing.assert_array_equal(result, np.array(expected, np.int32))


def test_padding_of_quantised_tensors_is_the_zero_point() -> None:
    source = tensor([10, 20], DataType.QASYMM_S8, 0.5, -7)
    (zero,) = run_operation(Pad(((1, 1),)), [source])
    assert zero.tolist() == [-7, 10, 20, -7]


@pytest.mark.parametrize(("real", "stored"), [(1.25, -4), (-1.25, -10), (99.0, 127), (-99, -128)])
def test_padding_with_a_real_number_is_quantised(real: float, stored: int) -> None:
    # 1.25 / 0.5 = 2.5 is rounded away from zero to 3, then the zero point -7 is added.
    source = tensor([10], DataType.QASYMM_S8, 0.5, -7)
    (result,) = run_operation(Pad(((1, 0),), pad_value=real), [source])
    assert result.tolist() == [stored, 10]


@pytest.mark.parametrize("constants", [(), (1,)])
def test_the_operand_of_pad_is_a_stored_number(constants: tuple[int, ...]) -> None:
    source = tensor([10], DataType.QASYMM_S8, 0.5, -7)
    value = tensor([99], DataType.QASYMM_S8, 0.5, -7)
    (result,) = run_operation(Pad(((1, 0),)), [source, value], constants=constants)
    assert result.tolist() == [99, 10]


def test_concatenation_copies_what_is_quantised_like_the_output() -> None:
    a, b = tensor([[1], [2]]), tensor([[3, 4], [5, 6]])
    assert run_operation(Concat(1), [a, b])[0].tolist() == [[1, 3, 4], [2, 5, 6]]


def test_concatenation_of_uint8_requantises() -> None:
    # Real numbers 0.5, -0.5, 127 are 1, -1, 254 steps of 0.5, and 0.25, 0.75 are 0.5, 1.5
    # steps: halves go away from zero. The zero point 10 is added, 264 saturates.
    a = tensor([4, 0, 255], DataType.QASYMM_U8, 0.5, 3)
    b = tensor([1, 3, 200], DataType.QASYMM_U8, 0.25, 0)
    output = TensorInfo(None, DataType.QASYMM_U8, Quantization.per_tensor(0.5, 10))
    (result,) = run_operation(Concat(0), [a, b], [output])
    assert result.tolist() == [11, 7, 255, 11, 12, 110]


def test_stack_and_unstack_are_inverse() -> None:
    a, b = tensor([1, 2]), tensor([3, 4])
    (stacked,) = run_operation(Stack(1), [a, b])
    assert stacked.tolist() == [[1, 3], [2, 4]]
    parts = run_operation(Unstack(2, -1), [tensor(stacked)])
    assert [part.tolist() for part in parts] == [[1, 2], [3, 4]]


def test_splitter_cuts_along_the_axis() -> None:
    halves = run_operation(Splitter(2, -1), [tensor([[1, 2, 3, 4]])])
    assert [part.tolist() for part in halves] == [[[1, 2]], [[3, 4]]]
    parts = run_operation(Splitter(axis=0, sizes=(1, -1, 0)), [tensor([1, 2, 3])])
    assert [part.tolist() for part in parts] == [[1], [2, 3], []]


def test_gather_looks_up_slices() -> None:
    values = tensor([[1, 2, 3], [4, 5, 6]])
    indices = tensor([2, 0], DataType.SIGNED32)
    assert run_operation(Gather(1), [values, indices])[0].tolist() == [[3, 1], [6, 4]]
    per_row = tensor([[2], [0]], DataType.SIGNED64)
    assert run_operation(Gather(1, 1), [values, per_row])[0].tolist() == [[3], [4]]
    assert run_operation(Gather(), [values, tensor(1, DataType.SIGNED32)])[0].tolist() == [4, 5, 6]


def test_gather_nd_looks_up_coordinates() -> None:
    values = tensor([[1, 2, 3], [4, 5, 6]])
    whole = tensor([[0, 2], [1, 0]], DataType.SIGNED32)
    assert run_operation(GatherNd(), [values, whole])[0].tolist() == [3, 4]
    rows = tensor([[1]], DataType.SIGNED32)
    assert run_operation(GatherNd(), [values, rows])[0].tolist() == [[4, 5, 6]]


@pytest.mark.parametrize("index", [-1, 3])
def test_indices_out_of_range_are_refused(index: int) -> None:
    values = tensor([1, 2, 3])
    with pytest.raises(InvalidArgumentError, match=f"0 to 2; got {index} to {index}"):
        run_operation(Gather(), [values, tensor([index], DataType.SIGNED32)])
    with pytest.raises(InvalidArgumentError, match="0 to 2"):
        run_operation(GatherNd(), [values, tensor([[index]], DataType.SIGNED32)])


def test_depth_to_space_takes_the_outer_channels_for_rows() -> None:
    pixel = tensor([[[[1, 2, 3, 4, 5, 6, 7, 8]]]])
    (spread,) = run_operation(DepthToSpace(2), [pixel])
    assert spread.tolist() == [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]
    assert run_operation(SpaceToDepth(2), [tensor(spread)])[0].tolist() == pixel[1].tolist()


@pytest.mark.parametrize(
    ("spread", "gather"),
    [
        (DepthToSpace(2, DataLayout.NCHW), DepthToSpace(2)),
        (SpaceToDepth(2, DataLayout.NCHW), SpaceToDepth(2)),
        (
            SpaceToBatchNd((2, 1), ((1, 1), (0, 2)), DataLayout.NCHW),
            SpaceToBatchNd((2, 1), ((1, 1), (0, 2))),
        ),
        (
            BatchToSpaceNd((2, 1), ((1, 0), (0, 1)), DataLayout.NCHW),
            BatchToSpaceNd((2, 1), ((1, 0), (0, 1))),
        ),
    ],
    ids=repr,
)
def test_channels_first_is_the_same_with_other_axes(spread: Operation, gather: Operation) -> None:
    image = np.arange(2 * 4 * 6 * 8).reshape(2, 4, 6, 8)
    (last,) = run_operation(gather, [tensor(image)])
    (first,) = run_operation(spread, [tensor(image.transpose(0, 3, 1, 2))])
    np.testing.assert_array_equal(first, last.transpose(0, 3, 1, 2))


def test_space_to_batch_pads_with_real_zero() -> None:
    row = tensor([[[1], [2], [3]]], DataType.QASYMM_U8, 0.5, 128)
    (result,) = run_operation(SpaceToBatchNd((2,), ((1, 0),)), [row])
    assert result.tolist() == [[[128], [2]], [[1], [3]]]
    back = (TensorInfo((2, 2, 1), row[0].data_type, row[0].quantization), result)
    assert run_operation(BatchToSpaceNd((2,), ((1, 0),)), [back])[0].tolist() == row[1].tolist()


def test_fill_writes_one_number_everywhere() -> None:
    value = tensor(7, DataType.SIGNED64)
    assert run_operation(Fill((2, 2)), [value])[0].tolist() == [[7, 7], [7, 7]]


def test_shape_and_rank_are_written_when_asked_for() -> None:
    assert run_operation(Shape(), [tensor(X)])[0].tolist() == [2, 3]
    assert run_operation(Rank(), [tensor(X)])[0] == 2


def test_one_hot_marks_positions_that_exist() -> None:
    indices = tensor([1, -1, 3], DataType.SIGNED32)
    (last,) = run_operation(OneHot(3), [indices, tensor(5.0), tensor(2.0)])
    assert last.tolist() == [[2, 5, 2], [2, 2, 2], [2, 2, 2]]
    (first,) = run_operation(OneHot(3, 0), [indices, tensor(5.0), tensor(2.0)])
    assert first.tolist() == [[2, 2, 2], [5, 2, 2], [2, 2, 2]]


def test_indices_below_zero_count_from_the_end() -> None:
    values = tensor(X, DataType.SIGNED32)
    outputs = run_operation(
        Gather(1, wraps_negative=True), [values, tensor([-1, 0, -3], DataType.SIGNED32)]
    )
    assert outputs[0].tolist() == [[3, 1, 1], [6, 4, 4]]
    places = tensor([[-1, 0], [0, -3]], DataType.SIGNED32)
    assert run_operation(GatherNd(wraps_negative=True), [values, places])[0].tolist() == [4, 1]
    with pytest.raises(InvalidArgumentError, match="-2 to 1"):
        run_operation(Gather(wraps_negative=True), [values, tensor([-3], DataType.SIGNED32)])


def test_each_batch_has_coordinates_of_its_own() -> None:
    values = tensor(X, DataType.SIGNED32)
    places = tensor([[[2], [0]], [[1], [1]]], DataType.SIGNED32)
    assert run_operation(GatherNd(1), [values, places])[0].tolist() == [[3, 1], [5, 5]]
