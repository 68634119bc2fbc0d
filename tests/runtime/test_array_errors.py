"""What is no array for an input is refused with words that say what it is and what to do."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import Model, Network, Runtime, RuntimeOptions
from armpy.errors import InvalidArgumentError
from tests.support.networks import RELU, f32

GOOD = [[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]
ANSWER = [[1.0, 0.0, 3.0], [4.0, 5.0, 0.0]]


def relu(*shape: int | None) -> Model:
    net = Network("relu")
    net.output("y", net.add(RELU, net.input("x", f32(*shape))))
    return Model(net, Runtime(RuntimeOptions(backends=["CpuRef"])))


@pytest.fixture(scope="module")
def model() -> Model:
    return relu(2, 3)


class WithArray:
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(GOOD, np.float32)


class Failing:
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("boom")


class Odd:
    pass


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"got None\. Give it an array"),
        ("abc", r"got the text 'abc'\. If it is a file, read it first"),
        (Path("a.npy"), r"got the path 'a\.npy'\. If it is a file, read it first"),
        (b"abc", r"24 bytes; got 3 bytes"),
        (bytearray(25), r"24 bytes; got 25 bytes"),
        ({"a": 1}, r"got a dict with 'a'\. Give the array that is in it"),
        ({}, "got a dict with no keys"),
        ({1.0, 2.0}, "got a set. It has no order"),
        (iter([1.0]), r"got a list_iterator\. .*np\.array\(list"),
        (Odd(), r"got a .*Odd\. Make it an array first: np\.asarray"),
        (Odd, "got the class Odd. Give it an instance"),
        (len, "got a builtin_function_or_method"),
        (io.BytesIO(b"x"), r"got an open file \(_io\.BytesIO\)\. Read it first"),
        ([[1.0, 2.0, 3.0], [1.0]], "got a list whose rows differ in length"),
        ([["a"] * 3] * 2, r"got a list with the text 'a' at \[0\]\[0\]"),
        ([[1.0, 2.0, 3.0], [1.0, None, 3.0]], r"got a list with None at \[1\]\[1\]"),
        (((1.0, Decimal(1)),), r"got a tuple with a decimal\.Decimal at \[0\]\[1\]"),
        (np.full((2, 3), None), r"object\(2, 3\)\. Its elements are Python objects"),
        (np.full((2, 3), "a"), "Its elements are texts"),
        (np.zeros((2, 3), "M8[s]"), r"datetime64\[s\]\(2, 3\)\. Make numbers of its elements"),
        (np.zeros((2, 3), [("a", "f4")]), r"Take one of its fields: array\['a'\]"),
        (Failing(), "cannot be made an array: boom"),
        (np.zeros((2, 3)), r"wrong type.*got float64\(2, 3\).*astype\('float32'\)"),
        (np.zeros((2, 3), complex), "wrong type.*got complex128"),
        (10**30, "got the number 1000000000000000000000000000000. It is larger than"),
        (True, r"wrong type.*got bool\(\)"),
        (5, r"the shape does not fit. Expected \(2, 3\); got \(\)"),
        (np.zeros((1, 2, 3), np.float32), r"Leave the batch dimension out: array\[0\]"),
        (np.zeros((4, 3), np.float32), r"Model\.reshape gives a model for another one"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_array_for_the_input_is_named(model: Model, given: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"^input 'x': .*{message}"):
        model.run({"x": given})
    assert model(GOOD).tolist() == ANSWER  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "given",
    [
        GOOD,
        tuple(map(tuple, GOOD)),
        np.array(GOOD, np.float32),
        np.array(GOOD, ">f4"),
        np.asfortranarray(np.array(GOOD, np.float32)),
        np.array(GOOD, np.float32).tobytes(),
        np.array(GOOD, np.float32).data,
        WithArray(),
        [np.array(row, np.float32) for row in GOOD],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_can_be_read_as_an_array_is(model: Model, given: Any) -> None:
    assert model(given).tolist() == ANSWER  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wanted", "given", "fix"),
    [
        ((1, 4, 4, 3), (4, 4, 3), r"Give it a batch dimension: array\[None\]"),
        ((None, 4, 4, 3), (4, 4, 3), r"Give it a batch dimension"),
        ((1, 4, 5, 3), (1, 3, 4, 5), r"The channels go last: array\.transpose\(0, 2, 3, 1\)"),
        ((1, 3, 4, 5), (1, 4, 5, 3), r"The channels go first: array\.transpose\(0, 3, 1, 2\)"),
    ],
)
def test_a_wrong_shape_comes_with_what_would_make_it_fit(
    wanted: tuple[int | None, ...], given: tuple[int, ...], fix: str
) -> None:
    with relu(*wanted) as model, pytest.raises(InvalidArgumentError, match=fix):
        model(np.zeros(given, np.float32))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "there is no model to load.*got None"),
        (5, "got int"),
        ([], "got list"),
        ("", "the path is empty"),
        ("https://example.org/a.tflite", "no path.*Download it"),
        (Network("a"), r"Make a model of it with armpy\.Model\(network\)"),
        (io.StringIO("text"), r"opened as a text.*open\(path, 'rb'\)"),
        (io.BytesIO(b""), r"nothing is left to read.*file\.seek\(0\)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_model_is_named(source: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        armpy.load(source)


def test_a_loaded_model_is_not_loaded_again(model: Model) -> None:
    with pytest.raises(InvalidArgumentError, match="It is loaded already"):
        armpy.load(model)  # type: ignore[arg-type]


def test_a_closed_file_is_an_error_of_armpy(tmp_path: Path) -> None:
    path = tmp_path / "closed"
    path.write_bytes(b"x")
    with path.open("rb") as file:
        pass
    with pytest.raises(InvalidArgumentError, match="cannot be read: read of closed file"):
        armpy.load(file)


def test_integers_that_would_wrap_are_told_from_those_that_only_have_another_type() -> None:
    net = Network("bytes")
    info = armpy.TensorInfo((1, 2), armpy.DataType.QASYMM_S8, armpy.Quantization((1.0,), (0,)))
    net.output("y", net.add(RELU, net.input("x", info)))
    model = Model(net, Runtime(RuntimeOptions(backends=["CpuRef"])))
    with pytest.raises(InvalidArgumentError, match="values of 0 to 200 do not fit -128 to 127"):
        model(np.array([[0, 200]], np.uint8))
    with pytest.raises(InvalidArgumentError, match="Convert it to int8, whose values are -128"):
        model(np.array([[0, 100]], np.uint8))
