"""Large numbers and repeated axes are refused by the operation's own rule."""

from __future__ import annotations

import pytest

from armpy import DataType, LayerValidationError, Network, TensorInfo, ops
from armpy.ops.operation import Operation
from armpy.types import DataLayout

LARGE = 2**31
IMAGE = (1, 4, 4, 2)
VOLUME = (1, 4, 4, 4, 2)
FILTER = (2, 1, 1, 2)
FILTER_3D = (2, 1, 1, 1, 2)
HEADS = (1, 2, 4, 8)

STEPS: list[tuple[Operation, list[tuple[int, ...]]]] = [
    (ops.Convolution2d(stride=(1, LARGE)), [IMAGE, FILTER]),
    (ops.Convolution2d(stride=(2**62, 1), data_layout=DataLayout.NCHW), [(1, 2, 4, 4), FILTER]),
    (ops.Convolution2d(dilation=(LARGE, 1)), [IMAGE, FILTER]),
    (ops.DepthwiseConvolution2d(stride=(LARGE, 1)), [IMAGE, (1, 1, 1, 2)]),
    (ops.TransposeConvolution2d(stride=(LARGE, 1)), [(1, 1, 1, 2), FILTER]),
    (ops.Convolution3d(stride=(1, 1, 2**62)), [VOLUME, FILTER_3D]),
    (ops.Convolution3d(dilation=(1, LARGE, 1)), [VOLUME, FILTER_3D]),
    (ops.TransposeConvolution3d(stride=(LARGE, 1, 1)), [(1, 1, 1, 1, 2), FILTER_3D]),
    (ops.Pooling2d(stride=(LARGE, 1)), [IMAGE]),
    (ops.Pooling3d(dilation=(1, 1, LARGE)), [VOLUME]),
    (ops.MaxPoolWithIndices(stride=(1, 2**62)), [IMAGE]),
    (ops.Normalization(radius=2**63 - 1), [IMAGE]),
    (ops.Attention(num_past=2**63 - 1), [HEADS] * 3),
    (ops.Attention(left_window=LARGE), [HEADS] * 3),
    (ops.Attention(right_window=2**63 - 1), [HEADS] * 3),
]
REPEATED: list[Operation] = [
    ops.LayerNormalization(axes=(2, 2)),
    ops.LayerNormalization(axes=(-1, 3)),
    ops.RmsNormalization(axes=(1, 2, 1)),
    ops.ReverseV2(axes=(0, -4)),
    ops.Normalization(axes=(1, 1)),
]
NEGATIVE: list[tuple[Operation, list[tuple[int, ...]], DataType]] = [
    (ops.BroadcastTo(broadcast_to_shape=(-5, 4)), [(1, 4)], DataType.FLOAT32),
    (ops.TfIdfVectorizer(num_features=-3), [(4,)], DataType.SIGNED32),
    (ops.TfIdfVectorizer(max_skips=-1), [(4,)], DataType.SIGNED32),
    (ops.OneHot(depth=-1), [(4,), (), ()], DataType.SIGNED32),
    (
        ops.DetectionPostProcess(max_detections=-2),
        [(1, 3, 4), (1, 3, 2), (3, 4)],
        DataType.FLOAT32,
    ),
]
LONG: list[tuple[Operation, list[tuple[int, ...]]]] = [
    (ops.Fill(), [(), (1 << 20,)]),
    (ops.Reshape(), [(2, 3), (1 << 20,)]),
    (ops.BroadcastTo(), [(2, 3), (1 << 20,)]),
    (ops.RandomNormal(), [(1 << 20,)]),
    (ops.StridedSlice(), [(2, 3), *((1 << 20,),) * 3]),
]
"""The last operands have an element for each axis."""


def refusal(
    operation: Operation,
    shapes: list[tuple[int, ...]],
    data_type: DataType = DataType.FLOAT32,
) -> LayerValidationError:
    """The error when a layer of float32 inputs is added."""
    net = Network()
    values = [net.input(f"x{i}", TensorInfo(s, data_type)) for i, s in enumerate(shapes)]
    with pytest.raises(LayerValidationError) as caught:
        net.add_layer(operation, values, name="layer")
    assert caught.value.where == f"{operation.name} 'layer'"
    assert caught.value.expected
    return caught.value


@pytest.mark.parametrize(("operation", "shapes"), STEPS, ids=str)
def test_a_step_beyond_int32_is_refused(
    operation: Operation, shapes: list[tuple[int, ...]]
) -> None:
    error = refusal(operation, shapes)
    assert int(error.actual) >= LARGE
    assert str(2**31 - 1) in error.expected


@pytest.mark.parametrize("operation", REPEATED, ids=str)
def test_a_repeated_axis_is_refused(operation: Operation) -> None:
    error = refusal(operation, [IMAGE])
    assert error.failed == "an axis is repeated"
    assert error.actual == str(operation.attributes()["axes"])
    assert error.fix == "Remove the repeated axis"


@pytest.mark.parametrize(("operation", "shapes", "data_type"), NEGATIVE, ids=str)
def test_a_negative_size_is_refused(
    operation: Operation, shapes: list[tuple[int, ...]], data_type: DataType
) -> None:
    assert "-" in refusal(operation, shapes, data_type).actual


@pytest.mark.parametrize(("operation", "shapes"), LONG, ids=lambda item: getattr(item, "name", ""))
def test_operands_for_more_axes_than_there_can_be_are_refused(
    operation: Operation, shapes: list[tuple[int, ...]]
) -> None:
    error = refusal(operation, shapes, DataType.SIGNED32)
    assert "too many" in error.failed
    assert error.actual == str(1 << 20)
