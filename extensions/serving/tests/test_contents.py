"""Elements of requests and answers: exact, or refused with a reason."""

from __future__ import annotations

import re
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from armpy import DataType, InvalidArgumentError
from armpy_serving.contents import (
    array_of_bytes,
    array_of_contents,
    array_of_numbers,
    bytes_of,
    numbers_of,
)
from armpy_serving.protocol import datatype_of, dtype_of

NAMES = ["BOOL", "FP16", "FP32", "FP64"] + [
    f"{u}INT{n}" for u in ("U", "") for n in (8, 16, 32, 64)
]
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@pytest.mark.slow
@given(st.data(), st.sampled_from(NAMES), SHAPES)
def test_arrays_come_back_from_numbers_and_bytes(
    data: st.DataObject, datatype: str, shape: tuple[int, ...]
) -> None:
    array = data.draw(arrays.arrays(np.dtype(dtype_of(datatype)), shape))
    raw = array_of_bytes("x", datatype, shape, bytes_of(array))
    assert raw.dtype == array.dtype
    assert raw.tobytes() == array.tobytes()
    if np.isfinite(array).all():
        for form in (numbers_of("x", array), array.tolist() if shape else [array.item()]):
            array_read = array_of_numbers("x", datatype, shape, form)
            assert array_read.dtype == array.dtype
            assert array_read.shape == shape
            np.testing.assert_array_equal(array_read, array)


@pytest.mark.parametrize("data_type", DataType)
def test_every_type_has_a_datatype_of_the_same_size(data_type: DataType) -> None:
    assert np.dtype(dtype_of(datatype_of(data_type))) == data_type.dtype


@pytest.mark.parametrize(
    ("datatype", "data", "message"),
    [
        (
            "INT8",
            [300],
            "not INT8. Expected whole numbers from -128 to 127; got 300.",
        ),
        ("INT8", [-129, 1], "numbers from -129 to 1"),
        ("UINT64", [-1, 2**64 - 1], "numbers from -1 to"),
        ("INT64", [2**63], "got 9223372036854775808"),
        ("INT32", [1.5], "fractions"),
        ("INT64", [1.0], "fractions"),
        ("FP32", [1e300], "1e+300, which is too large"),
        ("FP32", ["1"], "got text"),
        ("FP32", [None], "got null"),
        ("FP32", [True], "got true or false"),
        ("BOOL", [1], "Expected true or false; got whole numbers"),
        ("INT8", [True, 0], "got true or false"),
        ("FP32", [[[[[[[[[[1]]]]]]]]]], "not lists of numbers"),
        ("FP32", [[1], [2, 3]], "inhomogeneous"),
        ("BF16", [1], "Send its bytes"),
        ("BYTES", [1], "Expected strings; got whole numbers"),
        ("BYTES", [None], "got null"),
        ("BYTES", [["a"], ["b", "c"]], "lists of different lengths"),
        ("FP31", [1], "Use the datatype that the model's metadata name (GET /v2/models/NAME)"),
        ("float32", [1], 'got \'float32\'. Write "datatype": "FP32"'),
    ],
)
def test_numbers_that_a_datatype_cannot_hold_are_refused(
    datatype: str, data: list[object], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(message)) as caught:
        array_of_numbers("pixels", datatype, [len(data)], data)
    assert "pixels" in str(caught.value)


def test_the_largest_integers_are_exact() -> None:
    large = [2**64 - 1, 0, 2**63]
    assert array_of_numbers("x", "UINT64", [3], large).tolist() == large
    assert array_of_numbers("x", "INT64", [2], [-(2**63), 2**63 - 1]).tolist() == [
        -(2**63),
        2**63 - 1,
    ]


@pytest.mark.parametrize(
    ("shape", "data"),
    [([2, 2], [1, 2, 3]), ([2, 3], [[1, 2], [3, 4], [5, 6]]), ([4], [[1, 2], [3, 4]]), ([0], [1])],
)
def test_data_of_another_shape_are_refused(shape: list[int], data: list[object]) -> None:
    with pytest.raises(InvalidArgumentError, match="not of the shape"):
        array_of_numbers("x", "INT32", shape, data)


@pytest.mark.parametrize("shape", [[-1], [1.0], ["2"], [True], [2**70]])
def test_shapes_are_whole_numbers(shape: list[object]) -> None:
    with pytest.raises(InvalidArgumentError, match="a size of the shape is negative or"):
        array_of_numbers("x", "INT32", shape, [1])  # type: ignore[arg-type]  # as JSON may have it


def test_bytes_of_another_number_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Expected 8 for FP32 \(2,\); got 7"):
        array_of_bytes("x", "FP32", [2], bytes(7))


def test_a_byte_that_is_no_bool_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="Expected 0 or 1; got 2"):
        array_of_bytes("x", "BOOL", [2], b"\x01\x02")


def test_bytes_are_not_copied() -> None:
    raw = bytearray(np.arange(4, dtype="<f4").tobytes())
    assert np.shares_memory(array_of_bytes("x", "FP32", [4], raw), np.frombuffer(raw, np.uint8))


def test_typed_contents_are_taken_from_the_datatypes_field() -> None:
    contents = SimpleNamespace(int_contents=[-3, 4], bool_contents=[])
    assert array_of_contents("x", "INT8", [2], contents).tolist() == [-3, 4]
    assert array_of_contents("x", "BOOL", [0], SimpleNamespace(bool_contents=[])).shape == (0,)
    with pytest.raises(InvalidArgumentError, match="raw_input_contents"):
        array_of_contents("x", "FP16", [1], contents)


@pytest.mark.parametrize("shape", [[0, 2**62], [2**62, 0, 2**62], [1] * 70, [0] * 70])
def test_shapes_that_no_array_can_have_are_refused(shape: list[int]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"the shape (is too large|has too many)"):
        array_of_numbers("x", "INT32", shape, [1] if shape[0] == 1 else [])
    with pytest.raises(InvalidArgumentError, match=r"the shape (is too large|has too many)"):
        array_of_bytes("x", "INT32", shape, bytes(4 if shape[0] == 1 else 0))


def test_floats_take_integers_of_any_length() -> None:
    assert array_of_numbers("x", "FP32", [1], [-(10**30)]) == np.float32(-1e30)
    with pytest.raises(InvalidArgumentError, match="too large"):
        array_of_numbers("x", "FP64", [1], [10**400])


def test_a_long_text_among_numbers_takes_no_memory() -> None:
    data = ["a" * 100_000, *range(10_000)]
    tracemalloc.start()
    try:
        with pytest.raises(InvalidArgumentError, match="got text"):
            array_of_numbers("x", "FP32", [len(data)], data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20  # 4 GB, as an array of texts
    finally:
        tracemalloc.stop()


WORDS = np.array([["a", "ü", ""], ["\N{GRINNING FACE}", "b\0", "\udcff"]], object)
RAW = (
    b"\x01\0\0\0a\x02\0\0\0\xc3\xbc\0\0\0\0"  # after their lengths, worked by hand
    b"\x04\0\0\0\xf0\x9f\x98\x80\x02\0\0\0b\0\x01\0\0\0\xff"
)


def test_strings_are_bytes_after_their_lengths() -> None:
    assert bytes_of(WORDS) == RAW
    elements = array_of_bytes("x", "BYTES", (2, 3), RAW)
    assert elements.shape == (2, 3)
    assert elements[0].tolist() == [b"a", b"\xc3\xbc", b""]
    assert elements[1].tolist() == [b"\xf0\x9f\x98\x80", b"b\0", b"\xff"]


@pytest.mark.parametrize("raw", [RAW[:-1], RAW + b"\0", RAW[:-5], b"", b"\xff\xff\xff\xff"])
def test_bytes_that_are_not_the_strings_of_a_shape_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="6 elements of BYTES"):
        array_of_bytes("x", "BYTES", (2, 3), raw)


def test_a_shape_of_many_strings_takes_no_memory_before_it_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="elements of BYTES"):
        array_of_bytes("x", "BYTES", (1 << 40,), RAW)
