"""Wrong files, arguments and arrays raise errors of LiteRT's classes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

theirs = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")

from armpy_compat.litert import interpreter as ours  # noqa: E402 - after the skip

from . import models  # noqa: E402

SOUND = models.doubling()
SIGNED = models.two_signatures()
X = np.ones((1, 2), np.float32)
PAIR = np.ones(2, np.float32)

FILES = {
    "empty": b"",
    "a text": b"hello, this is not a model",
    "one byte": b"a",
    "another identifier": SOUND[:4] + b"TFL9" + SOUND[8:],
    "half a model": SOUND[: len(SOUND) // 2],
}

ARGUMENTS: dict[str, dict[str, Any]] = {  # Any: values of wrong types
    "nothing": {},
    "two models": {"model_path": "a", "model_content": SOUND},
    "a number as the path": {"model_path": 3},
    "a missing file": {"model_path": "/nothing/model.tflite"},
    "a folder": {"model_path": "/"},
    "a text as the content": {"model_content": "abc"},
    "a list as the content": {"model_content": [1]},
    "no threads": {"model_content": SOUND, "num_threads": 0},
    "half a thread": {"model_content": SOUND, "num_threads": 1.5},
    "a resolver of no kind": {"model_content": SOUND, "experimental_op_resolver_type": 7},
    "an unknown argument": {"model_content": SOUND, "nope": 1},
}

# Any: an interpreter of either engine.
UNALLOCATED: dict[str, Callable[[Any], object]] = {
    "a run": lambda i: i.invoke(),
    "reading": lambda i: i.get_tensor(0),
    "writing": lambda i: i.set_tensor(0, X),
}

ALLOCATED: dict[str, Callable[[Any], object]] = {
    "reading a negative tensor": lambda i: i.get_tensor(-1),
    "reading a missing tensor": lambda i: i.get_tensor(99),
    "reading a text": lambda i: i.get_tensor("x"),
    "reading a missing subgraph": lambda i: i.get_tensor(0, 5),
    "details of a missing subgraph": lambda i: i.get_tensor_details(5),
    "writing a missing tensor": lambda i: i.set_tensor(99, X),
    "another type": lambda i: i.set_tensor(0, X.astype(np.float64)),
    "another rank": lambda i: i.set_tensor(0, X[0]),
    "another size": lambda i: i.set_tensor(0, np.ones((1, 3), np.float32)),
    "None": lambda i: i.set_tensor(0, None),
    "lists of two lengths": lambda i: i.set_tensor(0, [[1.0], [1.0, 2.0]]),
    "texts": lambda i: i.set_tensor(0, np.array([["a", "b"]])),
    "an intermediate tensor": lambda i: i.set_tensor(1, X),
    "a text as the shape": lambda i: i.resize_tensor_input(0, "ab"),
    "a number as the shape": lambda i: i.resize_tensor_input(0, 3),
    "a matrix as the shape": lambda i: i.resize_tensor_input(0, [[1, 2]]),
    "a missing tensor's shape": lambda i: i.resize_tensor_input(99, [1, 2]),
    "a fixed size": lambda i: i.resize_tensor_input(0, [2, 2], strict=True),
    "shapes that do not fit": lambda i: (i.resize_tensor_input(0, [1, 3]), i.allocate_tensors()),
    "a negative size": lambda i: (i.resize_tensor_input(0, [-1, 2]), i.allocate_tensors()),
    "a run after a resize": lambda i: (i.resize_tensor_input(0, [2, 2]), i.invoke()),
}

SIGNATURES: dict[str, Callable[[Any], object]] = {
    "an unknown one": lambda i: i.get_signature_runner("nope"),
    "none of two": lambda i: i.get_signature_runner(),
    "a number": lambda i: i.get_signature_runner(3),
    "a missing input": lambda i: i.get_signature_runner("add")(a=PAIR),
    "one input too many": lambda i: i.get_signature_runner("negate")(x=PAIR, q=1),
    "another input": lambda i: i.get_signature_runner("negate")(q=PAIR),
    "an input without a name": lambda i: i.get_signature_runner("negate")(PAIR),
    "another type": lambda i: i.get_signature_runner("negate")(x=np.ones(2, np.int32)),
}


def assert_same_kinds(call: Callable[[Any], object]) -> None:
    """A call of either module raises an error of one class."""
    kinds = []
    for module in (theirs, ours):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the kind is what is compared
            call(module)
        kinds.append(type(caught.value))
    assert issubclass(kinds[1], kinds[0]), kinds


def opened(module: Any, content: bytes, *, is_allocated: bool = True) -> Any:
    """An interpreter."""
    interpreter = module.Interpreter(model_content=content)
    if is_allocated:
        interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize("name", FILES)
def test_faulty_models(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(FILES[name])
    assert_same_kinds(lambda module: module.Interpreter(str(path)))
    assert_same_kinds(lambda module: module.Interpreter(model_content=FILES[name]))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments(name: str) -> None:
    assert_same_kinds(lambda module: module.Interpreter(**ARGUMENTS[name]))


def test_an_operator_that_neither_engine_has() -> None:
    assert_same_kinds(lambda module: opened(module, models.of_custom_operator()))


@pytest.mark.parametrize("name", UNALLOCATED)
def test_calls_before_tensors_are_allocated(name: str) -> None:
    assert_same_kinds(lambda m: UNALLOCATED[name](opened(m, SOUND, is_allocated=False)))


@pytest.mark.parametrize("name", ALLOCATED)
def test_wrong_calls(name: str) -> None:
    assert_same_kinds(lambda module: ALLOCATED[name](opened(module, SOUND)))


@pytest.mark.parametrize("name", SIGNATURES)
def test_wrong_signatures(name: str) -> None:
    assert_same_kinds(lambda m: SIGNATURES[name](opened(m, SIGNED, is_allocated=False)))
