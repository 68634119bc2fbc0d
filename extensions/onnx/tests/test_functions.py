"""Functions: nodes that are written out as other nodes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
import onnx.parser

import armpy
from armpy.errors import UnsupportedOperatorError
from armpy_testing.models.onnx_texts import SCALED

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


def _model(text: str) -> onnx.ModelProto:
    """A model in ONNX's textual form."""
    return onnx.parser.parse_model(text)


def _run(text: str) -> tuple[np.ndarray, ...]:
    """Outputs of a model on CpuRef."""
    model = armpy.load(_model(text).SerializeToString(), backends=["CpuRef"])
    return tuple(model.run({"x": X}).values())


def test_functions_of_the_file_are_written_out_with_attributes_and_their_defaults() -> None:
    """A reference stands for the caller's attribute, or for the function's default."""
    y, z = _run(SCALED)
    np.testing.assert_allclose(y, (3 * X) ** 2, rtol=1e-6)
    np.testing.assert_allclose(z, (0.5 * (3 * X) ** 2) ** 2, rtol=1e-6)


def test_layers_of_two_calls_have_names_of_their_own() -> None:
    """No two layers share a name, and each begins with the node that calls."""
    loaded = armpy.load(_model(SCALED).SerializeToString(), backends=["CpuRef"])
    names = [layer.name for layer in loaded.graph.layers]
    assert len(set(names)) == len(names)
    assert {name.split("/")[0] for name in names} == {"Scaled_0", "Scaled_1"}


def test_a_body_is_read_in_the_operator_set_that_it_is_written_in() -> None:
    """Softmax of opset 12 flattens from its axis on; that of opset 13 does not."""
    text = """
    <ir_version: 9, opset_import: ["" : 17, "own" : 1]>
    graph (float[2, 3, 4] x) => (float[2, 3, 4] y, float[2, 3, 4] z) {
      y = own.Old (x)
      z = Softmax <axis = 1> (x)
    }
    <domain: "own", opset_import: ["" : 12]>
    Old (a) => (b) { b = Softmax <axis = 1> (a) }
    """
    y, z = _run(text)
    e = np.exp(X)
    np.testing.assert_allclose(y, e / e.sum((1, 2), keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(z, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_inputs_and_outputs_may_be_left_out() -> None:
    """What a call does not give is left out in the body, too."""
    text = """
    <ir_version: 9, opset_import: ["" : 17, "own" : 1]>
    graph (float[2, 3, 4] x) => (float[2, 3, 4] y) {
      start = Constant <value_ints = [1]> ()
      end = Constant <value_ints = [9]> ()
      y = own.Part (x, start, end)
    }
    <domain: "own", opset_import: ["" : 17]>
    Part (a, start, end, axes, steps) => (b, c) {
      b = Slice (a, start, end, axes, steps)
      c = Shape (a)
    }
    """
    np.testing.assert_array_equal(_run(text)[0], X[1:])


def test_functions_of_unknown_shapes_wait_like_other_nodes() -> None:
    """Bodies are written out at once, and their nodes converted when shapes are known."""
    text = SCALED.replace("float[2, 3, 4] x", "float[n, m, k] x")
    np.testing.assert_allclose(_run(text)[0], (3 * X) ** 2, rtol=1e-6)


def test_operators_inside_functions_that_armpy_does_not_have_are_all_named() -> None:
    """One error counts them, whatever calls them."""
    text = """
    <ir_version: 9, opset_import: ["" : 17, "own" : 1, "other" : 1]>
    graph (float[2] x) => (float[2] y, float[2] z) {
      y = own.F (x)
      z = other.Missing (y)
    }
    <domain: "own", opset_import: ["" : 17, "other" : 1]>
    F (a) => (b) { c = other.Missing (a) b = other.Strange (c) }
    """
    with pytest.raises(
        UnsupportedOperatorError, match=r"other\.Missing \(2\), other\.Strange"
    ) as e:
        armpy.load(_model(text).SerializeToString())
    assert dict(e.value.operators) == {"other.Missing": 2, "other.Strange": 1}
