"""Finds where ONNX Runtime itself gives wrong sums of 8-bit products.

Nothing can be held to it there. Without instructions for dot products of bytes (VNNI), its kernels
for unsigned inputs and signed weights add pairs of products in 16 bits, and these saturate.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest


def skip_where_onnx_runtime_saturates() -> None:
    """Skip a test on processors where ONNX Runtime's products of bytes saturate."""
    if _saturates():
        pytest.skip("ONNX Runtime's 8-bit products saturate on this processor")


@cache
def _saturates() -> bool:
    """Whether ONNX Runtime multiplies a row of the largest bytes wrongly."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    helper, count = onnx.helper, 64
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    x = helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, [1, count])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [1, count])
    weights = onnx.numpy_helper.from_array(np.full((count, count), 127, np.int8), "w")
    graph = helper.make_graph([node], "bytes", [x], [y], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    file = model.SerializeToString()
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {"x": np.full((1, count), 255, np.uint8)})
    return bool(np.any(got != 255 * 127 * count))
