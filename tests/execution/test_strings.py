"""Tensors of strings: how they are given, run, kept and refused."""

from __future__ import annotations

import numpy as np
import pytest

import armpy
from armpy import DataType, Network, TensorInfo, ops
from armpy.core.strings import as_strings, packed, unpacked
from armpy.errors import BackendCapabilityError, InvalidArgumentError
from armpy.ops.tolerance import compare


def model_of(net: Network, *backends: str) -> armpy.Model:
    return armpy.Model(net, armpy.Runtime(armpy.RuntimeOptions(backends=backends or ("CpuRef",))))


def joining() -> Network:
    """Rows of two words, below a constant row, transposed."""
    net = Network("joining")
    words = net.input("words", TensorInfo((None, 2), DataType.STRING), default_shape=(1, 2))
    joined = net.add(ops.Concat(0), words, net.constant([["one", "zwölf"]]))
    net.output("columns", net.add(ops.Transpose((1, 0)), joined))
    return net


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([["a", 3]], "an element is not a string.*int 3"),
        ([["a", None]], "an element is not a string.*NoneType"),
        (np.zeros((1, 2)), "the array has the wrong type.*float64"),
        ([["a", "\ud800"]], "cannot be encoded"),
        ([["a"]], "shape"),
    ],
)
def test_an_input_that_is_not_strings_is_refused_by_name(words: object, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text) as caught:
        model_of(joining()).run({"words": words})
    assert "words" in str(caught.value)


def test_a_bound_execution_refuses_elements_that_are_no_strings_any_more() -> None:
    words = np.array([["a", "b"]], object)
    execution = model_of(joining()).bind({"words": words})
    words[0, 1] = 5
    with pytest.raises(InvalidArgumentError, match="an element is not a string"):
        execution()


def test_strings_have_no_order() -> None:
    net = Network("ordered")
    words = net.input("words", TensorInfo((2,), DataType.STRING))
    with pytest.raises(armpy.errors.LayerValidationError, match="LESS does not compare STRING"):
        net.add(ops.Comparison(ops.ComparisonOperation.LESS), words, words)


@pytest.mark.slow
def test_a_network_runs_in_another_process_without_its_strings() -> None:
    net = joining()
    options = armpy.RuntimeOptions(backends=("CpuRef",), isolation="process")
    with (
        armpy.Runtime(options) as runtime,
        pytest.raises(BackendCapabilityError, match="lacks Strings"),
    ):
        armpy.Model(net, runtime).run({"words": [["a", "b"]]})


def test_packed_strings_are_those_of_the_flatbuffer_format() -> None:
    # Worked by hand: 2 strings, which begin at 16 and 17 and end at 19.
    expected = np.array([2, 16, 17, 19], "<i4").tobytes() + b"a\xc3\xbc"
    assert packed(as_strings(np.array(["a", "ü"]))).tobytes() == expected
    assert unpacked(np.frombuffer(expected, np.uint8), 2).tolist() == ["a", "ü"]


@pytest.mark.parametrize(
    "words",
    [[], [3, 16, 17, 19], [2, 15, 17, 19], [2, 16, 20, 19], [2, 16, 17, 20], [2, -1, 17, 19]],
)
def test_damaged_packed_strings_are_refused(words: list[int]) -> None:
    stored = np.frombuffer(np.array(words, "<i4").tobytes() + b"abc", np.uint8)
    with pytest.raises(InvalidArgumentError):
        unpacked(stored, 2)


def test_strings_that_differ_are_shown_with_their_place() -> None:
    info = TensorInfo((2,), DataType.STRING)
    expected, actual = np.array(["a", "b"], object), np.array(["a", "c"], object)
    assert compare(expected, expected.copy(), info) is None
    difference = compare(expected, actual, info)
    assert difference is not None
    assert (difference.index, difference.count) == ((1,), 1)
    assert "Expected 'b'; got 'c'" in str(difference)
