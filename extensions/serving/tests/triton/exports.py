"""Exports of a small model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from armpy import DataType, Model, Network, TensorInfo, ops
from armpy_serving.triton.config import TritonOptions
from armpy_serving.triton.export import TritonExport, export_model

REAL = TensorInfo((1, 4), DataType.FLOAT32)


def network(info: TensorInfo, name: str = "x", output: str = "y") -> Model:
    """A model of one addition."""
    net = Network()
    value = net.input(name, info)
    net.output(output, net.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), value, value))
    return Model(net)


def export(model: Model, repository: Path, **options: Any) -> str:
    """Export a model and close it; the text of its configuration."""
    triton_options = TritonOptions("m", **options)
    with model:
        export_model(model, repository, TritonExport(triton_options, force=True))
    return (repository / "m" / "config.pbtxt").read_text()


def settings_of(place: Path, version: int = 1) -> dict[str, Any]:
    """Settings of a version's instances."""
    document: dict[str, Any] = json.loads((place / str(version) / "armpy.json").read_text())
    return document["settings"]  # type: ignore[no-any-return]
