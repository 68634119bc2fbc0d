"""Tensors of strings: how they are given, run, kept and refused."""

from __future__ import annotations

from pathlib import Path

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
    "words",
    [
        [["a", "ü"]],
        np.array([["a", "ü"]]),
        np.array([["a", "ü"]], object),
        np.array([[b"a", "ü".encode()]]),
        np.array([[b"a", "ü"]], object),
        np.array([["a", "ü"]], np.dtypes.StringDType()),
    ],
    ids=["lists", "U", "objects", "S", "mixed", "StringDType"],
)
def test_strings_are_taken_as_lists_and_as_each_of_numpys_types(words: object) -> None:
    columns = model_of(joining()).run({"words": words})["columns"]
    assert columns.dtype == object
    assert columns.tolist() == [["a", "one"], ["ü", "zwölf"]]


def test_bytes_that_are_not_utf8_come_back_as_the_same_bytes() -> None:
    columns = model_of(joining()).run({"words": [[b"\xff\xfe", "\N{GRINNING FACE}"]]})["columns"]
    assert columns[0, 0].encode("utf-8", "surrogateescape") == b"\xff\xfe"
    assert columns[1, 0] == "\N{GRINNING FACE}"


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


def test_strings_between_layers_take_no_arena_and_stay_apart_between_calls() -> None:
    model = model_of(joining())
    first = model.run({"words": [["a", "b"]]})["columns"]
    second = model.run({"words": [["c", "d"]]})["columns"]
    assert first.tolist() == [["a", "one"], ["b", "zwölf"]]
    assert second.tolist() == [["c", "one"], ["d", "zwölf"]]
    placement = model.placement
    assert placement is not None
    assert sum(placement.arena_bytes.values()) == 0


def test_a_bound_execution_reads_strings_where_they_are() -> None:
    words = np.array([["a", "b"]], object)
    execution = model_of(joining()).bind({"words": words})
    words[0, 1] = "ü"
    assert execution()["columns"].tolist() == [["a", "one"], ["ü", "zwölf"]]


def test_a_bound_execution_refuses_elements_that_are_no_strings_any_more() -> None:
    words = np.array([["a", "b"]], object)
    execution = model_of(joining()).bind({"words": words})
    words[0, 1] = 5
    with pytest.raises(InvalidArgumentError, match="an element is not a string"):
        execution()


def test_a_backend_without_the_capability_is_not_asked_about_strings() -> None:
    with pytest.raises(BackendCapabilityError, match=r"NumbaAcc: .*strings.*lacks Strings"):
        model_of(joining(), "NumbaAcc").run({"words": [["a", "b"]]})


def test_the_accelerator_takes_the_layers_beside_strings() -> None:
    net = Network("mixed")
    words = net.input("words", TensorInfo((4,), DataType.STRING))
    numbers = net.input("numbers", TensorInfo((4,), DataType.FLOAT32))
    is_yes = net.add(ops.Comparison(), words, net.constant(["yes"]))
    doubled = net.add(ops.ElementwiseBinary(), numbers, numbers)
    net.output("chosen", net.add(ops.Select(), is_yes, doubled, numbers))
    model = model_of(net, "NumbaAcc", "CpuRef")
    feeds = {"words": ["yes", "no", "", "yes"], "numbers": np.array([1, 2, 3, 4], np.float32)}
    assert model.run(feeds)["chosen"].tolist() == [2, 2, 3, 8]
    placement = model.placement
    assert placement is not None
    assert {layer.backend for layer in placement.layers} == {"NumbaAcc", "CpuRef"}


def test_strings_have_no_order() -> None:
    net = Network("ordered")
    words = net.input("words", TensorInfo((2,), DataType.STRING))
    with pytest.raises(armpy.errors.LayerValidationError, match="LESS does not compare STRING"):
        net.add(ops.Comparison(ops.ComparisonOperation.LESS), words, words)


def test_padding_and_scattering_strings_fill_with_empty_ones() -> None:
    net = Network("padded")
    words = net.input("words", TensorInfo((2,), DataType.STRING))
    net.output("padded", net.add(ops.Pad(((1, 1),)), words))
    assert model_of(net).run({"words": ["a", "b"]})["padded"].tolist() == ["", "a", "b", ""]


@pytest.mark.slow
def test_a_network_runs_in_another_process_without_its_strings() -> None:
    net = joining()
    options = armpy.RuntimeOptions(backends=("CpuRef",), isolation="process")
    with (
        armpy.Runtime(options) as runtime,
        pytest.raises(BackendCapabilityError, match="lacks Strings"),
    ):
        armpy.Model(net, runtime).run({"words": [["a", "b"]]})


def test_a_saved_model_keeps_its_strings(tmp_path: Path) -> None:
    model = model_of(joining())
    model.prepare({"words": (1, 2)})
    path = tmp_path / "joining.armpy"
    model.save(path)
    columns = armpy.load(path).run({"words": [["a", "ü"]]})["columns"]
    assert columns.tolist() == [["a", "one"], ["ü", "zwölf"]]


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
