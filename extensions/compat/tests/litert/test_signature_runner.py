"""Signatures are called by keywords."""

from __future__ import annotations

import numpy as np
import pytest

from armpy_compat.litert.interpreter import Interpreter, SignatureRunner

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


def test_each_signature_runs_its_subgraph(interpreter: Interpreter) -> None:
    add, negate = map(interpreter.get_signature_runner, ("add", "negate"))
    np.testing.assert_array_equal(add(a=A, b=B)["total"], [11.0, 22.0])
    np.testing.assert_array_equal(negate(x=A)["y"], -A)
    np.testing.assert_array_equal(add(b=A, a=A)["total"], 2 * A)


def test_inputs_take_the_shapes_of_their_arrays(interpreter: Interpreter) -> None:
    add = interpreter.get_signature_runner("add")
    long = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(add(a=long, b=long)["total"], 2 * long)
    assert add.get_input_details()["a"]["shape"].tolist() == [5]
    assert add.get_output_details()["total"]["name"] == "add_total"


def test_wrong_names_and_arrays_are_refused(interpreter: Interpreter) -> None:
    add = interpreter.get_signature_runner("add")
    with pytest.raises(ValueError, match="expected 2 vs provided 1"):
        add(a=A)
    with pytest.raises(ValueError, match=r"Invalid Input name \(c\) for SignatureDef"):
        add(a=A, c=B)
    with pytest.raises(ValueError, match="Got value of type INT64 but expected type FLOAT32"):
        add(a=A, b=B.astype(np.int64))


def test_a_signature_has_to_be_named_if_there_are_several(interpreter: Interpreter) -> None:
    with pytest.raises(ValueError, match="signature_key is None and model has 2 Signatures"):
        interpreter.get_signature_runner()
    with pytest.raises(ValueError, match='Invalid signature_key provided: "sub"'):
        interpreter.get_signature_runner("sub")
    with pytest.raises(ValueError, match="None interpreter provided"):
        SignatureRunner()
