from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armpy.errors import InvalidArgumentError
from armpy.tensor import (
    MAX_RANK,
    Quantization,
    Shape,
    TensorInfo,
    format_shape,
    merge_shapes,
    shapes_agree,
)
from armpy.types import DataType

F32 = DataType.FLOAT32
DIMS = st.none() | st.integers(0, 5)
SHAPES = st.none() | st.lists(DIMS, max_size=4).map(tuple)


def test_one_scale_holds_for_the_whole_tensor() -> None:
    quantization = Quantization.per_tensor(0.5, 3)
    assert (quantization.scale, quantization.zero_point, quantization.axis) == (0.5, 3, None)


def test_per_axis_scales_have_zero_points_of_zero() -> None:
    quantization = Quantization.per_axis([0.5, 0.25], 1)
    assert quantization == Quantization((0.5, 0.25), (0, 0), 1)
    assert TensorInfo((1, 2), F32, quantization).has_per_axis_quantization


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_a_scale_is_positive_and_finite(scale: float) -> None:
    with pytest.raises(InvalidArgumentError, match=f"positive finite number.*got {scale!r}"):
        Quantization.per_tensor(scale)


def test_a_channel_of_zeros_may_have_scale_zero() -> None:
    assert Quantization.per_axis([0.0, 1.0], 0).scales == (0.0, 1.0)
    with pytest.raises(InvalidArgumentError, match=r"got -0.5"):
        Quantization.per_axis([-0.5], 0)


def test_there_is_a_zero_point_per_scale() -> None:
    with pytest.raises(InvalidArgumentError, match="Expected 2 zero points; got 1"):
        Quantization((1.0, 2.0), (0,), 0)


@pytest.mark.parametrize("count", [0, 2])
def test_without_an_axis_there_is_exactly_one_scale(count: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{count} scales and axis None"):
        Quantization((1.0,) * count, (0,) * count)


def test_a_shape_may_be_given_as_a_list_or_with_numpy_integers() -> None:
    info = TensorInfo([2, None, np.int64(3)], F32)  # type: ignore[arg-type]  # untyped callers
    assert info.shape == (2, None, 3)
    assert {type(dim) for dim in info.shape if dim is not None} == {int}
    assert TensorInfo((np.int32(4),), F32) == TensorInfo((4,), F32)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [5, (2.5,), ("a", 1), "ab"])
def test_a_shape_of_something_else_is_rejected(shape: object) -> None:
    with pytest.raises(InvalidArgumentError, match="a sequence of integers, with None"):
        TensorInfo(shape, F32)  # type: ignore[arg-type]  # untyped callers do this


def test_a_negative_dimension_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got \(2, -1\)"):
        TensorInfo((2, -1), F32)


def test_the_rank_is_limited() -> None:
    assert TensorInfo((1,) * MAX_RANK, F32).rank == MAX_RANK
    with pytest.raises(InvalidArgumentError, match="at most 8 dimensions; got 9"):
        TensorInfo((1,) * 9, F32)


def test_sizes_of_a_fully_shaped_tensor() -> None:
    info = TensorInfo((2, 3), DataType.SIGNED64)
    assert (info.num_elements, info.size_bytes, info.rank) == (6, 48, 2)
    assert TensorInfo((), F32).num_elements == 1
    assert TensorInfo((3, 0), F32).size_bytes == 0


@pytest.mark.parametrize(("shape", "text"), [(None, r"\(\?\.\.\.\)"), ((1, None), r"\(1, \?\)")])
def test_the_size_of_an_open_shape_is_an_error(shape: Shape | None, text: str) -> None:
    info = TensorInfo(shape, F32)
    assert not info.is_fully_shaped
    with pytest.raises(InvalidArgumentError, match=text):
        _ = info.num_elements


def test_an_unknown_rank_is_none() -> None:
    assert TensorInfo(None, F32).rank is None


def test_scale_and_zero_point_have_defaults() -> None:
    plain = TensorInfo((1,), F32)
    assert (plain.scale, plain.zero_point) == (1.0, 0)
    quantized = TensorInfo((1,), DataType.QASYMM_U8, Quantization.per_tensor(0.5, 7))
    assert (quantized.scale, quantized.zero_point) == (0.5, 7)


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (TensorInfo((1,), F32), "FLOAT32 (1,)"),
        (TensorInfo((), F32), "FLOAT32 ()"),
        (TensorInfo(None, F32), "FLOAT32 (?...)"),
        (
            TensorInfo((1, None), DataType.QASYMM_U8, Quantization.per_tensor(0.5, 7)),
            "QASYMM_U8 (1, ?), scale 0.5, zero point 7",
        ),
        (
            TensorInfo((2,), DataType.QSYMM_S8, Quantization.per_axis([1, 2], 0)),
            "QSYMM_S8 (2,), scale per-axis, zero point 0",
        ),
    ],
)
def test_the_text_of_an_info(info: TensorInfo, text: str) -> None:
    assert str(info) == text


def test_with_shape_keeps_everything_else() -> None:
    info = TensorInfo((1,), DataType.QASYMM_U8, Quantization.per_tensor(0.5), is_constant=True)
    other = info.with_shape((2, 3))
    assert other == TensorInfo((2, 3), info.data_type, info.quantization, True)
    assert info.with_shape((1,)) is info


def test_merging_takes_each_dimension_from_the_side_that_knows_it() -> None:
    assert merge_shapes((None, 2), (1, None)) == (1, 2)
    assert merge_shapes(None, (1,)) == (1,)
    assert merge_shapes((1,), None) == (1,)


@pytest.mark.parametrize("other", [(1, 3), (1,), (1, 2, 3)])
def test_shapes_that_contradict_each_other_do_not_merge(other: Shape) -> None:
    text = f"Expected {format_shape(other)}; got (1, 2)"
    with pytest.raises(InvalidArgumentError) as caught:
        merge_shapes((1, 2), other)
    assert text in str(caught.value)


@given(SHAPES, SHAPES)
def test_merging_is_symmetric_and_agrees_with_both(one: Shape | None, other: Shape | None) -> None:
    if not shapes_agree(one, other):
        assert not shapes_agree(other, one)
        return
    merged = merge_shapes(one, other)
    assert merged == merge_shapes(other, one)
    assert merge_shapes(merged, one) == merged
    assert shapes_agree(merged, other)


def test_a_data_type_is_no_name_or_dtype() -> None:
    with pytest.raises(InvalidArgumentError, match=r"not a DataType.*got 'float32'"):
        TensorInfo((1,), "float32")  # type: ignore[arg-type]


def test_a_single_scale_is_given_per_tensor() -> None:
    with pytest.raises(InvalidArgumentError, match=r"0\.1 and 3\. Write Quantization\.per_tensor"):
        Quantization(0.1, 3)  # type: ignore[arg-type]


def test_a_tensor_without_elements_may_have_dimensions_that_no_array_can_have() -> None:
    assert TensorInfo((0, 2**31), DataType.FLOAT32).is_addressable
    assert not TensorInfo((0, 2**31, 2**31), DataType.FLOAT32).is_addressable
