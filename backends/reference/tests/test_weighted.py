"""CpuRef's convolutions, matrix products and pooling on values worked out by other means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

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
from armpy.ops.shapes import Padding
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataLayout, DataType
from armpy_testing.run_operation import run_operation, tensor

Array = npt.NDArray[Any]  # Any: every element type occurs

F16, F32, U8, S8 = DataType.FLOAT16, DataType.FLOAT32, DataType.QASYMM_U8, DataType.QASYMM_S8
S32 = DataType.SIGNED32


def info(data_type: DataType, scale: float, zero_point: int = 0) -> TensorInfo:
    """Info of a quantised output."""
    return TensorInfo(None, data_type, Quantization.per_tensor(scale, zero_point))


def column(values: Sequence[float]) -> Array:
    """An image of one row and one channel."""
    return np.array(values).reshape(1, 1, -1, 1)


def convolved(
    image: Array,
    filters: Array,
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: tuple[tuple[int, int], tuple[int, int]],
) -> Array:
    """A convolution by its definition; filters (o, kh, kw, i / groups)."""
    padded = np.pad(image, ((0, 0), *padding, (0, 0)))
    count, kernel_height, kernel_width, depth = filters.shape
    group_filters = count * depth // image.shape[3]
    reach = [(k - 1) * d + 1 for k, d in zip(filters.shape[1:3], dilation, strict=True)]
    height, width = ((padded.shape[i + 1] - reach[i]) // stride[i] + 1 for i in range(2))
    out = np.zeros((len(image), height, width, count))
    for y, x, o, ky, kx, i in product(
        range(height),
        range(width),
        range(count),
        range(kernel_height),
        range(kernel_width),
        range(depth),
    ):
        element = padded[
            :,
            y * stride[0] + ky * dilation[0],
            x * stride[1] + kx * dilation[1],
            o // group_filters * depth + i,
        ]
        out[:, y, x, o] += element * filters[o, ky, kx, i]
    return out


@pytest.mark.parametrize("constants", [(), (1, 2)])
def test_convolution_of_floats_adds_the_bias_and_clamps(constants: tuple[int, ...]) -> None:
    out = run_operation(
        Convolution2d(activation=FusedActivation.RELU6),
        [tensor(column([1, 2, -3, 4])), tensor([[[[2], [1]]]]), tensor([1])],
        constants=constants,
    )[0]
    # 2 * 1 + 2 + 1, 2 * 2 - 3 + 1, 2 * -3 + 4 + 1 < 0
    assert out.reshape(-1).tolist() == [5, 2, 0]


def test_a_bias_may_be_left_out() -> None:
    out = run_operation(Convolution2d(), [tensor(column([1, 2])), tensor([[[[3]]]])])[0]
    assert out.reshape(-1).tolist() == [3, 6]


@pytest.mark.parametrize("layout", [DataLayout.NHWC, DataLayout.NCHW])
@pytest.mark.parametrize("depth", [4, 2, 1])
@pytest.mark.parametrize("data_type", [F32, F16])
def test_convolution_is_its_definition(layout: DataLayout, depth: int, data_type: DataType) -> None:
    rng = np.random.default_rng(5)
    image = rng.integers(-4, 5, (2, 7, 9, 4)).astype(float)
    filters = rng.integers(-4, 5, (8, 3, 2, depth)).astype(float)
    padding = ((2, 1), (0, 3))
    operation = Convolution2d((2, 3), (2, 1), padding, data_layout=layout)
    source = image if layout is DataLayout.NHWC else image.transpose(0, 3, 1, 2)
    out = run_operation(operation, [tensor(source, data_type), tensor(filters, data_type)])[0]
    expected = convolved(image, filters, (2, 3), (2, 1), padding)
    if layout is DataLayout.NCHW:
        expected = expected.transpose(0, 3, 1, 2)
    assert out.dtype == data_type.dtype
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("layout", [DataLayout.NHWC, DataLayout.NCHW])
@pytest.mark.parametrize("multiplier", [1, 3])
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
def test_depthwise_convolution_is_a_convolution_with_a_group_per_channel(
    layout: DataLayout, multiplier: int, stride: tuple[int, int]
) -> None:
    rng = np.random.default_rng(6)
    image = rng.integers(-4, 5, (2, 8, 13, 4)).astype(float)
    filters = rng.integers(-4, 5, (1, 3, 2, 4 * multiplier)).astype(float)
    padding = ((1, 2), (3, 0))
    operation = DepthwiseConvolution2d(stride, (1, 2), padding, data_layout=layout)
    source = image if layout is DataLayout.NHWC else image.transpose(0, 3, 1, 2)
    out = run_operation(operation, [tensor(source), tensor(filters)])[0]
    expected = convolved(image, filters.transpose(3, 1, 2, 0), stride, (1, 2), padding)
    if layout is DataLayout.NCHW:
        expected = expected.transpose(0, 3, 1, 2)
    assert np.array_equal(out, expected)


def test_images_of_many_blocks_are_convolved_whole() -> None:
    rng = np.random.default_rng(7)
    image = rng.integers(-4, 5, (1, 40, 61, 32)).astype(float)
    filters = rng.integers(-4, 5, (40, 3, 3, 32)).astype(float)
    operation = Convolution2d(padding=Padding.SAME)
    out = run_operation(operation, [tensor(image), tensor(filters)], constants=(1,))[0]
    patches = np.lib.stride_tricks.sliding_window_view(
        np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0))), (3, 3), (1, 2)
    )
    assert np.array_equal(out, np.einsum("nyxiab,oabi->nyxo", patches, filters))


@pytest.mark.parametrize("constants", [(), (1, 2)])
def test_quantised_convolution_takes_zero_points_off(constants: tuple[int, ...]) -> None:
    out = run_operation(
        Convolution2d(padding=((0, 0), (1, 0))),
        [
            tensor(column([130, 140]), U8, 0.5, 128),
            tensor([[[[12], [7]]]], U8, 0.25, 10),
            tensor([40], S32, 0.125),
        ],
        [info(U8, 0.25, 5)],
        constants=constants,
    )[0]
    # (0 * 2 + 2 * -3 + 40) * 0.5 + 5, (2 * 2 + 12 * -3 + 40) * 0.5 + 5
    assert out.reshape(-1).tolist() == [22, 9]


def test_each_channel_of_the_weights_has_its_scale() -> None:
    weights = TensorInfo((2, 1, 1, 1), DataType.QSYMM_S8, Quantization.per_axis((0.5, 2), 0))
    out = run_operation(
        Convolution2d(),
        [tensor(column([10]), S8, 1.0), (weights, np.array([3, 3], np.int8).reshape(2, 1, 1, 1))],
        [info(S8, 1.0, 1)],
    )[0]
    assert out.reshape(-1).tolist() == [16, 61]


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        (FusedActivation.NONE, [-128, -28, 107, 100]),
        (FusedActivation.RELU, [-20, -20, 107, 100]),
        (FusedActivation.RELU6, [-20, -20, 100, 100]),
        (FusedActivation.RELU1, [-40, -28, 0, 0]),
    ],
)
def test_quantised_activations_clamp_stored_integers(
    activation: FusedActivation, expected: list[int]
) -> None:
    # Real -1, 0, 1, 6 are stored as -40, -20, 0, 100.
    out = run_operation(
        Convolution2d(activation=activation),
        [tensor(column([-120, -8, 127, 120]), S8, 0.05), tensor([[[[1]]]], S8, 1.0)],
        [info(S8, 0.05, -20)],
    )[0]
    assert out.reshape(-1).tolist() == expected


def test_sums_beyond_float32_are_exact() -> None:
    depth = 3000
    image = np.full((1, 1, 1, depth), 127)
    image[..., 0] = 126
    weights = np.full((1, 1, 1, depth), 127)
    total = 127 * 127 * depth - 127
    out = run_operation(
        Convolution2d(),
        [
            tensor(image, S8, 1.0),
            tensor(weights, S8, 1.0),
            tensor([1 - total], S32, 1.0),
        ],
        [info(S8, 1.0)],
    )[0]
    assert out.item() == 1


def test_rounding_of_convolutions_is_half_away_from_zero_the_second_time() -> None:
    out = run_operation(
        Convolution2d(),
        [tensor(column([-6, -2, 2, 6]), S8, 1.0), tensor([[[[1]]]], S8, 1.0)],
        [info(S8, 4.0)],
    )[0]
    assert out.reshape(-1).tolist() == [-2, -1, 1, 2]


def test_fully_connected_rounds_once_half_away_from_zero() -> None:
    out = run_operation(
        FullyConnected(),
        [tensor([[-3], [-1], [1], [3]], S8, 1.0), tensor([[1]], S8, 1.0)],
        [info(S8, 2.0)],
    )[0]
    # Fixed-point arithmetic of convolutions would give -1 and 0 for -1.5 and -0.5.
    assert out.reshape(-1).tolist() == [-2, -1, 1, 2]


@pytest.mark.parametrize(("bias_type", "expected"), [(DataType.SIGNED64, 26209), (S32, 26210)])
def test_the_width_of_the_bias_chooses_the_multiplier_for_16_bits(
    bias_type: DataType, expected: int
) -> None:
    # 32762 * 0.8 is 26209.6; with 15 bits 0.8 is 26214 / 32768, which makes it 26209.2.
    out = run_operation(
        Convolution2d(),
        [
            tensor(column([32762]), DataType.QSYMM_S16, 1.0),
            tensor([[[[1]]]], DataType.QSYMM_S8, 1.0),
            tensor([0], bias_type, 1.0),
        ],
        [info(DataType.QSYMM_S16, 1.25)],
    )[0]
    assert out.item() == expected


def test_fully_connected_flattens_unless_it_keeps_dimensions() -> None:
    x, weights = np.arange(6.0).reshape(3, 1, 2), [[1, 1], [1, -1]]
    flat = run_operation(FullyConnected(), [tensor(x), tensor(weights)])[0]
    output = run_operation(FullyConnected(keep_num_dims=True), [tensor(x), tensor(weights)])[0]
    assert flat.tolist() == [[1, -1], [5, -1], [9, -1]]
    assert output.tolist() == [[[1, -1]], [[5, -1]], [[9, -1]]]


def test_float_inputs_of_quantised_weights_are_quantised_by_their_reach() -> None:
    # The largest magnitude, 2, becomes 127; 0.5 becomes 31.75, rounded to 32.
    out = run_operation(
        FullyConnected(),
        [tensor([[2.0, 0.5]]), tensor([[0, 10]], DataType.QSYMM_S8, 0.5), tensor([1.0])],
        [TensorInfo(None, F32)],
        constants=(1, 2),
    )[0]
    assert out.item() == pytest.approx(32 * 2 / 127 * 5 + 1, rel=1e-6)


def test_float_inputs_may_get_a_zero_point() -> None:
    # From 0 to 255 in steps of 1 with zero point -128: 100.4 becomes 100.
    out = run_operation(
        FullyConnected(asymmetric_quantize_inputs=True),
        [tensor([[255.0, 100.4]]), tensor([[0, 10]], DataType.QSYMM_S8, 0.5)],
    )[0]
    assert out.item() == pytest.approx(500, rel=1e-6)


@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_float_inputs_of_zeros_stay_zeros(is_asymmetric: bool) -> None:
    operation = FullyConnected(asymmetric_quantize_inputs=is_asymmetric)
    weights = tensor([[3, 10]], DataType.QSYMM_S8, 0.5)
    assert run_operation(operation, [tensor([[0.0, 0.0]]), weights])[0].item() == 0


def test_each_float_image_is_quantised_by_itself() -> None:
    image = np.array([127.0, 1.0, 1.27, 0.01]).reshape(2, 1, 2, 1)
    out = run_operation(
        Convolution2d(), [tensor(image), tensor([[[[4]]]], DataType.QSYMM_S8, 0.25)]
    )[0]
    assert out.reshape(-1) == pytest.approx([127, 1, 1.27, 0.01], rel=1e-6)


def test_transpose_convolution_spreads_elements() -> None:
    out = run_operation(
        TransposeConvolution2d(stride=(1, 2)),
        [tensor(column([1, 10])), tensor([[[[1], [2], [3]]]]), tensor([0.5])],
    )[0]
    # 1 2 3 . . and . . 10 20 30
    assert out.reshape(-1).tolist() == [1.5, 2.5, 13.5, 20.5, 30.5]


def test_transpose_convolution_cuts_off_its_padding() -> None:
    out = run_operation(
        TransposeConvolution2d(stride=(1, 2), padding=((0, 0), (1, 1))),
        [tensor(column([1, 10])), tensor([[[[1], [2], [3]]]])],
    )[0]
    assert out.reshape(-1).tolist() == [2, 13, 20]


def test_transpose_convolution_leaves_the_bias_where_no_window_reaches() -> None:
    image, weights = column([1, 10]).transpose(0, 3, 1, 2), tensor([[[[1], [2], [3]]]])
    out = run_operation(
        TransposeConvolution2d(stride=(1, 2), data_layout=DataLayout.NCHW),
        [tensor(image), weights, tensor([0.5]), tensor([1, 1, 2, 6], S32)],
    )[0]
    assert out.tolist() == [[[[1.5, 2.5, 13.5, 20.5, 30.5, 0.5], [0.5] * 6]]]


def test_quantised_transpose_convolution_takes_zero_points_off() -> None:
    out = run_operation(
        TransposeConvolution2d(stride=(1, 1)),
        [tensor(column([3, 6]), U8, 0.5, 4), tensor([[[[11], [8]]]], U8, 0.5, 10)],
        [info(U8, 0.25, 100)],
    )[0]
    # -1 and 2 times 1 and -2
    assert out.reshape(-1).tolist() == [99, 104, 96]


def test_batch_mat_mul_of_float16_accumulates_in_float32() -> None:
    x, y = np.full((1, 2, 4096), 1.0), np.full((4096, 1), 1.0)
    x[0, 1] = 1 / 4096
    out = run_operation(BatchMatMul(), [tensor(x, F16), tensor(y, F16)])[0]
    assert out.dtype == np.float16
    assert out.tolist() == [[[4096], [1]]]


def test_batch_mat_mul_transposes_and_broadcasts() -> None:
    x, y = np.arange(12.0).reshape(2, 3, 2), np.arange(6.0).reshape(1, 2, 3)
    out = run_operation(BatchMatMul(transpose_x=True, transpose_y=True), [tensor(x), tensor(y)])[0]
    assert np.array_equal(out, [[[10, 28], [13, 40]], [[28, 100], [31, 112]]])


def test_quantised_batch_mat_mul_takes_zero_points_off() -> None:
    out = run_operation(
        BatchMatMul(),
        [tensor([[3, 5]], S8, 0.5, 1), tensor([[2], [-4]], S8, 0.25, -1)],
        [info(S8, 0.125, 10)],
    )[0]
    # 2 * 3 + 4 * -3
    assert out.item() == 4


def test_batch_mat_mul_of_16_bits_is_exact() -> None:
    x, y = [[32767, 32767, 1]], [[32767], [-32767], [7]]
    out = run_operation(
        BatchMatMul(),
        [tensor(x, DataType.QSYMM_S16, 1.0), tensor(y, DataType.QSYMM_S16, 1.0)],
        [info(DataType.QSYMM_S16, 1.0)],
    )[0]
    assert out.item() == 7


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        (PoolingAlgorithm.MAX, [3, 4, 4]),
        (PoolingAlgorithm.AVERAGE, [3, 3.5, 4]),
        (PoolingAlgorithm.L2, [3, math.sqrt(12.5), 4]),
    ],
)
@pytest.mark.parametrize("layout", [DataLayout.NHWC, DataLayout.NCHW])
def test_padding_does_not_count_in_pooling(
    algorithm: PoolingAlgorithm, expected: list[float], layout: DataLayout
) -> None:
    operation = Pooling2d(algorithm, (1, 2), padding=((0, 0), (1, 1)), data_layout=layout)
    image = column([3, 4])
    source = image if layout is DataLayout.NHWC else image.transpose(0, 3, 1, 2)
    out = run_operation(operation, [tensor(source)])[0]
    assert out.reshape(-1) == pytest.approx(expected)


def test_the_largest_of_negative_numbers_is_negative() -> None:
    operation = Pooling2d(PoolingAlgorithm.MAX, (1, 2))
    assert run_operation(operation, [tensor(column([-3, -4]))])[0].item() == -3
    assert run_operation(operation, [tensor(column([-128, -127]), S8, 1.0)])[0].item() == -127


@pytest.mark.parametrize("side", [3, 7, 10**6, 2**31 - 1])
def test_a_window_larger_than_the_image_holds_what_there_is(side: int) -> None:
    operation = Pooling2d(PoolingAlgorithm.AVERAGE, (1, side), padding=Padding.SAME)
    assert run_operation(operation, [tensor(column([5]))])[0].item() == 5
    operation = Pooling2d(PoolingAlgorithm.MAX, (1, side), (1, 2), Padding.SAME)
    out = run_operation(operation, [tensor(column([1, 9, 3, 4, 8]))])[0].reshape(-1)
    # Windows of 3 start at -1, 1 and 3; those of 7 at -3, -1 and 1, so all see the second.
    assert out.tolist() == [9, 9, 8 if side == 3 else 9]


def test_quantised_means_round_half_away_from_zero() -> None:
    operation = Pooling2d(PoolingAlgorithm.AVERAGE, (1, 2), (1, 2))
    image = tensor(column([1, 2, -1, -2, 0, 1, 0, -1]), S8, 1.0, 3)
    assert run_operation(operation, [image])[0].reshape(-1).tolist() == [2, -2, 1, -1]


def test_sums_of_large_windows_do_not_overflow() -> None:
    image = np.full((1, 300, 300, 1), 32767)
    operation = Pooling2d(PoolingAlgorithm.AVERAGE, (300, 300))
    out = run_operation(operation, [tensor(image, DataType.QSYMM_S16, 1.0)])[0]
    assert out.item() == 32767


def test_pooling_clamps() -> None:
    operation = Pooling2d(activation=FusedActivation.RELU1)
    out = run_operation(operation, [tensor(column([-3, 0.5, 3]), F16)])[0]
    assert out.reshape(-1).tolist() == [-1, 0.5, 1]
    out = run_operation(operation, [tensor(column([-30, 5, 120]), S8, 0.1, 10)])[0]
    assert out.reshape(-1).tolist() == [0, 5, 20]


@pytest.mark.parametrize("kind", [U8, S8])
def test_sums_as_the_output_are_exact_and_wrap_to_32_bits(kind: DataType) -> None:
    lowest, highest = kind.integer_range
    rng = np.random.default_rng(5)
    rows = rng.integers(lowest, highest + 1, (3, 40_000))
    columns = rng.integers(lowest, highest + 1, (40_000, 2))
    rows[0], columns[:, 0] = highest, lowest  # the sum of these is beyond 2**31 for bytes
    expected = ((rows - lowest) @ (columns - highest)).astype(np.int32)
    x, y = (tensor(data, kind, 1.0, point) for data, point in ((rows, lowest), (columns, highest)))
    (sums,) = run_operation(BatchMatMul(), [x, y], [TensorInfo(None, S32)])
    np.testing.assert_array_equal(sums, expected)
