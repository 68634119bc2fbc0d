"""ONNX's node tests with something changed: a model is refused with armpy's errors, or it runs."""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

import armpy
from armpy.errors import ArmpyError
from armpy.ops.operation import Array
from armpy_onnx.element_types import data_type_of, stored

NUM_MODELS = int(os.environ.get("ARMPY_NUM_MUTATED_NODES", "600"))

Model: TypeAlias = Any  # Any: onnx.ModelProto, of a package without types
Arrays: TypeAlias = dict[str, Array]

RUNTIME = armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"]))
INTEGERS = (-(2**63), -(2**40), -7, -2, -1, 0, 1, 2, 3, 5, 2**31, 2**62, 2**63 - 1)
REALS = (float("nan"), float("inf"), -float("inf"), 0.0, -1.5, 1e30)
WORDS = (b"", b"wrong", b"\xff", b"reflect", b"linear", b"add")
INT, INTS, FLOAT, STRING = (
    getattr(onnx.AttributeProto, name) for name in ("INT", "INTS", "FLOAT", "STRING")
)


@cache
def node_tests() -> list[tuple[Model, Arrays]]:
    """Models of one node or a few with inputs that are numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while the tests are computed
        cases = [case for case in collect_testcases(None) if case.model is not None]
    models = []
    for case in cases:
        graph, arrays = case.model.graph, case.data_sets[0][0]
        if all(isinstance(array, np.ndarray) and array.dtype.kind in "biuf" for array in arrays):
            named = zip(graph.input, arrays, strict=False)
            models.append((case.model, {value.name: array for value, array in named}))
    return models


def any_of(random: np.random.Generator, items: Any) -> Any:
    """One item of a sequence."""
    return items[int(random.integers(len(items)))]


def changed_array(random: np.random.Generator, array: Array) -> Array:
    """A tensor with another shape, or one element changed."""
    how = random.integers(6)
    if how == 0:
        return array.reshape(-1)
    if how == 1:
        return array[None]
    if how == 2 and array.ndim:
        return array[..., : random.integers(array.shape[-1] + 1)]
    if how == 3 and array.size:
        return np.asarray(array.reshape(-1)[0].reshape(()))
    if how == 4 and array.ndim and len(array):
        return array[random.integers(0, len(array), random.integers(len(array) + 2))]
    changed = array.copy()
    if array.size:
        number = any_of(random, REALS if array.dtype.kind == "f" else INTEGERS)
        with np.errstate(all="ignore"):
            changed.flat[random.integers(array.size)] = np.array(number).astype(array.dtype)
    return changed


def change_attribute(random: np.random.Generator, attribute: Any) -> None:
    """Give an attribute another value."""
    if attribute.type == INT:
        attribute.i = any_of(random, INTEGERS)
    elif attribute.type == FLOAT:
        attribute.f = any_of(random, REALS)
    elif attribute.type == STRING:
        attribute.s = any_of(random, WORDS)
    elif attribute.type == INTS:
        numbers = list(attribute.ints)
        if numbers and random.integers(2):
            numbers[random.integers(len(numbers))] = any_of(random, INTEGERS)
        elif random.integers(2):
            numbers.append(any_of(random, INTEGERS))
        else:
            numbers = numbers[:-1]
        del attribute.ints[:]
        attribute.ints.extend(numbers)


def mutated(random: np.random.Generator, model: Model, arrays: Arrays) -> tuple[Model, Arrays]:
    """A model with one or two changes; some of its inputs are constants then."""
    changed, arrays_left = onnx.ModelProto(), dict(arrays)
    changed.CopyFrom(model)
    graph = changed.graph
    for _ in range(random.integers(1, 3)):
        node, choice = any_of(random, graph.node), random.integers(5)
        if choice <= 1 and arrays_left:
            name = any_of(random, list(arrays_left))
            arrays_left[name] = changed_array(random, arrays_left[name])
        elif choice == 2 and node.attribute:
            change_attribute(random, any_of(random, node.attribute))
        elif choice == 3 and node.attribute:
            del node.attribute[random.integers(len(node.attribute))]
        elif choice == 4 and node.input:
            node.input[random.integers(len(node.input))] = any_of(random, ["", *arrays_left])
    constants = {name: array for name, array in arrays_left.items() if random.integers(2)}
    graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in constants.items())
    inputs = {name: array for name, array in arrays_left.items() if name not in constants}
    del graph.input[:]
    for name, array in inputs.items():
        element_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        graph.input.append(helper.make_tensor_value_info(name, element_type, array.shape))
    return changed, inputs


@pytest.mark.slow  # test_onnx_fuzz.py changes nodes in other ways
def test_mutated_nodes_are_refused_or_run() -> None:
    random, refused = np.random.default_rng(NUM_MODELS), 0
    for _ in range(NUM_MODELS):
        model, inputs = mutated(random, *any_of(random, node_tests()))
        types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
        feeds = {name: stored(a, data_type_of(types[name], name)) for name, a in inputs.items()}
        try:
            armpy.load(model.SerializeToString(), front_end="onnx", runtime=RUNTIME).run(feeds)
        except ArmpyError:
            refused += 1
    assert NUM_MODELS // 10 < refused < NUM_MODELS * 9 // 10
