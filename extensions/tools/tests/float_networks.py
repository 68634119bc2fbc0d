"""Small float networks that tests quantise, and data for them."""

import numpy as np

from armpy import DataType, Network, TensorInfo, ops
from armpy.graph import Graph, Value
from armpy.ops.activations import FusedActivation
from armpy.ops.shapes import Padding

FLOATS = DataType.FLOAT32


def add_convolution(
    net: Network,
    value: Value,
    generator: np.random.Generator,
    channels: int,
    name: str,
    activation: FusedActivation = FusedActivation.RELU,
) -> Value:
    """A 3x3 convolution with weights of chance."""
    depth = value.info.known_shape[-1]
    weights = generator.normal(0, 0.3, (channels, 3, 3, depth)).astype(np.float32)
    bias = generator.normal(0, 0.2, channels).astype(np.float32)
    return net.add(
        ops.Convolution2d(padding=Padding.SAME, activation=activation),
        value,
        net.constant(weights, name=f"{name}/weights"),
        net.constant(bias, name=f"{name}/bias"),
        name=name,
    )


def add_classes(net: Network, value: Value, generator: np.random.Generator, classes: int) -> Value:
    """Mean over the image, a fully connected layer, softmax."""
    value = net.add(ops.Reduce(ops.ReduceOperation.MEAN, axes=(1, 2)), value, name="mean")
    weights = generator.normal(0, 0.5, (classes, value.info.known_shape[-1])).astype(np.float32)
    value = net.add(ops.FullyConnected(), value, net.constant(weights), name="logits")
    return net.add(ops.Softmax(), value, name="scores")


def image_network() -> Graph:
    """Convolutions with a residual sum and a joined branch, classified."""
    generator = np.random.default_rng(7)
    net = Network("image")
    image = net.input("image", TensorInfo((1, 8, 8, 3), FLOATS))
    first = add_convolution(net, image, generator, 6, "first")
    second = add_convolution(net, first, generator, 6, "second", FusedActivation.NONE)
    total = net.add(
        ops.ElementwiseBinary(activation=FusedActivation.RELU), first, second, name="sum"
    )
    third = add_convolution(net, total, generator, 4, "third", FusedActivation.RELU6)
    gate = net.add(ops.Activation(ops.ActivationFunction.SIGMOID), total, name="gate")
    joined = net.add(ops.Concat(3), third, gate, name="joined")
    pooled = net.add(ops.Pooling2d(pool_size=(2, 2), stride=(2, 2)), joined, name="pooled")
    net.output("scores", add_classes(net, pooled, generator, 5))
    return net.build()


def images(count: int, seed: int = 1) -> list[dict[str, object]]:
    """Samples of `image_network`."""
    generator = np.random.default_rng(seed)
    return [
        {"image": generator.normal(0, 1, (1, 8, 8, 3)).astype(np.float32)} for _ in range(count)
    ]
