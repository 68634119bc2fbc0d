"""A network of images with everything that such networks have, held against ONNX Runtime."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime as ort

import armpy

from .onnx_graphs import GraphWriter

SHAPE = (2, 3, 64, 64)


class Writer(GraphWriter):
    """Writes layers of networks of images."""

    def weights(self, *shape: int) -> str:
        """Add filters or a matrix that keep the size of elements."""
        scale = np.sqrt(np.prod(shape[1:]))
        return self.constant((self.random.standard_normal(shape) / scale).astype(np.float32))

    def vector(self, length: int) -> str:
        """Add factors, addends, means or variances; all are positive."""
        return self.constant(self.random.uniform(0.5, 1.5, length).astype(np.float32))

    def convolution(self, x: str, before: int, after: int, size: int, stride: int = 1) -> str:
        """Add a convolution and a batch normalisation."""
        kernel, pads = self.weights(after, before, size, size), [size // 2] * 4
        x = self.add("Conv", x, kernel, strides=[stride] * 2, pads=pads)
        return self.add("BatchNormalization", x, *(self.vector(after) for _ in range(4)))

    def residual(self, x: str, before: int, after: int, stride: int) -> str:
        """Add two convolutions, and what comes in."""
        y = self.add("Relu", self.convolution(x, before, after, 3, stride))
        y = self.convolution(y, after, after, 3)
        x = x if stride == 1 else self.convolution(x, before, after, 1, stride)
        return self.add("Relu", self.add("Add", x, y))


@pytest.fixture(scope="module")
def model() -> Any:
    """A network that classifies, and makes a map of classes."""
    net = Writer()
    x = net.add("Relu", net.convolution(net.input("x", *SHAPE), 3, 16, 7, 2))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    b = net.residual(net.residual(x, 16, 16, 1), 16, 32, 2)
    c = net.residual(b, 32, 64, 2)
    pooled = net.add("Flatten", net.add("GlobalAveragePool", c))
    classes = net.add("Gemm", pooled, net.weights(10, 64), net.vector(10), transB=1)
    net.output(net.add("Softmax", classes), "classes", 2, 10)
    d = net.add("Conv", c, net.weights(64, 1, 3, 3), net.vector(64), group=64, pads=[1] * 4)
    d = net.add("Clip", d, *(net.constant(np.float32(bound)) for bound in (0, 6)))
    d = net.add("ConvTranspose", d, net.weights(64, 8, 2, 2), strides=[2, 2], group=4)
    d = net.add("Concat", d, b, axis=1)
    d = net.add("GroupNormalization", d, net.vector(64), net.vector(64), num_groups=8)
    d = net.add("Mul", d, net.add("Sigmoid", d))
    d = net.add("Resize", d, "", net.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear")
    d = net.add("InstanceNormalization", d, net.vector(64), net.vector(64))
    d = net.add("Conv", d, net.weights(8, 64, 1, 1))
    d = net.add("LRN", d, size=3)
    pool = {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}
    net.output(net.add("AveragePool", d, **pool), "map", 2, 8, 16, 16)
    return net.model(21)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
def test_a_network_of_images_is_one_region_and_agrees(model: Any, backend: str) -> None:
    image = np.random.default_rng(1).standard_normal(SHAPE, np.float32)
    data = model.SerializeToString()
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    wanted = session.run(None, {"x": image})

    loaded = armpy.load(data, front_end="onnx", backends=[backend])

    for own, expected in zip(loaded.run({"x": image}).values(), wanted, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    placement = loaded.placement
    assert placement is not None
    assert {layer.backend for layer in placement.layers} == {backend}
    assert placement.num_partitions == 1


def test_images_are_transposed_where_they_come_in_and_go_out_only(model: Any) -> None:
    loaded = armpy.load(model.SerializeToString(), front_end="onnx", backends=["CpuRef"])

    assert loaded.placement is not None
    kinds = Counter(layer.operation for layer in loaded.placement.layers)
    assert kinds["Transpose"] == 2
