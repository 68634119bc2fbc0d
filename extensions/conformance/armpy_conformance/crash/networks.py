"""The networks that crash cases run, in any size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Convolution2d,
    ElementwiseBinary,
    FullyConnected,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Reshape,
    Softmax,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

SMALL, LARGE, ZERO = 2, 4096, 0
"""Batches: for many executions, for inputs of some 16 MiB, and of no element."""

_DEPTH = 1024
"""Elements of one image: 16 by 16 by 4."""

_SCALE = 0.05

Builder = Callable[[int], Graph]
"""Makes a network for a batch of images."""


def _info(batch: int, shape: tuple[int, ...], data_type: DataType) -> TensorInfo:
    """A tensor of real numbers between about -6 and 6."""
    quantization = Quantization((_SCALE,), (0,)) if data_type.is_quantized else None
    return TensorInfo((batch, *shape), data_type, quantization)


def _weights(net: Network, shape: tuple[int, ...], data_type: DataType) -> Value:
    """Weights that depend on nothing but their shape."""
    random = np.random.default_rng(sum(shape))
    if data_type.is_quantized:
        elements: Array = random.integers(-20, 21, shape, np.int8)
        quantization = Quantization((0.01,), (0,))
        return net.constant(elements, data_type=data_type, quantization=quantization)
    return net.constant(random.uniform(-0.2, 0.2, shape).astype(np.float32))


def _sum(batch: int, data_type: DataType) -> Graph:
    """``x + x_2``."""
    net = Network("sum")
    info = _info(batch, (_DEPTH,), data_type)
    add = ElementwiseBinary(BinaryOperation.ADD)
    values = net.input("x", info), net.input("x_2", info)
    net.output("y", *net.add_layer(add, values, outputs=[info]).outputs)
    return net.build()


def _activation(batch: int, data_type: DataType) -> Graph:
    """``max(x, 0)``."""
    net = Network("activation")
    info = _info(batch, (_DEPTH,), data_type)
    operation = Activation(ActivationFunction.RELU)
    net.output("y", *net.add_layer(operation, [net.input("x", info)], outputs=[info]).outputs)
    return net.build()


def _products(batch: int, data_type: DataType) -> Graph:
    net = Network("products")
    x = net.input("x", _info(batch, (_DEPTH,), data_type))
    weights = _weights(net, (16, _DEPTH), data_type)
    outputs = [_info(batch, (16,), data_type)]
    net.output("y", *net.add_layer(FullyConnected(), [x, weights], outputs=outputs).outputs)
    return net.build()


def _pooling(batch: int, data_type: DataType) -> Graph:
    """The largest of each four pixels."""
    net = Network("pooling")
    x = net.input("x", _info(batch, (16, 16, 4), data_type))
    operation = Pooling2d(PoolingAlgorithm.MAX, pool_size=(2, 2), stride=(2, 2))
    outputs = [_info(batch, (8, 8, 4), data_type)]
    net.output("y", *net.add_layer(operation, [x], outputs=outputs).outputs)
    return net.build()


def _classifier(batch: int, data_type: DataType) -> Graph:
    """Convolution, activation, pooling, matrix product, exponentials: a small classifier."""
    net = Network("classifier")
    value = net.input("x", _info(batch, (16, 16, 4), data_type))
    weights = _weights(net, (8, 3, 3, 4), data_type)
    bits = [
        (Convolution2d(padding=Padding.SAME), [weights], (16, 16, 8)),
        (Activation(ActivationFunction.RELU), [], (16, 16, 8)),
        (Pooling2d(PoolingAlgorithm.AVERAGE, pool_size=(4, 4), stride=(4, 4)), [], (4, 4, 8)),
        (Reshape((batch, 128)), [], (128,)),
        (FullyConnected(), [_weights(net, (10, 128), data_type)], (10,)),
    ]
    for operation, constants, shape in bits:
        outputs = [_info(batch, shape, data_type)]
        (value,) = net.add_layer(operation, [value, *constants], outputs=outputs).outputs
    if data_type.is_quantized:
        info = TensorInfo((batch, 10), data_type, Quantization((1 / 256,), (-128,)))
    else:
        info = _info(batch, (10,), data_type)
    net.output("y", *net.add_layer(Softmax(), [value], outputs=[info]).outputs)
    return net.build()


_KINDS: dict[str, Callable[[int, DataType], Graph]] = {
    "sum": _sum,
    "activation": _activation,
    "products": _products,
    "pooling": _pooling,
    "classifier": _classifier,
}
_TYPES = (DataType.FLOAT32, DataType.QASYMM_S8)


def builders() -> dict[str, Builder]:
    """Builders of the networks for a batch, by name and type."""

    def of(make: Callable[[int, DataType], Graph], data_type: DataType) -> Builder:
        return lambda batch: make(batch, data_type)

    return {
        f"{name}/{data_type.name}": of(make, data_type)
        for data_type in _TYPES
        for name, make in _KINDS.items()
    }


def random_feeds(graph: Graph, random: np.random.Generator) -> dict[str, Array]:
    """Inputs of a network, by name."""
    feeds: dict[str, Array] = {}
    for value in graph.inputs:
        info = value.info
        if info.data_type.is_quantized:
            feeds[value.name] = random.integers(-128, 128, info.known_shape, np.int8)
        else:
            feeds[value.name] = random.uniform(-2, 2, info.known_shape).astype(np.float32)
    return feeds
