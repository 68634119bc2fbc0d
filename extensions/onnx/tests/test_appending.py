"""Loops that append to tensors and sequences, against ONNX's reference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
import onnx.parser
import onnx.reference

import armpy
from armpy.execution.steps.appending import Append, find_appends
from armpy.ops.control_flow import While
from armpy_testing.models.onnx_texts import HEAD

X = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)

_LOOP = """graph (float[2, 3] x, float[2, 3] y) => (float[2, 3] last, float z, float w) {
  n = Constant <value_int = 60> ()
  t = Constant <value = bool {1}> ()
  half = Constant <value = float {0.5}> ()
  FIRST
  last, joined, all = Loop (n, t, x, first) <body = b (int64 i, bool go, float[2, 3] v, KIND l)
      => (bool on, float[2, 3] u, KIND m, float[2, 3] row) {
    i_float = Cast <to = 1> (i)
    a = Mul (v, half)
    u = Add (a, i_float)
    row = Neg (u)
    m = APPEND
    on = Identity (go)
  }>
  LAST
  w = Identity (all)
}"""


def _loop(
    append: str, first: str = "first = Identity (y)", last: str = "z = Identity (joined)"
) -> onnx.ModelProto:
    """A loop of more turns than are written out."""
    kind = "seq(float)" if "Sequence" in append else "float"
    text = _LOOP.replace("KIND", kind).replace("APPEND", append)
    model = onnx.parser.parse_model(HEAD + text.replace("FIRST", first).replace("LAST", last))
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


_EMPTY, _FIRST = "first = SequenceEmpty ()", "first = SequenceConstruct (y)"
_INSERT = "SequenceInsert (l, u)"


def _concat(axis: int, new: int) -> str:
    return f"z = ConcatFromSequence <axis = {axis}, new_axis = {new}> (joined)"


@pytest.mark.parametrize(
    "texts",
    [
        ("Concat <axis = 0> (l, u)",),
        ("Concat <axis = -1> (l, u)",),
        (_INSERT, _EMPTY, _concat(0, 1)),
        (_INSERT, _EMPTY, _concat(-1, 1)),
        (_INSERT, _EMPTY, _concat(1, 0)),
        (_INSERT, _FIRST, _concat(0, 0)),
        (_INSERT, _EMPTY, "p = Constant <value_int = -2> () z = SequenceAt (joined, p)"),
    ],
)
def test_what_turns_append_is_collected(texts: tuple[str, ...]) -> None:
    """The loop is a layer of known shapes, with nothing written out."""
    model = _loop(*texts)
    inputs = {"x": X, "y": -X}
    expected = onnx.reference.ReferenceEvaluator(model).run(None, inputs)
    loaded = armpy.load(model.SerializeToString(), backends=["CpuRef"])
    outputs = loaded.run(inputs)
    assert outputs["z"].shape == expected[1].shape
    for name, wanted in zip(("last", "z", "w"), expected, strict=True):
        # The reference joins the collected outputs instead of stacking them.
        np.testing.assert_allclose(outputs[name].reshape(wanted.shape), wanted, rtol=1e-5)
    network = loaded.runtime.get_network(loaded.network_id).optimized
    assert network is not None
    (loop,) = (layer for layer in network.graph.layers if layer.operation.name == "While")
    assert all(value.info.is_fully_shaped for value in loop.outputs)


def test_sequences_that_turns_read_are_written_out() -> None:
    """Their length is another one in every turn."""
    model = _loop("SequenceInsert (l, u) k = SequenceLength (l)", _EMPTY, _concat(0, 0))
    expected = onnx.reference.ReferenceEvaluator(model).run(None, {"x": X, "y": X})
    outputs = armpy.load(model.SerializeToString(), backends=["CpuRef"]).run({"x": X, "y": X})
    np.testing.assert_allclose(outputs["z"], expected[1], rtol=1e-5)


def test_what_turns_append_is_found_where_shapes_are_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither a part of unknown rank nor a Cast to the same type hides it from the core."""
    text = """graph (int64 n, float[2, 3] x, int64[r] s) => (float y) {
      z = Constant <value = int64[3] {0, 2, 3}> () first = ConstantOfShape (z)
      t = Constant <value = bool {1}> ()
      y = Loop (n, t, first) <body = b (int64 i, bool go, float[?, 2, 3] v)
          => (bool on, float[p, q, r] w) {
        part = Reshape (x, s) same = Cast <to = 1> (v)
        w = Concat <axis = 0> (same, part) on = Identity (go)
      }>
    }"""
    model = onnx.parser.parse_model(HEAD + text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    found: list[int] = []

    def watched(loop: While) -> Iterator[Append]:
        for append in find_appends(loop):
            found.append(append.number)
            yield append

    monkeypatch.setattr("armpy.execution.steps.find_appends", watched)
    inputs = {"n": np.int64(4), "x": X, "s": np.array([1, 2, 3])}
    (expected,) = onnx.reference.ReferenceEvaluator(model).run(None, inputs)
    outputs = armpy.load(model.SerializeToString(), backends=["CpuRef"]).run(inputs)
    np.testing.assert_array_equal(outputs["y"], expected)
    assert found == [2]
