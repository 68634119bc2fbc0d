from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armpy.errors import InvalidArgumentError, MemoryLimitError
from armpy.execution import as_input, dequantize_array, quantize_array
from armpy.execution.arrays.conversion import check_output_array
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.models.networks import f32, floats, i32

U8 = TensorInfo((3,), DataType.QASYMM_U8, Quantization.per_tensor(0.5, 10))


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, 2], ">f4"),
        np.array([1, 9, 2, 9], np.float32)[::2],
        np.array([2, 1], np.float32)[::-1],
        np.frombuffer(b"\0" + floats(1, 2).tobytes(), np.uint8)[1:].view(np.float32),
        np.ma.masked_array([1, 2], dtype=np.float32),
        [1, 2],
        (1.0, 2.0),
        [np.float64(1), 2],
    ],
    ids=["big-endian", "strided", "reversed", "unaligned", "masked", "ints", "tuple", "mixed"],
)
def test_other_forms_of_the_same_numbers_are_converted(array: object) -> None:
    given_array = as_input("x", f32(2), array)
    assert type(given_array) is np.ndarray
    assert given_array.flags.c_contiguous
    assert given_array.flags.aligned
    assert given_array.dtype == np.float32
    assert given_array.dtype.isnative
    np.testing.assert_array_equal(given_array, [1, 2])


class _Stubborn:
    def __array__(self, dtype: object = None, copy: object = None) -> Array:
        raise RuntimeError("call detach() first")


@pytest.mark.parametrize(
    ("given_object", "text"),
    [
        ([[1], [1, 2]], r"not an array of numbers.*got \[\[1\], \[1, 2\]\]"),
        (_Stubborn(), r"cannot be made an array: call detach\(\) first.*got _Stubborn"),
        (1e300, "cannot be made an array: overflow"),
        (None, "not an array of numbers.*got None"),
        ("text", "not an array of numbers.*got 'text'"),
        (1j, "wrong type.*got complex128"),
        (True, "wrong type.*got bool"),
        (10**30, "not an array of numbers.*got 10+"),
        (np.array([1.0, 2.0]), r"Expected float32.*got float64 \(2,\).*astype\('float32'\)"),
    ],
)
def test_what_is_no_float32_is_rejected(given_object: object, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="input 'x': .*" + text):
        as_input("x", f32(2), given_object)


@pytest.mark.parametrize("numbers", [[300], [-1], [0.5], [True]])
def test_plain_numbers_that_would_change_are_rejected(numbers: list[float]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"wrong type. Expected uint8"):
        as_input("x", TensorInfo((1,), DataType.UNSIGNED8), numbers)


def test_a_shape_that_does_not_fit_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match=r"input 'x'.*\(\?, 2\); got \(2,\)"):
        as_input("x", f32(None, 2), floats(1, 2))


def test_real_numbers_for_a_quantised_input_are_a_mistake_by_default() -> None:
    with pytest.raises(InvalidArgumentError, match=r"input 'x'.*uint8.*quantize_inputs=True"):
        as_input("x", U8, floats(1, 2, 3))


def test_real_numbers_for_a_plain_integer_input_stay_a_mistake() -> None:
    with pytest.raises(InvalidArgumentError, match="wrong type"):
        as_input("x", i32(1), floats(1), quantize=True)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_not_quantised(number: float) -> None:
    with pytest.raises(InvalidArgumentError, match=r"input 'x': .*finite numbers; got NaN or inf"):
        as_input("x", U8, floats(number, 0, 0), quantize=True)


@pytest.mark.parametrize(
    ("name", "data_type"),
    [
        ("bfloat16", DataType.BFLOAT16),
        ("float8_e4m3fn", DataType.FLOAT8_E4M3FN),
        ("float8_e5m2", DataType.FLOAT8_E5M2),
        ("float8_e8m0fnu", DataType.FLOAT8_E8M0),
        ("float4_e2m1fn", DataType.FLOAT4_E2M1),
    ],
)
def test_small_floats_are_taken_as_their_bits_where_these_are_wanted(
    name: str, data_type: DataType
) -> None:
    small = pytest.importorskip("ml_dtypes")
    numbers = np.array([1, 2, 4], np.float32).astype(getattr(small, name))
    array = as_input("x", TensorInfo((3,), data_type), numbers)
    np.testing.assert_array_equal(array, numbers.view(data_type.dtype))


@pytest.mark.parametrize(
    ("name", "data_type"),
    [
        ("int4", DataType.SIGNED8),
        ("int4", DataType.SIGNED4),
        ("uint4", DataType.UNSIGNED8),
        ("int2", DataType.QASYMM_S8),
    ],
)
def test_small_integers_of_other_libraries_become_bytes(name: str, data_type: DataType) -> None:
    small = pytest.importorskip("ml_dtypes")
    numbers = [0, 1, 3 if name[0] == "u" else -2]
    small_numbers = np.array(numbers, np.int8).astype(getattr(small, name))
    array = as_input("x", TensorInfo((3,), data_type), small_numbers)
    assert (array.dtype, array.tolist()) == (data_type.dtype, numbers)


@pytest.mark.parametrize(
    ("name", "data_type"),
    [("bfloat16", DataType.FLOAT16), ("bfloat16", DataType.SIGNED8), ("int4", DataType.UNSIGNED8)],
)
def test_small_types_that_do_not_fit_are_refused(name: str, data_type: DataType) -> None:
    small = pytest.importorskip("ml_dtypes")
    numbers = np.array([1, 2, 3], np.float32).astype(getattr(small, name))
    with pytest.raises(InvalidArgumentError, match=r"wrong type.*astype|Convert it"):
        as_input("x", TensorInfo((3,), data_type), numbers)


def test_small_floats_are_quantised_where_real_numbers_are() -> None:
    small = pytest.importorskip("ml_dtypes")
    numbers = np.array([1, 2, 3], np.float32).astype(small.bfloat16)
    assert as_input("x", U8, numbers, quantize=True).tolist() == [12, 14, 16]


@given(st.lists(st.integers(0, 255), min_size=1, max_size=8))
def test_quantising_undoes_dequantising(stored: list[int]) -> None:
    info = TensorInfo((len(stored),), DataType.QASYMM_U8, Quantization.per_tensor(0.3, 17))
    array = np.array(stored, np.uint8)
    real = dequantize_array(array, info)
    assert real.dtype == np.float32
    np.testing.assert_array_equal(quantize_array(real, info), array)


def test_dequantising_leaves_other_types_alone() -> None:
    array = floats(1)
    assert dequantize_array(array, f32(1)) is array
    plain = np.array([1], np.uint8)
    assert dequantize_array(plain, TensorInfo((1,), DataType.QASYMM_U8)) is plain


def _read_only() -> Array:
    array = floats(1, 2)
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(
    ("array", "text"),
    [
        ([1.0, 2.0], "got list"),
        (np.zeros(2), r"got float64 \(2,\)"),
        (np.zeros(2, ">f4"), r"got >f4 \(2,\)"),
        (np.zeros(3, np.float32), r"got float32 \(3,\)"),
        (np.zeros((1, 2), np.float32), r"got float32 \(1, 2\)"),
        (_read_only(), "got a read-only array"),
        (np.zeros(4, np.float32)[::2], r"got float32 \(2,\), not contiguous \(strides \(8,\)\)"),
    ],
)
def test_an_output_array_that_does_not_fit_is_rejected(array: object, text: str) -> None:
    expected = r"output 'y': .*writable C-contiguous float32 array of shape \(2,\); "
    with pytest.raises(InvalidArgumentError, match=expected + text):
        check_output_array("y", f32(2), array)


def test_an_input_whose_copy_would_be_too_large_is_refused_before_it_is_made() -> None:
    huge = np.broadcast_to(np.float32(1), (1 << 20, 1 << 20))  # four bytes that look like 4 TiB
    with pytest.raises(MemoryLimitError, match=r"^input 'x': .*at most 64 bytes .*4398046511104"):
        as_input("x", TensorInfo((None, None), DataType.FLOAT32), huge, limit_bytes=64)
