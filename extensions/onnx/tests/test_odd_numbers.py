"""Operands of ONNX operators that decide: whatever they hold, an error is armpy's own."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
import onnx.parser
from onnx.backend.test.case.node import collect_testcases

import armpy
from armpy.errors import ArmpyError
from armpy.ops.operation import Array

pytestmark = pytest.mark.slow

Model: TypeAlias = Any  # Any: onnx.ModelProto, of a package without types

MEMORY_LIMIT_BYTES = 1 << 29
PARTS = 8
ODD: dict[str, Array] = {
    "none": np.zeros(0, np.int64),
    "several": np.full(3, 2, np.int64),
    "a matrix": np.ones((3, 3), np.int64),
    "negative": np.array(-9, np.int64),
    "negatives": np.full(2, -9, np.int64),
    "lowest": np.array([-(2**63)], np.int64),
    "beyond all memory": np.array(2**62, np.int64),
    "many beyond all memory": np.full(4, 2**62, np.int64),
    "beyond int64": np.array(2**63 + 2048, np.uint64),
    "float beyond int64": np.array(1e38, np.float32),
    "negative double beyond int64": np.array(-1e300, np.float64),
    "not a number": np.array(np.nan, np.float32),
    "infinities": np.full(2, np.inf, np.float32),
    "scales that are none": np.array([1, 1, np.nan, -np.inf], np.float32),
    "a text": np.array("2", object),
    "texts": np.full(4, "abc", object),
}
"""Of the operand's own type where that can hold them, and as they are."""


@cache
def operands_that_decide() -> list[tuple[Model, dict[str, Array], str]]:
    """For each operator, inputs of ONNX's first test of it that are small and not the first one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while the tests are computed
        cases = [case for case in collect_testcases(None) if case.model is not None]
    found: dict[tuple[str, int], tuple[Model, dict[str, Array], str]] = {}
    for case in cases:
        graph, arrays = case.model.graph, case.data_sets[0][0]
        are_numbers = all(isinstance(a, np.ndarray) and a.dtype.kind in "biuf" for a in arrays)
        if len(graph.node) != 1 or not are_numbers or len(arrays) != len(graph.input):
            continue
        named = {value.name: array for value, array in zip(graph.input, arrays, strict=True)}
        for place, (name, array) in enumerate(named.items()):
            if array.size < 9 and (place or len(named) == 1):
                index = [*graph.node[0].input].index(name)
                found.setdefault((graph.node[0].op_type, index), (case.model, named, name))
    return [*found.values()]


def changed(model: Model, arrays: dict[str, Array], constant: frozenset[str]) -> bytes:
    """A model with inputs of the types and shapes of arrays, some of which are constants."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.input[:]
    for name, array in arrays.items():
        if name in constant:
            copy.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        else:
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            copy.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, array.shape))
    for value in copy.graph.output:
        value.type.tensor_type.ClearField("shape")
    return bytes(copy.SerializeToString())


@cache
def runtime() -> armpy.Runtime:
    """One for all models: making it takes as long as loading and running one of them."""
    return armpy.Runtime(
        armpy.RuntimeOptions(backends=["CpuRef"], memory_limit_bytes=MEMORY_LIMIT_BYTES)
    )


def attempt(content: bytes, arrays: dict[str, Array], constant: frozenset[str]) -> str:
    """Load and run a model; what else than an error of armpy's comes out."""
    feeds = {name: array for name, array in arrays.items() if name not in constant}
    try:
        with armpy.load(content, runtime=runtime()) as model:
            model.run(feeds)
    except ArmpyError as error:
        return repr(error) if "the front-end raised" in str(error) else ""
    except Exception as error:  # noqa: BLE001  # the test looks for any other error
        return repr(error)
    return ""


def odd_arrays(usual: Array) -> dict[str, Array]:
    """Odd arrays, as they are and of the operand's type."""
    arrays_found = dict(ODD)
    for name, odd in ODD.items():
        if odd.dtype not in (usual.dtype, object) and np.isfinite(odd).all():
            with np.errstate(all="ignore"):  # values outside the type are odd as well
                arrays_found[f"{name} of its type"] = odd.astype(usual.dtype)
    if usual.dtype == np.float32:
        arrays_found["not a number alone"] = np.full(usual.shape, np.nan, np.float32)
        arrays_found["most alone"] = np.full(usual.shape, 3e38, np.float32)
        arrays_found["infinity alone"] = np.full(usual.shape, np.inf, np.float32)
    else:
        for number in (0, -1, -9, 2**31, 2**62, -(2**63)):
            if usual.dtype == np.int64:
                arrays_found[f"{number} alone"] = np.full(usual.shape, number, np.int64)
    return arrays_found


def variants(
    arrays: dict[str, Array], name: str
) -> Iterator[tuple[str, dict[str, Array], frozenset[str]]]:
    """Inputs of which one is odd, in turn with all given, it constant, and all others constant."""
    for label, odd in odd_arrays(arrays[name]).items():
        inputs = {**arrays, name: odd}
        for constant in (frozenset[str](), frozenset({name}), frozenset([*arrays][1:])):
            yield label, inputs, constant


@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", range(PARTS))
def test_odd_numbers_work_or_are_refused(part: int) -> None:
    wrong = {}
    for model, arrays, name in operands_that_decide()[part::PARTS]:
        for label, inputs, constant in variants(arrays, name):
            if error := attempt(changed(model, inputs, constant), inputs, constant):
                wrong[model.graph.node[0].op_type, name, label, tuple(constant)] = error
    assert wrong == {}, wrong


LOOP = """<ir_version: 9, opset_import: ["" : 18]>
graph (TYPE n, bool c, float[3] x) => (float[3] last) {
  last = Loop (n, c, x) <body = b (int64 i, bool go, float[3] v) => (bool on, float[3] w) {
    w = Add (v, x)
    on = Identity (go)
  }>
}"""
AT = """<ir_version: 9, opset_import: ["" : 18]>
graph (TYPE n, float[3] x) => (float[m] y) {
  s = SequenceConstruct (x, x)
  y = SequenceAt (s, n)
}"""
INSERT = AT.replace(
    "y = SequenceAt (s, n)",
    "t = SequenceInsert (s, x, n)\n y = ConcatFromSequence <axis = 0> (t)",
)
ERASE = AT.replace(
    "y = SequenceAt (s, n)",
    "t = SequenceErase (s, n)\n y = ConcatFromSequence <axis = 0> (t)",
)


@pytest.mark.parametrize("text", [LOOP, AT, INSERT, ERASE], ids=["loop", "at", "insert", "erase"])
def test_odd_counts_and_positions_work_or_are_refused(text: str) -> None:
    wrong = {}
    odd_counts = {**ODD, "few": np.array([2], np.int64)}
    for (label, odd), is_constant in itertools.product(odd_counts.items(), (False, True)):
        if text is LOOP and odd.size == 1 and label.startswith("beyond"):
            continue  # it runs until its time is over
        kind = {"f": "float", "O": "string"}.get(odd.dtype.kind, "int64")
        dimensions = ", ".join(map(str, odd.shape))
        typed = f"{kind}[{dimensions}]" if odd.shape else kind
        model = onnx.parser.parse_model(text.replace("TYPE", typed))
        arrays = {"n": odd, "x": np.ones(3, np.float32), "c": np.array(True)}
        if text is not LOOP:
            del arrays["c"]
        if is_constant:
            del model.graph.input[0]
            model.graph.initializer.append(onnx.numpy_helper.from_array(odd, "n"))
        constant = frozenset({"n"} if is_constant else ())
        if error := attempt(model.SerializeToString(), arrays, constant):
            wrong[label, is_constant] = error
    assert wrong == {}, wrong
