"""ONNX models with external data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


def naming_itself(path: Path, weights: np.ndarray) -> Path:
    """Write a model of ``y = x weights`` whose tensor's external data is the model's own file."""
    pytest.importorskip("armpy_onnx")
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnx.parser")
    rows, columns = weights.shape
    text = f"graph (float[1, {rows}] x) => (float[1, {columns}] y) {{ y = MatMul (x, w) }}"
    model = onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 18]>\n' + text)
    # A tensor that no node reads holds the bytes.
    stored = onnx.numpy_helper.from_array(np.ascontiguousarray(weights, np.float32), "stored")
    tensor = onnx.TensorProto(name="w", dims=weights.shape, data_type=onnx.TensorProto.FLOAT)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=path.name)
    offset = tensor.external_data.add(key="offset", value="0" * 8)
    model.graph.initializer.extend([tensor, stored])
    place = model.SerializeToString().index(stored.raw_data)
    # As long as the zeros were, so that nothing moves.
    model.graph.initializer[0].external_data[1].value = f"{place:0{len(offset.value)}}"
    path.write_bytes(model.SerializeToString())
    return path
