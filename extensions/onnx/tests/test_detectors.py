"""Detectors that choose boxes class by class, as exporters write those of torchvision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import ModelProto, TensorProto, helper

import armpy
from armpy_testing.preparations import watch_preparations

NUM_BOXES, NUM_CLASSES, MOST = 40, 3, 12
INTS = TensorProto.INT64


def detector() -> ModelProto:
    """Per class, the best of the boxes whose scores are above a threshold; then suppression."""
    nodes: list[Any] = []  # Any: onnx has no types

    def node(kind: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [f"v{len(nodes)}"], **attributes))
        return f"v{len(nodes) - 1}"

    def numbers(*values: float, kind: int = INTS) -> str:
        tensor = helper.make_tensor("", kind, [len(values)], values)
        return node("Constant", value=tensor)

    parts: list[list[str]] = []
    for label in range(NUM_CLASSES):
        number = node("Constant", value=helper.make_tensor("", INTS, [], [label]))
        row = node("Gather", "scores", number, axis=1)
        places = node("Transpose", node("NonZero", node("Greater", row, "threshold")))
        above, boxes = node("GatherND", row, places), node("GatherND", "boxes", places)
        most = node("Concat", numbers(MOST), node("Shape", above), axis=0)
        count = node("Reshape", node("ReduceMin", most, keepdims=0), numbers(1))
        best, at = f"best{label}", f"at{label}"
        nodes.append(helper.make_node("TopK", [above, count], [best, at]))
        fill = helper.make_tensor("", INTS, [1], [label])
        labels = node("ConstantOfShape", node("Shape", best), value=fill)
        parts.append([best, node("Gather", boxes, at), labels])
    scores, boxes, labels = (node("Concat", *each, axis=0) for each in zip(*parts, strict=True))
    is_empty = node("Equal", node("ReduceProd", node("Shape", boxes), keepdims=0), numbers(0))

    def branch(*made: Any) -> Any:  # Any: onnx has no types
        output = helper.make_tensor_value_info(made[-1].output[0], INTS, [None, 3])
        return helper.make_graph(made, made[-1].output[0], [], [output])

    none = helper.make_node(
        "Constant", [], ["none"], value=helper.make_tensor("", INTS, [0, 3], [])
    )
    axis, axes, limit, overlap = (
        numbers(0), numbers(0, 1), numbers(100), numbers(0.5, kind=TensorProto.FLOAT)
    )  # fmt: skip
    more = [
        helper.make_node("Unsqueeze", [boxes, axis], ["more_boxes"]),
        helper.make_node("Unsqueeze", [scores, axes], ["more_scores"]),
        helper.make_node(
            "NonMaxSuppression", ["more_boxes", "more_scores", limit, overlap], ["some"]
        ),
    ]
    condition = node("Squeeze", is_empty)
    chosen = node("If", condition, then_branch=branch(none), else_branch=branch(*more))
    last = node("Constant", value=helper.make_tensor("", INTS, [], [2]))
    index = node("Gather", chosen, last, axis=1)
    outputs = [node("Gather", values, index) for values in (scores, boxes, labels)]
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "detector",
        [
            helper.make_tensor_value_info("scores", floats, [NUM_BOXES, NUM_CLASSES]),
            helper.make_tensor_value_info("boxes", floats, [NUM_BOXES, 4]),
            helper.make_tensor_value_info("threshold", floats, []),
        ],
        [
            helper.make_tensor_value_info(name, kind, None)
            for name, kind in zip(outputs, (floats, floats, INTS), strict=True)
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_counts_after_the_third_do_not_prepare_the_classes_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared: list[int] = []

    watch_preparations(monkeypatch, lambda graph: prepared.append(len(graph.layers)))
    content = detector().SerializeToString()
    session = onnxruntime.InferenceSession(content)
    model = armpy.load(content, backends=["NumbaAcc", "CpuRef"], num_threads=1)
    random = np.random.default_rng(2)
    corner = random.random((NUM_BOXES, 2), np.float32)
    inputs = {
        "scores": random.random((NUM_BOXES, NUM_CLASSES), np.float32),
        "boxes": np.hstack([corner, corner + random.random((NUM_BOXES, 2), np.float32)]),
    }
    # Below and above `MOST` boxes of each class, and a single one of one class at the end.
    for turn, threshold in enumerate((0.5, 0.55, 0.6, 0.3, 0.9, 0.62, 0.8, 0.71, 0.4, 0.5, 0.95)):
        prepared.clear()
        inputs["threshold"] = np.array(threshold, np.float32)
        for array, expected in zip(
            model.run(inputs).values(), session.run(None, inputs), strict=True
        ):
            np.testing.assert_allclose(array, expected, rtol=1e-6)
        if turn > 2:
            assert max(prepared) < 4 * NUM_CLASSES, turn
