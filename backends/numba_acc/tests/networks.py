"""Networks for tests of the runtime."""

from __future__ import annotations

import numpy as np
from armpy_numba_acc import NumbaBackend

from armpy import Network, Runtime, RuntimeOptions
from armpy.ops import Activation, Convolution2d, FullyConnected, Padding
from armpy.ops.operation import Array
from armpy.plugins import BackendRegistry
from armpy.tensor import TensorInfo
from armpy.types import DataType


def runtime_of(num_threads: int | None = None, **options: object) -> Runtime:
    """A runtime with NumbaAcc alone."""
    registry = BackendRegistry()
    registry.register("NumbaAcc", NumbaBackend)
    backend_options = {} if num_threads is None else {"NumbaAcc": {"num_threads": num_threads}}
    return Runtime(RuntimeOptions(registry=registry, backend_options=backend_options, **options))  # type: ignore[arg-type]  # any option


def convolutions(size: int = 48, channels: int = 40, num_layers: int = 4) -> Network:
    """Some convolutions one after the other; by default worth several threads."""
    random = np.random.default_rng(0)
    net = Network()
    value = net.input("x", TensorInfo((1, size, size, channels), DataType.FLOAT32))
    for _ in range(num_layers):
        weights = random.normal(0, 0.05, (channels, 5, 3, channels)).astype(np.float32)
        value = net.add(Convolution2d(padding=Padding.SAME), value, net.constant(weights))
        value = net.add(Activation(), value)
    net.output("y", value)
    return net


def small() -> Network:
    """A network that is not worth more than one thread."""
    net = Network()
    value = net.input("x", TensorInfo((1, 8), DataType.FLOAT32))
    net.output("y", net.add(FullyConnected(), value, net.constant(np.eye(8, dtype=np.float32))))
    return net


def image(size: int = 48, channels: int = 40, seed: int = 1) -> dict[str, Array]:
    """An input for `convolutions`."""
    shape = (1, size, size, channels)
    return {"x": np.random.default_rng(seed).normal(size=shape).astype(np.float32)}
