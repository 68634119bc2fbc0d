"""Definitions of convolutions, matrix products and pooling: shapes, types, identity."""

from __future__ import annotations

from typing import Any

import pytest

from armpy.errors import LayerValidationError
from armpy.ops import (
    BatchMatMul,
    Convolution2d,
    DepthwiseConvolution2d,
    FullyConnected,
    Pooling2d,
    PoolingAlgorithm,
    TransposeConvolution2d,
)
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Operation
from armpy.ops.shapes import Padding
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataLayout, DataType

F32, S8, S16 = DataType.FLOAT32, DataType.QASYMM_S8, DataType.QSYMM_S16
NCHW = DataLayout.NCHW


def floats(*shapes: Shape | None) -> list[TensorInfo]:
    """Infos of float tensors."""
    return [TensorInfo(shape, F32) for shape in shapes]


def quantized(shape: Shape, data_type: DataType = S8, scale: float = 0.5) -> TensorInfo:
    """Info of a quantised tensor."""
    return TensorInfo(shape, data_type, Quantization.per_tensor(scale))


def shape_of(operation: Operation, *shapes: Shape | None) -> Shape | None:
    """Inferred shape for float inputs."""
    return operation.infer(floats(*shapes))[0].shape


@pytest.mark.parametrize(
    ("operation", "shapes", "expected"),
    [
        (Convolution2d(), [(1, 5, 7, 3), (8, 3, 3, 3)], (1, 3, 5, 8)),
        (Convolution2d(stride=(2, 1)), [(1, 5, 7, 3), (8, 3, 3, 3)], (1, 2, 5, 8)),
        (Convolution2d(padding=Padding.SAME), [(1, 5, 7, 3), (8, 3, 3, 3)], (1, 5, 7, 8)),
        (Convolution2d(dilation=(2, 3)), [(1, 5, 7, 3), (8, 3, 3, 3)], (1, 1, 1, 8)),
        (Convolution2d(data_layout=NCHW), [(1, 3, 5, 7), (8, 3, 3, 3)], (1, 8, 3, 5)),
        (Convolution2d(), [(None, None, 7, 3), (8, 3, 3, 3)], (None, None, 5, 8)),
        (Convolution2d(), [(1, 5, 7, None), (None, 3, 3, None)], (1, 3, 5, None)),
        (Convolution2d(), [(1, 5, 7, 3), (8, None, 3, 3)], (1, None, 5, 8)),
        (Convolution2d(padding=((1, 0), (0, 2))), [(1, 5, 7, 3), (8, 3, 3, 3)], (1, 4, 7, 8)),
        (DepthwiseConvolution2d(), [(2, 5, 7, 3), (1, 3, 3, 6)], (2, 3, 5, 6)),
        (DepthwiseConvolution2d(), [(2, 5, 7, None), (None, 3, 3, None)], (2, 3, 5, None)),
    ],
)
def test_convolutions_infer_their_shape(
    operation: Operation, shapes: list[Shape], expected: Shape
) -> None:
    assert shape_of(operation, *shapes) == expected


@pytest.mark.parametrize(
    ("operation", "shapes", "message"),
    [
        (Convolution2d(), [(1, 5, 5, 3), (8, 3, 3, 2)], "divisor of 3 .*got 2"),
        (Convolution2d(), [(1, 5, 5, 4), (3, 3, 3, 2)], "multiple of 2 filters; got 3"),
        (Convolution2d(), [(1, 2, 5, 3), (8, 3, 3, 3)], "3 or more elements"),
        (Convolution2d(stride=(0, 1)), [(1, 5, 5, 3), (8, 3, 3, 3)], "stride is too small"),
        (Convolution2d(padding=((1, 1),)), [(1, 5, 5, 3), (8, 3, 3, 3)], "2 pairs"),
        (Convolution2d(), [(1, 5, 5, 3), (8, 3, 3, 3), (7,)], "8 elements.*got 7"),
        (Convolution2d(), [(1, 5, 3), (8, 3, 3, 3)], "'input' has the wrong rank"),
        (DepthwiseConvolution2d(), [(1, 5, 5, 3), (2, 3, 3, 3)], "first dimension.*got 2"),
        (DepthwiseConvolution2d(), [(1, 5, 5, 3), (1, 3, 3, 4)], "multiple of 3; got 4"),
        (DepthwiseConvolution2d(), [(1, 5, 5, 3), (1, 3, 3, 6), (3,)], "6 elements.*got 3"),
        (TransposeConvolution2d(), [(1, 5, 5, 3), (8, 3, 3, 4)], "3 at the last axis.*got 4"),
        (TransposeConvolution2d(stride=(1, 0)), [(1, 5, 5, 3), (8, 3, 3, 3)], "stride .* small"),
        (
            TransposeConvolution2d(padding=((2, 2), (0, 0))),
            [(1, 1, 5, 3), (8, 3, 3, 3)],
            "nothing is left",
        ),
        (
            TransposeConvolution2d(output_shape=(1, 2, 3)),
            [(1, 5, 5, 3), (8, 3, 3, 3)],
            "the output shape has the wrong rank. Expected 4",
        ),
        (FullyConnected(), [(2, 5), (8, 4)], r"multiple of 4 elements; got \(2, 5\)"),
        (FullyConnected(), [(2, 5), (8, 0)], "multiple of 0 elements"),
        (FullyConnected(keep_num_dims=True), [(2, 5), (8, 10)], "Expected 10; got"),
        (FullyConnected(), [(2, 4), (8, 4), (4,)], "8 elements.*got 4"),
        (BatchMatMul(), [(2, 3), (4, 5)], "3 rows of y.*got 4"),
        (BatchMatMul(), [(2, 4, 3), (3, 3, 5)], "do not broadcast"),
        (Pooling2d(pool_size=(3, 3)), [(1, 2, 5, 3)], "3 or more elements"),
        (
            Pooling2d(pool_size=(2, 2), padding=((0, 2), (0, 0))),
            [(1, 5, 5, 3)],
            "padding holds whole windows",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_rejected(
    operation: Operation, shapes: list[Shape], message: str
) -> None:
    with pytest.raises(LayerValidationError, match=message):
        shape_of(operation, *shapes)


@pytest.mark.parametrize(
    ("attributes", "shapes", "expected"),
    [
        ({}, [(1, 4, 5, 3), (8, 3, 2, 3)], (1, 6, 6, 8)),
        ({"stride": (2, 3)}, [(1, 4, 5, 3), (8, 3, 2, 3)], (1, 9, 14, 8)),
        ({"stride": (2, 3), "padding": Padding.SAME}, [(1, 4, 5, 3), (8, 3, 2, 3)], (1, 8, 15, 8)),
        ({"padding": ((1, 1), (0, 1))}, [(1, 4, 5, 3), (8, 3, 2, 3)], (1, 4, 5, 8)),
        ({"data_layout": NCHW}, [(1, 3, 4, 5), (8, 3, 2, 3)], (1, 8, 6, 6)),
        ({}, [(None, None, 5, None), (8, 3, None, 3)], (None, None, None, 8)),
        ({"output_shape": (9, 7, 6, 9)}, [(1, 4, 5, 3), (8, 3, 2, 3)], (1, 7, 6, 8)),
    ],
)
def test_transpose_convolution_infers_its_shape(
    attributes: dict[str, Any],  # Any: attributes of several types
    shapes: list[Shape],
    expected: Shape,
) -> None:
    assert shape_of(TransposeConvolution2d(**attributes), *shapes) == expected


def test_transpose_convolution_waits_for_its_output_shape() -> None:
    inputs = [*floats((1, 4, 5, 3), (8, 3, 2, 3)), None, TensorInfo((4,), DataType.SIGNED32)]
    assert TransposeConvolution2d().infer(inputs)[0].shape == (1, None, None, 8)


@pytest.mark.parametrize(
    ("keep_num_dims", "shapes", "expected"),
    [
        (False, [(2, 3, 4), (8, 4)], (6, 8)),
        (False, [(2, 3, 4), (8, 12)], (2, 8)),
        (False, [(4,), (8, 4)], (1, 8)),
        (False, [(2, 3, 0), (8, 0)], (6, 8)),
        (False, [(None, 4), (8, 4)], (None, 8)),
        (False, [(2, 4), (None, None)], (None, None)),
        (True, [(2, 3, 4), (8, 4)], (2, 3, 8)),
        (True, [(None, None), (8, 4)], (None, 8)),
        (True, [(2, 3), (8, None)], (2, 8)),
    ],
)
def test_fully_connected_infers_its_shape(
    keep_num_dims: bool, shapes: list[Shape], expected: Shape
) -> None:
    assert shape_of(FullyConnected(keep_num_dims=keep_num_dims), *shapes) == expected


@pytest.mark.parametrize(
    ("operation", "shapes", "expected"),
    [
        (BatchMatMul(), [(2, 3), (3, 5)], (2, 5)),
        (BatchMatMul(transpose_x=True), [(3, 2), (3, 5)], (2, 5)),
        (BatchMatMul(transpose_y=True), [(2, 3), (5, 3)], (2, 5)),
        (BatchMatMul(), [(7, 1, 2, 3), (4, 3, 5)], (7, 4, 2, 5)),
        (BatchMatMul(), [(None, 2, None), (4, None, 5)], (4, 2, 5)),
    ],
)
def test_batch_mat_mul_infers_its_shape(
    operation: Operation, shapes: list[Shape], expected: Shape
) -> None:
    assert shape_of(operation, *shapes) == expected


@pytest.mark.parametrize(
    ("attributes", "shape", "expected"),
    [
        ({"pool_size": (2, 3)}, (1, 5, 7, 3), (1, 4, 5, 3)),
        ({"pool_size": (2, 3), "stride": (2, 2)}, (1, 5, 7, 3), (1, 2, 3, 3)),
        ({"pool_size": (3, 3), "padding": Padding.SAME}, (1, 5, 7, 3), (1, 5, 7, 3)),
        ({"pool_size": (3, 3), "padding": ((1, 2), (0, 1))}, (1, 5, 7, 3), (1, 6, 6, 3)),
        ({"pool_size": (2, 3), "data_layout": NCHW}, (1, 3, 5, 7), (1, 3, 4, 5)),
        ({"pool_size": (2, 3)}, (None, None, 7, None), (None, None, 5, None)),
    ],
)
def test_pooling_infers_its_shape(
    attributes: dict[str, Any],  # Any: attributes of several types
    shape: Shape,
    expected: Shape,
) -> None:
    assert shape_of(Pooling2d(**attributes), shape) == expected


def test_the_shape_is_unknown_where_a_rank_is() -> None:
    assert shape_of(Convolution2d(), None, (8, 3, 3, 3)) is None


@pytest.mark.parametrize(
    ("operation", "weights_shape", "axis", "message"),
    [
        (Convolution2d(), (2, 1, 1, 3), 3, "axis 0; got 3"),
        (Convolution2d(), (4, 1, 1, 3), 0, "4, one per output channel; got 2"),
        (DepthwiseConvolution2d(), (1, 1, 2, 3), 2, "axis 3; got 2"),
        (FullyConnected(), (2, 3), 1, "axis 0; got 1"),
        (TransposeConvolution2d(), (3, 1, 1, 3), 0, "3, one per output channel; got 2"),
    ],
)
def test_scales_of_weights_run_along_the_output_channels(
    operation: Operation, weights_shape: Shape, axis: int, message: str
) -> None:
    weights = TensorInfo(weights_shape, DataType.QSYMM_S8, Quantization.per_axis((0.1, 0.2), axis))
    with pytest.raises(LayerValidationError, match=message):
        operation.infer([quantized((1, 3, 3, 3)), weights])


@pytest.mark.parametrize(
    ("types", "is_allowed"),
    [
        ((F32, F32, F32), True),
        ((DataType.FLOAT16, DataType.FLOAT16, DataType.FLOAT16), True),
        ((DataType.QASYMM_U8, DataType.QASYMM_U8, DataType.SIGNED32), True),
        ((DataType.QASYMM_U8, DataType.QSYMM_S8, DataType.SIGNED32), True),
        ((S8, DataType.QSYMM_S8, DataType.SIGNED32), True),
        ((S16, DataType.QSYMM_S8, DataType.SIGNED64), True),
        ((S16, DataType.QSYMM_S8, DataType.SIGNED32), True),
        ((F32, DataType.QSYMM_S8, F32), True),
        ((S8, DataType.QASYMM_U8, DataType.SIGNED32), False),
        ((S8, DataType.QSYMM_S8, DataType.SIGNED64), False),
        ((F32, F32, DataType.SIGNED32), False),
        ((DataType.FLOAT16, F32, F32), False),
    ],
)
def test_types_of_input_weights_and_bias_go_together(
    types: tuple[DataType, DataType, DataType], is_allowed: bool
) -> None:
    scale = Quantization.per_tensor(0.5)
    shapes: list[Shape] = [(1, 4), (2, 4), (2,)]
    inputs = [TensorInfo(s, t, scale) for s, t in zip(shapes, types, strict=True)]
    if is_allowed:
        assert FullyConnected().infer(inputs)[0].data_type is types[0]
        return
    with pytest.raises(LayerValidationError, match="combination of data types"):
        FullyConnected().infer(inputs)


def test_an_input_of_the_wrong_type_is_named() -> None:
    inputs = [TensorInfo((1, 4), F32), TensorInfo((2, 4), DataType.FLOAT64)]
    with pytest.raises(LayerValidationError, match="Expected 'weights' of type FLOAT32"):
        FullyConnected().infer(inputs)


def test_matrices_have_the_same_type() -> None:
    with pytest.raises(LayerValidationError, match="combination of data types"):
        BatchMatMul().infer([quantized((2, 3)), quantized((3, 2), S16)])


def test_l2_pooling_is_for_floats() -> None:
    pooling = Pooling2d(PoolingAlgorithm.L2)
    with pytest.raises(LayerValidationError, match=r"L2 pooling is for floats.*got QASYMM_S8"):
        pooling.infer([quantized((1, 2, 2, 1))])


def test_pooling_keeps_the_quantisation() -> None:
    inputs = [quantized((1, 2, 2, 1))]
    with pytest.raises(LayerValidationError, match="quantised unlike the first input"):
        Pooling2d().infer(inputs, [quantized((1, 2, 2, 1), scale=0.25)])


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Pooling2d(), 0),
        (Pooling2d(PoolingAlgorithm.AVERAGE), 0),
        (Pooling2d(PoolingAlgorithm.L2), None),
        (Pooling2d(activation=FusedActivation.RELU), None),
        (Pooling2d(pool_size=(2, 1)), None),
        (Pooling2d(stride=(1, 2)), None),
    ],
)
def test_pooling_of_single_elements_is_the_identity(
    operation: Pooling2d, expected: int | None
) -> None:
    inputs = floats((1, 4, 4, 1))
    assert operation.identity_of(inputs, operation.infer(inputs)) == expected
