"""Signatures are called by keywords."""

from __future__ import annotations

import numpy as np
import pytest

from armpy_compat.litert.interpreter import Interpreter

from . import models

A, B = np.array([1.0, 2.0], np.float32), np.array([10.0, 20.0], np.float32)


@pytest.fixture
def interpreter() -> Interpreter:
    return Interpreter(model_content=models.two_signatures())


def test_signatures_and_their_names_are_sorted(interpreter: Interpreter) -> None:
    assert interpreter.num_subgraphs() == 2
    assert [*interpreter.get_signature_list().items()] == [
        ("add", {"inputs": ["a", "b"], "outputs": ["total"]}),
        ("negate", {"inputs": ["x"], "outputs": ["y"]}),
    ]
    assert interpreter._get_full_signature_list()["add"]["inputs"] == {"a": 1, "b": 0}


def test_inputs_take_the_shapes_of_their_arrays(interpreter: Interpreter) -> None:
    add = interpreter.get_signature_runner("add")
    long = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(add(a=long, b=long)["total"], 2 * long)
    assert add.get_input_details()["a"]["shape"].tolist() == [5]
    assert add.get_output_details()["total"]["name"] == "add_total"
