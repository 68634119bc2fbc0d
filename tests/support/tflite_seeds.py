"""Small sound .tflite files to damage: operators, unusual storage, custom operators."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from flatbuffers import flexbuffers

from armpy_testing.models.tflite_writer import TfliteModel
from tests.differential.tflite_samples import FAMILIES, facts
from tests.differential.tflite_samples.making import Draw
from tests.support.tflite_cases import operator_models

_RARE = ("COMPLEX64", "sparse", "INT4")
"""Kinds of elements that have code of their own."""


@cache
def small_files() -> tuple[bytes, ...]:
    """One file per operator, those of rare kinds, and others with code of their own."""
    cases = (case.model().to_bytes() for case in operator_models())
    return (*cases, *_samples(), _detection(), _external())


def _samples() -> Iterator[bytes]:
    """A sample of each operator that LiteRT runs, and one of each rare kind."""
    runs = facts()
    for family in FAMILIES:
        for operators, kinds, make in family.FAMILY:
            for operator in operators:
                run = [kind for kind in kinds if kind in runs.get(operator, ())]
                rare = (kind for kind in run[1:] if any(word in kind for word in _RARE))
                for kind in (*run[:1], *rare):
                    first_sample = next(make(operator, Draw(operator, kind)))
                    yield first_sample.sample(operator, kind, 0).file


def _detection() -> bytes:
    """A detector's last operator, which is a custom one."""
    numbers = {
        "max_detections": 3,
        "max_classes_per_detection": 1,
        "num_classes": 2,
        "nms_score_threshold": 0.1,
        "nms_iou_threshold": 0.5,
        **dict.fromkeys(("y_scale", "x_scale", "h_scale", "w_scale"), 1.0),
    }
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in numbers.items():
            builder.Key(name)
            builder.Add(value)
    model = TfliteModel()
    graph = model.subgraph()
    shapes = ((1, 3, 4), (1, 3, 3), (3, 4))
    inputs = [graph.tensor(f"x{i}", shape) for i, shape in enumerate(shapes)]
    outputs = [graph.tensor(f"y{i}", None) for i in range(4)]
    code, options = "TFLite_Detection_PostProcess", bytes(builder.Finish())
    graph.operator("CUSTOM", inputs, outputs, custom_code=code, custom_options=options)
    graph.inputs(*inputs)
    graph.outputs(*outputs)
    return model.to_bytes()


def _external() -> bytes:
    """Constants after the flatbuffer."""
    model = TfliteModel()
    graph = model.subgraph()
    numbers = np.arange(6, dtype=np.float32).tobytes()
    x, y = graph.tensor("x", (2, 3)), graph.tensor("y", (2, 3))
    buffers = [model.buffer(numbers, external=True) for _ in range(2)]
    first, second = (
        graph.tensor(f"c{i}", (2, 3), buffer=buffer) for i, buffer in enumerate(buffers)
    )
    between = graph.tensor("z", (2, 3))
    graph.operator("ADD", [x, first], [between], {})
    graph.operator("MUL", [between, second], [y], {})
    graph.inputs(x)
    graph.outputs(y)
    return model.to_bytes()
