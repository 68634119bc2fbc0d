"""Model files for tables of rows: ``scores = x W`` in several forms, worked by NumPy as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_testing.models.tflite_writer import TfliteModel

WIDTH, CLASSES = 6, 3


def weights(width: int = WIDTH, classes: int = CLASSES) -> npt.NDArray[np.float32]:
    """Small whole numbers, whose sums no order of adding changes."""
    values = np.random.default_rng(7).integers(-4, 5, (classes, width))
    return values.astype(np.float32)


def scores(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Answers to rows."""
    answers: npt.NDArray[Any] = x @ weights().T
    return answers


def write_row_model(
    path: Path, rows: int | None, width: int = WIDTH, classes: int = CLASSES
) -> Path:
    """Write a model of so many rows; None leaves them open."""
    model = TfliteModel()
    graph = model.subgraph()
    signature = (-1, width) if rows is None else None
    answers_signature = (-1, classes) if rows is None else None
    x = graph.tensor("x", (rows or 1, width), "FLOAT32", shape_signature=signature)
    kernel = graph.tensor("weights", (classes, width), "FLOAT32", data=weights(width, classes))
    answers = graph.tensor(
        "scores", (rows or 1, classes), "FLOAT32", shape_signature=answers_signature
    )
    graph.operator("FULLY_CONNECTED", [x, kernel], [answers], options={})
    graph.inputs(x)
    graph.outputs(answers)
    path.write_bytes(model.to_bytes())
    return path
