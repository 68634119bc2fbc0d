"""Detection against LiteRT's kernel, which leaves garbage in rows that it does not fill."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from flatbuffers import flexbuffers

from armpy.ops import (
    DetectionPostProcess,
)
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_testing.litert_oracle import litert_or_skip, run_litert
from armpy_testing.models.tflite_writer import TfliteModel
from armpy_testing.run_operation import declared, run_operation, tensor

litert_or_skip()

NUM_CASES = 100


@pytest.fixture(name="rng")
def make_rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(11)


def flexible(options: Mapping[str, float]) -> bytes:
    """Options of a custom operator."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in options.items():
            if isinstance(value, bool):
                builder.Bool(name, value)
            elif isinstance(value, int):
                builder.Int(name, value)
            else:
                builder.Float(name, value)
    return bytes(builder.Finish())


def detections(operation: DetectionPostProcess, operands: list[Array]) -> list[Array]:
    """LiteRT's answer."""
    model = TfliteModel()
    graph = model.subgraph()
    encodings, scores, anchors = operands
    inputs = [
        graph.tensor("encodings", encodings.shape),
        graph.tensor("scores", scores.shape),
        graph.tensor("anchors", anchors.shape, data=anchors),
    ]
    outputs = [graph.tensor(f"output_{i}", None) for i in range(4)]
    options = {
        "max_detections": operation.max_detections,
        "max_classes_per_detection": operation.max_classes_per_detection,
        "detections_per_class": operation.detections_per_class,
        "use_regular_nms": operation.use_regular_nms,
        "nms_score_threshold": operation.nms_score_threshold,
        "nms_iou_threshold": operation.nms_iou_threshold,
        "num_classes": operation.num_classes or 0,
        "y_scale": operation.scale_y,
        "x_scale": operation.scale_x,
        "h_scale": operation.scale_h,
        "w_scale": operation.scale_w,
    }
    graph.operator(
        "CUSTOM",
        inputs,
        outputs,
        custom_code="TFLite_Detection_PostProcess",
        custom_options=flexible(options),
    )
    graph.inputs(*inputs[:2])
    graph.outputs(*outputs)
    return run_litert(model.to_bytes(), [encodings, scores])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("regular", [False, True])
def test_detection_post_process(rng: np.random.Generator, regular: bool) -> None:
    for _ in range(NUM_CASES):
        num_anchors, num_classes = int(rng.integers(1, 30)), int(rng.integers(1, 5))
        columns = num_classes + int(rng.integers(0, 2))
        places = np.concatenate(
            [rng.random((num_anchors, 2)), rng.uniform(0.1, 0.6, (num_anchors, 2))], axis=1
        )
        operands = [
            np.asarray(array, np.float32)
            for array in (
                rng.standard_normal((1, num_anchors, 4)),
                rng.random((1, num_anchors, columns)),
                places,
            )
        ]
        operation = DetectionPostProcess(
            max_detections=int(rng.integers(1, 12)),
            max_classes_per_detection=int(rng.integers(1, 4)),
            detections_per_class=int(rng.integers(1, 8)),
            nms_score_threshold=float(np.float32(rng.uniform(0, 0.5))),
            nms_iou_threshold=float(np.float32(rng.uniform(0.1, 0.9))),
            num_classes=num_classes,
            use_regular_nms=regular,
            scale_y=10.0,
            scale_x=10.0,
            scale_h=5.0,
            scale_w=5.0,
        )
        actual = run_operation(
            operation, list(map(tensor, operands)), [declared(DataType.FLOAT32)] * 4
        )
        expected = detections(operation, operands)
        assert actual[3].tolist() == expected[3].tolist()
        written = _written_rows(operation, int(actual[3][0]))
        for a, e in zip(actual[:3], expected[:3], strict=True):
            assert a.shape == e.shape
            np.testing.assert_allclose(a[:, written], e[:, written], rtol=1e-5, atol=1e-5)


def _written_rows(operation: DetectionPostProcess, count: int) -> list[int]:
    """Rows that LiteRT writes; it leaves garbage in the others."""
    if operation.use_regular_nms:
        return list(range(count))
    room = operation.max_classes_per_detection
    per_box = min(room, operation.num_classes or 0)
    return [box * room + i for box in range(count) for i in range(per_box)]
