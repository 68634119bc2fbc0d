"""Instances of models without a server: its arguments and requests are imitated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from armpy import DataType, Network, TensorInfo, ops

from .triton_utilities import InferenceRequest, Tensor


def arguments(repository: Path, max_batch: int, version: int = 1) -> dict[str, str]:
    """The server's arguments of an instance."""
    written = json.loads((repository / "m" / "1" / "armpy.json").read_text())["config"]
    config = (
        {"name": "m", "instance_group": [{"count": 1}]} | written | {"max_batch_size": max_batch}
    )
    return {
        "model_config": json.dumps(config),
        "model_repository": str(repository / "m"),
        "model_version": str(version),
        "model_name": "m",
        "model_instance_name": "m_0",
    }


def doubling(*shape: int | None, data_type: DataType = DataType.FLOAT32) -> Network:
    """A network that doubles its input."""
    net = Network()
    first = tuple(n or 1 for n in shape)
    value = net.input("x", TensorInfo(shape, data_type), default_shape=first)
    net.output("y", net.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), value, value))
    return net


def request(*rows: Sequence[float], **named: Any) -> InferenceRequest:
    """A request of rows."""
    return InferenceRequest([Tensor("x", np.array(rows, np.float32))], **named)


def values(response: Any) -> Any:
    """The first output's elements."""
    assert response.error() is None, response.error().message()
    return response.output_tensors()[0].as_numpy().tolist()
