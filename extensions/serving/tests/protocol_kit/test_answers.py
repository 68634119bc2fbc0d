"""The checker of the protocol catches answers that are none."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from armpy_serving.protocol_kit.answers import (
    BrokenRuleError,
    check_error,
    check_model_metadata,
    checked_answer,
    checked_message,
)

Y = {"name": "y", "shape": [2], "datatype": "FP32", "data": [1, 2.5]}
GOOD = {"model_name": "m", "id": "1", "outputs": [Y]}


def body(**changes: Any) -> bytes:
    """An answer with an output that is changed."""  # Any: JSON
    return json.dumps(GOOD | {"outputs": [Y | changes]}).encode()


def test_a_right_answer_passes() -> None:
    assert checked_answer(body(), None)["y"].tolist() == [1, 2.5]


@pytest.mark.parametrize(
    "wrong",
    [
        b'{"detail": "no"}',
        json.dumps(GOOD | {"id": None}).encode(),
        json.dumps(GOOD | {"model_version": None}).encode(),
        json.dumps({"outputs": []}).encode(),
        body(data=[1, None]),
        body(data=[1, float("nan")]),
        body(data=[True, 1]),
        body(data=["1", 2]),
        body(shape=[-1]),
        body(shape=[2.0]),
        body(shape=[3]),
        body(datatype="FLOAT"),
        body(parameters={"scale": None}),
        body(parameters={"binary_data_size": 8}),
        body() + b"rest",
    ],
)
def test_a_wrong_answer_is_caught(wrong: bytes) -> None:
    with pytest.raises(BrokenRuleError):
        checked_answer(wrong, None)


def test_bytes_have_to_be_as_many_as_the_shape_says() -> None:
    entry = {"name": "y", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": 4}}
    head = json.dumps(GOOD | {"outputs": [entry]}).encode()
    with pytest.raises(BrokenRuleError):
        checked_answer(head + b"1234", str(len(head)))


@pytest.mark.parametrize("wrong", [b'{"detail": "no"}', b'{"error": 1}', b'{"error": ""}'])
def test_an_error_in_other_words_is_caught(wrong: bytes) -> None:
    with pytest.raises(BrokenRuleError):
        check_error(400, wrong)


def test_metadata_without_a_platform_are_caught() -> None:
    with pytest.raises(BrokenRuleError):
        check_model_metadata({"name": "m", "inputs": [], "outputs": []})


def message(raws: list[bytes], datatype: str = "FP32", elements: int = 2) -> Any:
    """An answer over gRPC."""  # Any: stands for protobuf's
    contents = SimpleNamespace(fp32_contents=[1.0] * elements, ByteSize=lambda: 4 * elements)
    tensor = SimpleNamespace(name="y", datatype=datatype, shape=[2], contents=contents)
    return SimpleNamespace(outputs=[tensor], raw_output_contents=raws)


def test_right_messages_pass() -> None:
    assert checked_message(message([]))["y"].tolist() == [1, 1]
    assert checked_message(message([bytes(8)], elements=0))["y"].tolist() == [0, 0]
    strings = message([b"\x01\0\0\0a\0\0\0\0"], "BYTES", elements=0)
    assert checked_message(strings)["y"].tolist() == ["a", ""]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (message([], elements=1), "1 elements in fp32_contents"),
        (message([], "FP16"), "FP16 has no typed contents"),
        (message([], "FLOAT"), "unknown datatype"),
        (message([bytes(8)]), "raw and typed contents"),
        (message([bytes(8)] * 2, elements=0), "of all outputs, or of none"),
        (message([bytes(4)], elements=0), "number of bytes"),
    ],
)
def test_wrong_messages_are_caught(wrong: Any, text: str) -> None:
    with pytest.raises(BrokenRuleError, match=text):
        checked_message(wrong)
