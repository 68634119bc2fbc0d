"""Older forms of operators that move or reduce elements agree with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime
from onnx import helper, numpy_helper

import armpy
from armpy.ops.operation import Array

RUNTIME = armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"]))

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
IMAGE = np.arange(1 * 8 * 2 * 3, dtype=np.float32).reshape(1, 8, 2, 3)
ONES = X[:, :1].copy()


def ints(*numbers: int) -> Array:
    """A vector of int64."""
    return np.array(numbers, np.int64)


def number(value: float) -> Array:
    """A scalar of float32."""
    return np.array(value, np.float32)


REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"),
    *("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"),
)

TABLE: Sequence[tuple[str, int, Mapping[str, Any], Sequence[Array | None]]] = (
    ("Reshape", 7, {}, [X, ints(0, -1)]),
    ("Reshape", 14, {"allowzero": 1}, [X[:, :0], ints(3, 0)]),
    ("Reshape", 13, {}, [X[:, :0], ints(0, 0, 7)]),
    ("Flatten", 7, {"axis": 2}, [X]),
    ("Flatten", 7, {"axis": 0}, [X]),
    ("Flatten", 13, {"axis": -1}, [X]),
    ("Squeeze", 7, {"axes": [1]}, [ONES]),
    ("Squeeze", 11, {}, [ONES]),
    ("Squeeze", 13, {}, [ONES, ints(-2)]),
    ("Unsqueeze", 7, {"axes": [0, 3]}, [X]),
    ("Unsqueeze", 11, {"axes": [-1, 0]}, [X]),
    ("Unsqueeze", 13, {}, [X, ints(4, 1)]),
    ("Expand", 8, {}, [ONES, ints(3, 1)]),
    ("Transpose", 7, {}, [X]),
    ("Transpose", 13, {"perm": [1, 2, 0]}, [X]),
    ("Tile", 7, {}, [X, ints(1, 2, 3)]),
    ("Concat", 7, {"axis": 1}, [X, ONES, X]),
    ("Concat", 11, {"axis": -2}, [X, ONES]),
    ("Split", 7, {"axis": 2}, [X]),
    ("Split", 7, {"axis": 2, "split": [1, 3]}, [X]),
    ("Split", 11, {"axis": -1}, [X]),
    ("Split", 13, {"axis": 1}, [X, ints(1, 2)]),
    ("Split", 18, {"axis": 1, "num_outputs": 2}, [X]),
    ("Slice", 7, {"starts": [1, -3], "ends": [2, -1], "axes": [1, 2]}, [X]),
    ("Slice", 9, {"starts": [0, 1], "ends": [1, 100]}, [X]),
    ("Slice", 10, {}, [X, ints(-1), ints(-100), ints(2), ints(-2)]),
    ("Slice", 13, {}, [X, ints(1, 0), ints(2**62, 9), ints(-1, 0)]),
    ("Slice", 13, {}, [X, ints(3), ints(-(2**63)), ints(2), ints(-1)]),
    ("Pad", 7, {"pads": [0, 1, 2, 1, 0, -1], "value": 2.5}, [X]),
    ("Pad", 7, {"pads": [0, 1, 2, 0, 0, 3], "mode": "reflect"}, [X]),
    ("Pad", 7, {"pads": [1, 1, 5, 0, 0, 3], "mode": "edge"}, [X]),
    ("Pad", 11, {}, [X, ints(0, 0, -2, 0, 1, 1), number(-1)]),
    ("Pad", 18, {"mode": "edge"}, [X, ints(2, 1), None, ints(-1)]),
    ("Pad", 19, {"mode": "wrap"}, [X, ints(2, 4), None, ints(2)]),
    ("Gather", 7, {"axis": 1}, [X, ints(2, 0)]),
    ("Gather", 11, {"axis": -1}, [X, ints(-1, -4)]),
    ("GatherElements", 11, {"axis": -1}, [X, np.array([[[3], [-1]]])]),
    ("GatherND", 11, {}, [X, np.array([[1, -1], [0, 2]])]),
    ("GatherND", 12, {"batch_dims": 1}, [X, np.array([[1], [0]])]),
    ("Scatter", 9, {"axis": 1}, [X, np.array([[[2], [0]]]), X[:1, :2, :1] + 5]),
    ("ScatterElements", 11, {"axis": -1}, [X, np.array([[[-1]]]), X[:1, :1, :1] + 5]),
    ("ScatterElements", 18, {"reduction": "max"}, [X, np.array([[[1, 1]]]), X[:1, :1, :2] + 1]),
    ("ScatterND", 11, {}, [X, np.array([[1], [0]]), X[::-1].copy()]),
    ("ScatterND", 16, {"reduction": "mul"}, [X, np.array([[1], [1]]), X]),
    ("ConstantOfShape", 9, {}, [ints(2, 3)]),
    ("EyeLike", 9, {"k": -1}, [X[0]]),
    ("Range", 11, {}, [number(3), number(-2), number(-0.5)]),
    ("OneHot", 9, {"axis": 0}, [ints(1, -1, 7), ints(3), X[0, 0, :2]]),
    ("Trilu", 14, {"upper": 0}, [X, np.array(-1)]),
    ("TopK", 7, {"k": 2, "axis": 1}, [X]),
    ("TopK", 10, {"axis": 0}, [X, ints(1)]),
    ("TopK", 11, {"axis": -2, "largest": 0}, [X, ints(3)]),
    ("CumSum", 11, {"exclusive": 1, "reverse": 1}, [X, np.array(-2, np.int32)]),
    ("Compress", 9, {"axis": 1}, [X, np.array([True, False, True])]),
    ("Compress", 11, {}, [X, np.array([False, True, True])]),
    ("NonZero", 9, {}, [np.array([[1, 0], [0, 2]], np.float32)]),
    ("ReverseSequence", 10, {"batch_axis": 0, "time_axis": 1}, [X, ints(3, 2)]),
    ("DepthToSpace", 7, {"blocksize": 2}, [IMAGE]),
    ("DepthToSpace", 11, {"blocksize": 2, "mode": "CRD"}, [IMAGE]),
    ("SpaceToDepth", 7, {"blocksize": 2}, [IMAGE[..., :2].copy()]),
    ("Hardmax", 7, {}, [X]),
    ("Hardmax", 11, {"axis": -1}, [X]),
    ("Hardmax", 13, {}, [X]),
    ("ArgMax", 7, {"axis": 1, "keepdims": 0}, [X]),
    ("ArgMin", 12, {"axis": -1, "select_last_index": 1}, [np.round(X)]),
    ("Unique", 11, {"sorted": 0}, [np.round(X)]),
    *((kind, 7, {"axes": [0, 2], "keepdims": 0}, [X]) for kind in REDUCTIONS),
    *((kind, 7, {}, [X]) for kind in REDUCTIONS),
    *((kind, 11, {"axes": [-1]}, [X]) for kind in REDUCTIONS),
    *((kind, 18, {"noop_with_empty_axes": 1}, [X]) for kind in REDUCTIONS[:5]),
    *((kind, 18, {"keepdims": 0}, [X, ints(1, -1)]) for kind in REDUCTIONS),
)
"""Operator, version of the operator set, attributes, inputs."""


def model_of(
    kind: str, version: int, attributes: Mapping[str, Any], inputs: Sequence[Array | None]
) -> bytes:
    """A model of one node; what follows the first input is constant."""
    names = ["" if array is None else f"i{i}" for i, array in enumerate(inputs)]
    schema = onnx.defs.get_schema(kind, version)
    count = 2 if kind == "Split" else min(len(schema.outputs), 4)
    outputs = [f"o{i}" for i in range(count)]
    first = helper.np_dtype_to_tensor_dtype(inputs[0].dtype)  # type: ignore[union-attr]
    graph = helper.make_graph(
        [helper.make_node(kind, names, outputs, "node", **attributes)],
        "one",
        [helper.make_tensor_value_info("i0", first, inputs[0].shape)],  # type: ignore[union-attr]
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [
            numpy_helper.from_array(array, name)
            for name, array in zip(names[1:], inputs[1:], strict=True)
            if array is not None
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    model.ir_version = 8
    inferred = onnx.shape_inference.infer_shapes(model)
    for value in inferred.graph.output:
        if not value.type.HasField("tensor_type"):  # a number of elements that depends on them
            value.CopyFrom(helper.make_tensor_value_info(value.name, first, [None] * 3))
    return bytes(inferred.SerializeToString())


@pytest.mark.parametrize(
    ("kind", "version", "attributes", "inputs"),
    TABLE,
    ids=[f"{kind}-{version}-{number}" for number, (kind, version, *_) in enumerate(TABLE)],
)
def test_nodes_of_each_version_agree_with_onnx_runtime(
    kind: str, version: int, attributes: Mapping[str, Any], inputs: Sequence[Array | None]
) -> None:
    file = model_of(kind, version, attributes, inputs)
    feeds = {"i0": inputs[0]}
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    right = session.run(None, feeds)
    outputs = armpy.load(file, front_end="onnx", runtime=RUNTIME).run(feeds)
    for actual, expected in zip(outputs.values(), right, strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
