"""Model files for tables of rows: ``scores = x W`` in several forms, worked by NumPy as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.graph.network import Network
from armpy.ops import FullyConnected
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.checkout import ROOT
from armpy_tools.tflite_writer.tflite import write_tflite

WIDTH, CLASSES = 6, 3
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"


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
    net = Network()
    info = TensorInfo((rows, width), DataType.FLOAT32)
    value = net.input("x", info, default_shape=(rows or 1, width))
    product = net.add(FullyConnected(), value, net.constant(weights(width, classes)), name="scores")
    net.output("scores", product)
    write_tflite(net.build(), path)
    return path
