"""Models that are small, and servers that serve them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from armpy import DataType, Model, Network, Quantization, TensorInfo, ops

from .kserve_server import KServeProcess, kserve_server

ADD = ops.ElementwiseBinary(ops.BinaryOperation.ADD)


def _mixed() -> Network:
    """Doubles floats of open shapes, adds integers, negates flags, and dequantises a scalar."""
    net = Network("mixed")
    value = net.input("x:0", TensorInfo((None, 2), DataType.FLOAT32), default_shape=(1, 2))
    net.output("double", net.add(ADD, value, value))
    number = net.input("n", TensorInfo((3,), DataType.SIGNED32))
    net.output("sum", net.add(ADD, number, number))
    flags = net.input("flags", TensorInfo((2,), DataType.BOOLEAN))
    net.output("not", net.add(ops.ElementwiseUnary(ops.UnaryOperation.LOGICAL_NOT), flags))
    scale = Quantization.per_tensor(0.5, -3)
    quantized = net.input("q", TensorInfo((), DataType.QASYMM_S8, scale))
    net.output("real", net.add(ops.Dequantize(), quantized))
    return net


def _halves() -> Network:
    """Doubles a float16, which gRPC has no typed contents for."""
    net = Network("halves")
    value = net.input("h", TensorInfo((None,), DataType.FLOAT16), default_shape=(1,))
    net.output("y", net.add(ADD, value, value))
    return net


def _slow() -> Network:
    """Computes for about a second, in layers of some milliseconds each."""
    net = Network("slow")
    value = net.input("x", TensorInfo((1, 1024), DataType.FLOAT32))
    weights = np.eye(1024, dtype=np.float32)
    rows = net.constant(np.zeros((512, 1024), np.float32))
    value = net.add(ADD, value, rows)
    for _ in range(60):
        value = net.add(ops.FullyConnected(), value, net.constant(weights))
    net.output("y", value)
    return net


@pytest.fixture(scope="session")
def small_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small models."""
    folder = tmp_path_factory.mktemp("models")
    for network in (_mixed(), _halves(), _slow()):
        with Model(network) as model:
            model.save(folder / f"{network.name}.armpy")
    return folder


@pytest.fixture(scope="session")
def server(small_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KServeProcess]:
    """A server of the small models."""
    pytest.importorskip("kserve", reason="kserve is not installed")
    log = tmp_path_factory.mktemp("logs") / "server.log"
    with kserve_server(small_models, log) as running:
        yield running
