"""Slices by a loop's counter, against ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
import onnx.parser
import onnx.reference

import armpy
from armpy_testing.models.onnx_texts import HEAD

_LOOP = """graph (float[62, 62] x) => (float z) {
  n = Constant <value_int = 60> ()
  t = Constant <value = bool {1}> ()
  zero = Constant <value = int64[1] {0}> ()
  axes = Constant <value = int64[1] {AXIS}> ()
  z = Loop (n, t) <body = b (int64 i, bool go) => (bool on, float[1, 1] row) {
    first = Constant <value_int = FIRST> ()
    count = Constant <value_int = COUNT> ()
    begin = Add (first, i)
    end = Add (begin, count)
    starts = Unsqueeze (begin, zero)
    ends = Unsqueeze (end, zero)
    part = Slice (x, starts, ends, axes)
    all = Mul (part, part)
    row = ReduceSum <keepdims = 1> (all)
    on = Identity (go)
  }>
}"""


@pytest.mark.parametrize(
    ("axis", "first", "count", "is_inside"),
    [(0, 0, 1, True), (-1, 2, 1, True), (1, 0, 3, True), (0, 1, 3, False), (1, -1, 2, False)],
)
def test_slices_inside_a_tensor_have_a_known_shape(
    axis: int, first: int, count: int, is_inside: bool
) -> None:
    """Those that leave the tensor, or count from its end, are slices as before."""
    text = _LOOP.replace("AXIS", str(axis)).replace("FIRST", str(first))
    model = onnx.parser.parse_model(HEAD + text.replace("COUNT", str(count)))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.random.default_rng(1).standard_normal((62, 62)).astype(np.float32)
    (expected,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    # On a busy machine the loop may take longer than the usual limit.
    runtime = armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"], loop_timeout_s=None))
    loaded = armpy.load(model.SerializeToString(), runtime=runtime)
    np.testing.assert_allclose(
        loaded.run({"x": x})["z"].reshape(expected.shape), expected, rtol=1e-5
    )
    network = loaded.runtime.get_network(loaded.network_id).optimized
    assert network is not None
    loops = [layer for layer in network.graph.layers if layer.operation.name == "While"]
    assert is_inside == any(layer.operation.body_graph.is_fully_shaped for layer in loops)  # type: ignore[attr-defined]
