# SPDX-License-Identifier: Apache-2.0
"""The checker of the protocol catches answers that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from armpy_serving.protocol_kit.answers import (
    BrokenRuleError,
    check_error,
    check_model_metadata,
    checked_answer,
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
