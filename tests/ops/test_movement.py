"""Shape rules of operations that move, cut, join and make elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from armpy.errors import LayerValidationError
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
from armpy.tensor import Shape as TensorShape
from armpy.types import DataLayout, DataType
from armpy_testing.labels import operation_label


def info(*shape: int | None, data_type: DataType = DataType.FLOAT32) -> TensorInfo:
    """A tensor without quantisation."""
    return TensorInfo(shape, data_type)


def quantized(
    shape: TensorShape | None, scale: float = 0.5, data_type: DataType = DataType.QASYMM_S8
) -> TensorInfo:
    """A quantised tensor."""
    return TensorInfo(shape, data_type, Quantization.per_tensor(scale, 3))


def positions(*shape: int | None) -> TensorInfo:
    """An operand of positions or sizes whose values are not known."""
    return info(*shape, data_type=DataType.SIGNED32)


X = info(2, 3, 4)
UNKNOWN = info(None, 3, None)
PAIRS = ((1, 2), (0, 0), (0, 1))


@pytest.mark.parametrize(
    ("operation", "inputs", "expected"),
    [
        (Reshape((4, -1)), [X], (4, 6)),
        (Reshape(), [X, positions(2)], (None, None)),
        (Reshape(), [X, positions(None)], None),
        (Reshape((4, -1)), [UNKNOWN], (4, None)),
        (ExpandDims(0), [X], (1, 2, 3, 4)),
        (ExpandDims(-1), [X], (2, 3, 4, 1)),
        (ExpandDims((1,)), [UNKNOWN], (None, 1, 3, None)),  # type: ignore[arg-type]
        (ExpandDims(0), [info()], (1,)),
        (ExpandDims(), [X, positions()], (None,) * 4),
        (Squeeze(), [info(1, 3, 1)], (3,)),
        (Squeeze(()), [info(1, 3, 1)], (3,)),
        (Squeeze((-1,)), [info(1, 3, None)], (1, 3)),
        (Squeeze(), [UNKNOWN], None),
        (Squeeze(), [info(1, 3), positions(1)], None),
        (Squeeze(), [info(1, 1)], ()),
        (Squeeze(), [info(1, 3), None], (3,)),
        (Pad(PAIRS), [X], (5, 3, 5)),
        (Pad(PAIRS), [UNKNOWN], (None, 3, None)),
        (Pad(), [X, None, positions(3, 2)], (None,) * 3),
        (Pad(()), [info()], ()),
        (Pad(((2, 1),), padding_mode=PaddingMode.REFLECT), [info(3)], (6,)),
        (Pad(((3, 3),), padding_mode=PaddingMode.SYMMETRIC), [info(3)], (9,)),
        (Pad(((9, 9),), padding_mode=PaddingMode.SYMMETRIC), [info(None)], (None,)),
        (Transpose((2, 0, 1)), [X], (4, 2, 3)),
        (Transpose((2, 0, 1)), [UNKNOWN], (None, None, 3)),
        (Transpose(()), [info()], ()),
        (Transpose(), [X, positions(3)], (None,) * 3),
        (Tile((1, 2, 0)), [X], (2, 6, 0)),
        (Tile((1, 2, 1)), [UNKNOWN], (None, 6, None)),
        (Tile(), [X, positions(3)], (None,) * 3),
        (BroadcastTo((5, 2, 3)), [info(2, 1)], (5, 2, 3)),
        (BroadcastTo((2, 3)), [info(None, 3)], (2, 3)),
        (BroadcastTo(), [X, positions(4)], (None,) * 4),
        (BroadcastTo(), [X, positions(None)], None),
        (ReverseV2((-1,)), [UNKNOWN], (None, 3, None)),
        (ReverseV2(), [X, positions(1)], (2, 3, 4)),
        (Concat(-1), [X, info(2, 3, 1)], (2, 3, 5)),
        (Concat(0), [X, UNKNOWN], (None, 3, 4)),
        (Concat(1), [info(2, 3, None), UNKNOWN], (2, 6, None)),
        (Stack(1), [X, UNKNOWN], (2, 2, 3, 4)),
        (Stack(-1), [info(), info()], (2,)),
        (Slice((1, 0, 0), (1, -1, 2)), [X], (1, 3, 2)),
        (Slice((1, 0, 0), (-1, -1, 2)), [UNKNOWN], (None, 3, 2)),
        (Slice(None, (1, -1, 2)), [X, positions(3)], (1, None, 2)),
        (Slice((1, 0, 0)), [X, None, positions(3)], (None,) * 3),
        (Gather(1), [X, positions(5, 6)], (2, 5, 6, 4)),
        (Gather(-1), [UNKNOWN, positions()], (None, 3)),
        (Gather(2, 1), [X, positions(2, 7)], (2, 3, 7)),
        (Gather(2, -1), [X, positions(2, 7)], (2, 3, 7)),
        (GatherNd(), [X, positions(5, 2)], (5, 4)),
        (GatherNd(1), [X, positions(2, 7, 1)], (2, 7, 4)),
        (GatherNd(), [X, positions(3)], ()),
        (GatherNd(), [X, positions(5, None)], None),
        (DepthToSpace(2), [info(1, 2, 3, 8)], (1, 4, 6, 2)),
        (DepthToSpace(2, DataLayout.NCHW), [info(1, 8, 2, None)], (1, 2, 4, None)),
        (SpaceToDepth(2), [info(1, 4, 6, 2)], (1, 2, 3, 8)),
        (SpaceToDepth(2, DataLayout.NCHW), [info(None, None, 4, 6)], (None, None, 2, 3)),
        (SpaceToBatchNd((2, 3), ((1, 1), (0, 2))), [info(1, 2, 4, 5)], (6, 2, 2, 5)),
        (SpaceToBatchNd((2,), ((0, 0),)), [info(None, 4, 5)], (None, 2, 5)),
        (
            SpaceToBatchNd((2, 2), ((0, 0), (0, 0)), DataLayout.NCHW),
            [info(1, 5, 4, None)],
            (4, 5, 2, None),
        ),
        (SpaceToBatchNd(), [info(1, 4, 5), positions(1), positions(1, 2)], (None, None, 5)),
        (BatchToSpaceNd((2, 3), ((1, 1), (0, 2))), [info(6, 2, 2, 5)], (1, 2, 4, 5)),
        (BatchToSpaceNd((2,), ((0, 1),)), [info(None, None, 5)], (None, None, 5)),
        (
            BatchToSpaceNd(data_layout=DataLayout.NCHW),
            [info(4, 5, 2, 2), positions(None), positions(2, 2)],
            (None, 5, None, None),
        ),
        (Fill((2, 3)), [info()], (2, 3)),
        (Fill(()), [info(1)], ()),
        (Fill(), [info(), positions(3)], (None,) * 3),
        (Fill(), [info(), positions(None)], None),
        (Shape(), [UNKNOWN], (3,)),
        (Rank(), [UNKNOWN], ()),
        (Range(0, 10, 3), [], (4,)),
        (Range(5, 0, 1), [], (0,)),
        (Range(5, 0, (-2,)), [], (3,)),  # type: ignore[arg-type]
        (Range(None, 10, 3), [positions()], (None,)),
        (OneHot(4), [info(2, 3, data_type=DataType.SIGNED32), info(), info()], (2, 3, 4)),
        (OneHot(4, 0), [info(2, data_type=DataType.SIGNED32), info(), info()], (4, 2)),
        (OneHot(), [positions(2), info(), info(), positions()], (2, None)),
    ],
    ids=operation_label,
)
def test_output_shape(
    operation: Operation, inputs: Sequence[TensorInfo | None], expected: TensorShape | None
) -> None:
    (output,) = operation.infer(inputs)
    assert output.shape == expected


@pytest.mark.parametrize(
    ("operation", "inputs", "expected"),
    [
        (Splitter(3, 1), [X], [(2, 1, 4)] * 3),
        (Splitter(2, -1), [UNKNOWN], [(None, 3, None)] * 2),
        (Splitter(2), [X, None, positions()], [(None,) * 3] * 2),
        (Splitter(2, 1), [X, positions(2)], [(2, None, 4)] * 2),
        (Splitter(axis=(1,), sizes=(1, -1)), [X], [(2, 1, 4), (2, 2, 4)]),  # type: ignore[arg-type]
        (Splitter(2, 0, (1, -1)), [UNKNOWN], [(1, 3, None), (None, 3, None)]),
        (Unstack(3, 1), [X], [(2, 4)] * 3),
        (Unstack(2, -1), [UNKNOWN], [(None, 3)] * 2),
    ],
    ids=operation_label,
)
def test_several_output_shapes(
    operation: Operation, inputs: Sequence[TensorInfo | None], expected: list[TensorShape]
) -> None:
    assert [output.shape for output in operation.infer(inputs)] == expected


@pytest.mark.parametrize(
    ("operation", "shape", "expected"),
    [
        (StridedSlice((1,), (4,), (2,)), (5,), (2,)),
        (StridedSlice((1,), (4,), (2,)), (None,), (None,)),
        (StridedSlice((4,), (0,), (-1,)), (5,), (4,)),
        (StridedSlice((-2,), (99,), (1,)), (5,), (2,)),
        (StridedSlice((3,), (1,), (1,)), (5,), (0,)),
        (StridedSlice((9,), (9,), (1,), begin_mask=1, end_mask=1), (5,), (5,)),
        (StridedSlice((9,), (9,), (-2,), begin_mask=1, end_mask=1), (5,), (3,)),
        (StridedSlice((2,), (2,), (1,), end_is_offset=True), (5,), (2,)),
        (StridedSlice((1,), (0,), (1,), shrink_axis_mask=1), (5, 6), (6,)),
        (StridedSlice((1,), (0,), (1,), shrink_axis_mask=1), (None, 6), (6,)),
        (StridedSlice((-1,), (0,), (1,), shrink_axis_mask=1), (5,), ()),
        (StridedSlice((1, 0, 0), (2, 0, 2), (1, 1, 1), ellipsis_mask=2), (5, 6, 7), (1, 6, 2)),
        (StridedSlice((0, 0), (0, 2), (1, 1), ellipsis_mask=1), (5, 6, 7), (5, 6, 2)),
        (StridedSlice((0, 0), (0, 2), (1, 1), new_axis_mask=1), (5, 6), (1, 2, 6)),
        (StridedSlice((0,), (0,), (1,), ellipsis_mask=1, new_axis_mask=1), (5,), (5,)),
        (StridedSlice((), (), ()), (5,), (5,)),
        (StridedSlice((), (), ()), (), ()),
    ],
    ids=operation_label,
)
def test_strided_slice_shape(
    operation: StridedSlice, shape: TensorShape, expected: TensorShape
) -> None:
    (output,) = operation.infer([info(*shape)])
    assert output.shape == expected


def test_strided_slice_with_unknown_positions_uses_the_masks() -> None:
    operands = [info(5, 6, 7), positions(2), positions(2), positions(2)]
    assert StridedSlice().infer(operands)[0].shape == (None, None, 7)
    assert StridedSlice(shrink_axis_mask=1).infer(operands)[0].shape == (None, 7)
    unknown = [info(5, 6, 7), *[positions(None)] * 3]
    assert StridedSlice().infer(unknown)[0].shape is None


@pytest.mark.parametrize(
    ("operation", "inputs", "match"),
    [
        (ExpandDims(5), [X], "axis is out of range.*-4 to 3; got 5"),
        (ExpandDims(), [X], "neither an attribute nor an operand gives axis"),
        (Squeeze((1,)), [X], r"another size than 1.*got \(2, 3, 4\)"),
        (Pad(((1, 1),)), [X], "entries of pad_list.*3 entries; got 1"),
        (Pad(((-1, 0), (0, 0), (0, 0))), [X], "pairs of numbers >= 0"),
        (Pad(((3, 0),), padding_mode=PaddingMode.REFLECT), [info(3)], "at most 2 along axis 0"),
        (Pad(((4, 0),), padding_mode=PaddingMode.SYMMETRIC), [info(3)], "at most 3 along axis 0"),
        (Pad(PAIRS), [X, positions()], "pad_value has another data type"),
        (Transpose((0, 1)), [X], "entries of perm"),
        (Transpose((0, 1, 1)), [X], r"not a permutation.*got \(0, 1, 1\)"),
        (Tile((1, -1, 1)), [X], "multiple is negative"),
        (BroadcastTo((2, 3, 5)), [X], "do not broadcast"),
        (BroadcastTo((2, 1, 4)), [X], r"does not broadcast to the shape.*\(2, 1, 4\)"),
        (BroadcastTo((4,)), [X], "does not broadcast to the shape"),
        (ReverseV2((3,)), [X], "axis is out of range"),
        (Concat(0), [], "nothing to concatenate"),
        (Concat(0), [info(), info()], "scalars cannot be concatenated"),
        (Concat(0), [X, info(2, 4, 4)], r"differ.*got \(\?, 4, 4\)"),
        (Concat(2), [X, info(2, 3)], "differ"),
        (Concat(0), [X, positions(2, 3, 4)], r"input\[1\] has another data type"),
        (Stack(0), [], "nothing to stack"),
        (Stack(0), [X, info(2, 3)], "differ"),
        (Slice((0, 0, 2), (1, 1, 3)), [X], "does not lie within.*begin 2, size 3"),
        (Slice((0, 0, -1), (1, 1, 1)), [X], "begin >= 0"),
        (Splitter(), [X, None, positions()], "number of parts"),
        (Splitter(2, 1), [X], "a multiple of 2 along axis 1; got 3"),
        (Splitter(3, 1, (1, 2)), [X], "2, the number of sizes; got 3"),
        (Splitter(axis=1, sizes=(1, 1)), [X], "do not add up.*give 3 together"),
        (Splitter(axis=1, sizes=(-1, -1)), [X], "do not add up"),
        (Splitter(axis=1, sizes=(4, -1)), [X], "do not add up"),
        (Unstack(2, 1), [X], "2 elements along axis 1; got 3"),
        (Gather(0, 1), [X, positions(2)], "batch_dims is out of range"),
        (Gather(1, 1), [X, positions(3, 5)], "batch axes of input and indices differ"),
        (Gather(1), [X, info(3)], "indices have the wrong data type"),
        (GatherNd(), [X, positions(4)], "at most 3"),
        (GatherNd(), [X, info(2)], "indices have the wrong data type"),
        (GatherNd(1), [X, positions(2, 3)], "at most 2"),
        (GatherNd(1), [X, positions(3, 2)], "batch axes of input and indices differ"),
        (GatherNd(1), [X, positions(3)], "batch_dims is out of range"),
        (
            Pad(((0, 0), (1, 0)), padding_mode=PaddingMode.EDGE),
            [info(2, 0)],
            "without elements has none to repeat",
        ),
        (DepthToSpace(0), [info(1, 2, 2, 4)], "block size is not positive"),
        (DepthToSpace(2), [info(1, 2, 2, 6)], "channels do not split.*multiple of 4; got 6"),
        (SpaceToDepth(2), [info(1, 3, 2, 6)], "rows or columns do not split"),
        (SpaceToBatchNd((2, 2), ((0, 0), (0, 1))), [info(1, 2, 2, 1)], "padded rows or columns"),
        (
            SpaceToBatchNd((2,), ((0, 0),)),
            [info(1, 2, 2, 1)],
            "one block size per spatial axis. Expected 2; got",
        ),
        (SpaceToBatchNd(None, ((0, 0),)), [info(1, 2, 2, 1), positions(1)], "block_shape has"),
        (BatchToSpaceNd((2, 2), ((3, 2), (0, 0))), [info(4, 2, 2, 1)], "at most 4 together"),
        (BatchToSpaceNd((2, 2), ((0, 0), (0, 0))), [info(2, 2, 2, 1)], "batches do not split"),
        (Fill((2,)), [info(2)], "not one number"),
        (Fill((-2,)), [info()], "sizes >= 0"),
        (Range(0, 1, 0), [], "step other than 0"),
        (Range(0, 1), [], "gives delta"),
        (OneHot(-1), [positions(2), info(), info()], "depth is negative"),
        (OneHot(3), [positions(2), info(), positions()], "combination of data types"),
        (StridedSlice((1,), (2,), (0,)), [X], "stride is 0"),
        (StridedSlice((1,), (2, 3), (1,)), [X], "different lengths.*1 and 2"),
        (StridedSlice((0,) * 4, (1,) * 4, (1,) * 4), [X], "at most 3.*got 4"),
        (StridedSlice((9,), (1,), (1,), shrink_axis_mask=1), [X], "-2 to 1; got 9"),
        (StridedSlice((1,), (0,), (-1,), shrink_axis_mask=1), [X], "negative stride"),
        (StridedSlice((0, 0), (1, 1), (1, 1), ellipsis_mask=3), [X], "more than one ellipsis"),
    ],
    ids=operation_label,
)
def test_what_cannot_be_is_refused(
    operation: Operation, inputs: Sequence[TensorInfo | None], match: str
) -> None:
    with pytest.raises(LayerValidationError, match=match):
        operation.infer(inputs)


@pytest.mark.parametrize(
    ("operation", "others"),
    [
        (Reshape((6,)), 0),
        (Pad(((0, 0), (0, 0))), 0),
        (Transpose((1, 0)), 0),
        (Stack(), 1),
    ],
    ids=operation_label,
)
def test_moved_elements_keep_their_quantisation(operation: Operation, others: int) -> None:
    inputs = [quantized((2, 3))] * (1 + others)
    assert operation.infer(inputs)[0].quantization == inputs[0].quantization
    with pytest.raises(LayerValidationError, match="is quantised unlike"):
        operation.infer(inputs, [quantized(None, 0.25)])
    with pytest.raises(LayerValidationError, match="another data type"):
        operation.infer(inputs, [TensorInfo(None, DataType.FLOAT32)])


def test_pad_value_is_quantised_like_the_input() -> None:
    pad = Pad(((0, 0), (1, 1)))
    assert pad.infer([quantized((2, 3)), quantized(())])[0].shape == (2, 5)
    with pytest.raises(LayerValidationError, match="pad_value is quantised unlike"):
        pad.infer([quantized((2, 3)), quantized((), 0.25)])


@pytest.mark.parametrize("data_type", [DataType.QASYMM_U8, DataType.QASYMM_S8])
def test_concatenation_requantizes_asymmetric_types_of_8_bits(data_type: DataType) -> None:
    inputs = [quantized((2,), scale, data_type) for scale in (0.5, 0.25)]
    assert Concat().infer(inputs)[0] == quantized((4,), 0.5, data_type)


def test_concatenation_requantizes_no_other_types() -> None:
    inputs = [quantized((2,), scale, DataType.QSYMM_S16) for scale in (0.5, 0.25)]
    with pytest.raises(LayerValidationError, match=r"input\[1\] is quantised unlike"):
        Concat().infer(inputs)


def test_scales_along_an_axis_may_move_with_it() -> None:
    weights = TensorInfo((2, 3), DataType.QSYMM_S8, Quantization.per_axis((0.5, 0.25), 0))
    moved = TensorInfo((3, 2), DataType.QSYMM_S8, Quantization.per_axis((0.5, 0.25), 1))
    assert Transpose((1, 0)).infer([weights], [moved]) == (moved,)


@pytest.mark.parametrize(
    ("operation", "inputs", "expected"),
    [
        (Reshape((2, 3, 4)), [X], 0),
        (Reshape((6, 4)), [X], None),
        (Pad(((0, 0),) * 3), [X], 0),
        (Pad(PAIRS), [X], None),
        (Transpose((0, 1, 2)), [X], 0),
        (Transpose((0, 2, 1)), [X], None),
        (Tile((1, 1, 1)), [X], 0),
        (Tile((1, 2, 1)), [X], None),
        (BroadcastTo((2, 3, 4)), [X], 0),
        (BroadcastTo((1, 2, 3, 4)), [X], None),
        (ReverseV2(()), [X], 0),
        (ReverseV2((0,)), [X], None),
        (Concat(), [X], 0),
        (Concat(), [X, X], None),
        (Slice((0, 0, 0), (2, -1, 4)), [X], 0),
        (Slice((0, 0, 0), (1, -1, 4)), [X], None),
        (Splitter(1, 0), [X], 0),
        (Splitter(2, 0), [X], None),
        (StridedSlice((0,), (2,), (1,)), [X], 0),
        (StridedSlice((1,), (-3,), (-1,)), [X], None),
        (StridedSlice((0,), (1,), (1,)), [X], None),
        (StridedSlice((0,), (1,), (1,), new_axis_mask=1), [info(1)], None),
        (DepthToSpace(1), [info(1, 2, 2, 4)], 0),
        (DepthToSpace(2), [info(1, 2, 2, 4)], None),
        (SpaceToDepth(1), [info(1, 2, 2, 4)], 0),
        (SpaceToDepth(2), [info(1, 2, 2, 4)], None),
    ],
    ids=operation_label,
)
def test_operations_that_change_nothing_say_so(
    operation: Operation, inputs: list[TensorInfo], expected: int | None
) -> None:
    assert operation.identity_of(inputs, operation.infer(inputs)) == expected


def test_shape_and_rank_follow_without_elements() -> None:
    (shape,) = Shape(DataType.SIGNED64).infer_values([X]) or ()
    assert shape.tolist() == [2, 3, 4]
    assert shape.dtype == np.int64
    (rank,) = Rank().infer_values([UNKNOWN]) or ()
    assert rank == 3
    assert rank.dtype == np.int32
    assert Shape().infer_values([UNKNOWN]) is None
    assert Rank().infer_values([TensorInfo(None, DataType.FLOAT32)]) is None


def test_range_follows_from_its_attributes() -> None:
    (values,) = Range(1.0, 2.0, 0.25, DataType.FLOAT32).infer_values([]) or ()
    assert values.tolist() == [1.0, 1.25, 1.5, 1.75]
    assert values.dtype == np.float32
    assert Range(None, 2, 1).infer_values([positions()]) is None


@pytest.mark.parametrize(
    ("operation", "inputs", "expected"),
    [
        (Shape(DataType.SIGNED64), [X], DataType.SIGNED64),
        (Rank(), [X], DataType.SIGNED32),
        (Range(0, 2, 1, DataType.SIGNED64), [], DataType.SIGNED64),
        (OneHot(3), [positions(2), info(), info()], DataType.FLOAT32),
        (Fill((2,)), [info(data_type=DataType.BOOLEAN)], DataType.BOOLEAN),
    ],
    ids=operation_label,
)
def test_output_type(operation: Operation, inputs: list[TensorInfo], expected: DataType) -> None:
    assert operation.infer(inputs)[0].data_type is expected
