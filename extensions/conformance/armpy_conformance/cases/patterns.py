"""Patterns of several layers, as compilers look for them: pairs, residuals, chains, networks."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from functools import cache

import numpy as np

from armpy.graph import Value
from armpy.graph.network import Network
from armpy.ops import (
    Activation,
    ActivationFunction,
    BatchMatMul,
    BinaryOperation,
    Concat,
    Convolution2d,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    FullyConnected,
    FusedActivation,
    Pad,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Reduce,
    ReduceOperation,
    Reshape,
    Slice,
    Softmax,
    Transpose,
    TransposeConvolution2d,
)
from armpy.ops.operation import Operation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.pattern import Pattern

TYPES = (DataType.FLOAT32, DataType.QASYMM_S8)
"""What each pattern is made for."""

RELU, RELU6 = FusedActivation.RELU, FusedActivation.RELU6
SAME = Padding.SAME
_SPREAD = 74.0
"""Standard deviation of a stored 8-bit element that is as likely anywhere."""

_ZERO_POINT = 3
_INPUT_SCALE = 1 / 16
_WEIGHT_SCALE = 1 / 64


class Builder:
    """Builds one pattern for one type, with weights made of chance."""

    def __init__(self, name: str, data_type: DataType) -> None:
        self.net = Network(name)
        self.is_float = data_type.is_float
        self._data_type = data_type
        self._rng = np.random.default_rng(zlib.crc32(name.encode()))

    def input(self, *shape: int, name: str = "x") -> Value:
        """Add an input."""
        return self.net.input(name, TensorInfo(shape, self._data_type, self._scale(_INPUT_SCALE)))

    def _scale(self, step: float) -> Quantization | None:
        """A quantisation; None for floats."""
        return None if self.is_float else Quantization.per_tensor(step, _ZERO_POINT)

    def _info(self, step: float) -> TensorInfo | None:
        """Declares an output's quantisation; None for floats."""
        return None if self.is_float else TensorInfo(None, self._data_type, self._scale(step))

    def weights(self, *shape: int) -> Value:
        """Weights: multiples of 1/8 between -1 and 1, or stored elements of the whole range."""
        if self.is_float:
            return self.net.constant((self._rng.integers(-8, 9, shape) / 8).astype(np.float32))
        return self.net.constant(
            self._rng.integers(-127, 128, shape).astype(np.int8),
            data_type=DataType.QSYMM_S8,
            quantization=Quantization.per_tensor(_WEIGHT_SCALE),
        )

    def _bias(self, x: Value, count: int) -> Value:
        """A bias that is large enough to be missed."""
        if self.is_float:
            return self.net.constant((self._rng.integers(-16, 17, count) / 4).astype(np.float32))
        return self.net.constant(
            self._rng.integers(-20_000, 20_000, count).astype(np.int32),
            data_type=DataType.SIGNED32,
            quantization=Quantization.per_tensor(x.info.scale * _WEIGHT_SCALE),
        )

    def _weighted(self, operation: Operation, x: Value, depth: int, *shape: int) -> Value:
        """Add a layer with weights of a shape and a bias of its last or first dimension."""
        is_depthwise = isinstance(operation, DepthwiseConvolution2d)
        units = shape[-1] if is_depthwise else shape[0]
        step = 1.0 if self.is_float else x.info.scale * _WEIGHT_SCALE * _SPREAD * math.sqrt(depth)
        operands = (x, self.weights(*shape), self._bias(x, units))
        return self.net.add(operation, *operands, output=self._info(step))

    def convolution(
        self, x: Value, units: int, kernel: int = 3, operation: Convolution2d | None = None
    ) -> Value:
        """Add a convolution; it keeps height and width if nothing else is said."""
        channels = x.info.known_shape[3]
        operation = operation or Convolution2d(padding=SAME)
        depth = kernel * kernel * channels
        return self._weighted(operation, x, depth, units, kernel, kernel, channels)

    def depthwise(self, x: Value, operation: DepthwiseConvolution2d | None = None) -> Value:
        """Add a depthwise convolution with windows of 3 by 3."""
        operation = operation or DepthwiseConvolution2d(padding=SAME)
        return self._weighted(operation, x, 9, 1, 3, 3, x.info.known_shape[3])

    def dense(self, x: Value, units: int, operation: FullyConnected | None = None) -> Value:
        """Add a fully connected layer."""
        depth = x.info.known_shape[-1]
        return self._weighted(operation or FullyConnected(), x, depth, units, depth)

    def activate(
        self, x: Value, function: ActivationFunction = ActivationFunction.RELU, a: float = 0.0
    ) -> Value:
        """Add an activation whose output is stored as its input is."""
        return self.net.add(Activation(function, a=a), x, output=x.info.with_shape(None))

    def binary(
        self,
        x: Value,
        y: Value,
        operation: BinaryOperation = BinaryOperation.ADD,
        activation: FusedActivation = FusedActivation.NONE,
    ) -> Value:
        """Add an element-wise layer of two operands."""
        step = 1.0 if self.is_float else x.info.scale + y.info.scale
        if not self.is_float and operation is BinaryOperation.MUL:
            step = x.info.scale * y.info.scale * _SPREAD
        return self.net.add(ElementwiseBinary(operation, activation), x, y, output=self._info(step))

    def move(self, operation: Operation, *values: Value) -> Value:
        """Add a layer that moves elements."""
        return self.net.add(operation, *values, output=values[0].info.with_shape(None))

    def mean(self, x: Value) -> Value:
        """Add the mean of each channel of images."""
        operation = Reduce(ReduceOperation.MEAN, (1, 2), keep_dims=True)
        return self.net.add(operation, x, output=x.info.with_shape(None))

    def softmax(self, x: Value) -> Value:
        """Add a softmax along the last axis."""
        output = TensorInfo(None, self._data_type, Quantization.per_tensor(1 / 256, -128))
        return self.net.add(Softmax(), x, output=None if self.is_float else output)


def _pairs() -> dict[str, Callable[[Builder], Value]]:
    """A layer and the one that reads it."""
    upper = ActivationFunction.BOUNDED_RELU
    image, row = (2, 6, 5, 4), (3, 9)
    return {
        "convolution-relu": lambda b: b.activate(b.convolution(b.input(*image), 5)),
        "convolution-relu6": lambda b: b.activate(b.convolution(b.input(*image), 5), upper, 6.0),
        "convolution-add": lambda b: _with_itself(b, b.convolution(b.input(*image), 4)),
        "convolution-max-pool": lambda b: pool(b, b.convolution(b.input(*image), 5)),
        "depthwise-relu": lambda b: b.activate(b.depthwise(b.input(*image))),
        "depthwise-relu6": lambda b: b.activate(b.depthwise(b.input(*image)), upper, 6.0),
        "transposed-relu": lambda b: b.activate(transposed(b, b.input(*image))),
        "dense-relu": lambda b: b.activate(b.dense(b.input(*row), 7)),
        "dense-relu6": lambda b: b.activate(b.dense(b.input(*row), 7), upper, 6.0),
        "dense-softmax": lambda b: b.softmax(b.dense(b.input(*row), 7)),
        "add-relu": lambda b: b.activate(b.binary(b.input(*row), b.input(*row, name="y"))),
        "sub-relu": lambda b: b.activate(
            b.binary(b.input(*row), b.input(*row, name="y"), BinaryOperation.SUB)
        ),
        "mul-relu": lambda b: b.activate(
            b.binary(b.input(*row), b.input(*row, name="y"), BinaryOperation.MUL)
        ),
        "relu-add": lambda b: _with_itself(b, b.activate(b.input(*row))),
        "max-pool-relu": lambda b: b.activate(pool(b, b.input(*image))),
        "reshape-dense": lambda b: b.dense(b.move(Reshape((3, 12)), b.input(3, 2, 6)), 5),
    }


def _with_itself(b: Builder, x: Value) -> Value:
    return b.binary(x, x)


def pool(b: Builder, x: Value) -> Value:
    """The largest elements of windows."""
    return b.move(Pooling2d(PoolingAlgorithm.MAX, (2, 2), (2, 2)), x)


def transposed(b: Builder, x: Value) -> Value:
    """A transposed convolution that doubles height and width."""
    operation = TransposeConvolution2d(stride=(2, 2), padding=SAME)
    return b._weighted(operation, x, 9 * 4, 5, 3, 3, x.info.known_shape[3])


def _networks() -> dict[str, Callable[[Builder], Value]]:
    """Residuals, chains and whole small networks."""
    return {
        "residual": lambda b: _residual(b, b.input(2, 6, 5, 4)),
        "separable": lambda b: _separable(b, b.input(2, 7, 6, 4), 6),
        "fused-activations": _fused_activations,
        "gate": lambda b: _gate(b, b.input(2, 5, 4, 6)),
        "chain-of-activations": _activations,
        "chain-of-dense": _dense_chain,
        "chain-of-moves": _moves,
        "branches": _branches,
        "many-at-once": _many_at_once,
        "read-twice": _read_twice,
        "attention": _attention,
        "image-network": _image_network,
        "many-elements": _many_elements,
        "many-images": lambda b: b.activate(b.convolution(b.input(7, 19, 17, 3), 8)),
    }


def _residual(b: Builder, x: Value) -> Value:
    """Two convolutions around which the input goes."""
    inner = b.activate(b.convolution(x, x.info.known_shape[3]))
    return b.activate(b.binary(b.convolution(inner, x.info.known_shape[3]), x))


def _separable(b: Builder, x: Value, units: int) -> Value:
    """A depthwise convolution, a pointwise one, and what clamps them."""
    upper = ActivationFunction.BOUNDED_RELU
    deep = b.activate(b.depthwise(x), upper, 6.0)
    return b.activate(b.convolution(deep, units, 1), upper, 6.0)


def _fused_activations(b: Builder) -> Value:
    """Layers that clamp themselves."""
    x = b.convolution(
        b.input(2, 8, 7, 3), 6, 3, Convolution2d((2, 2), padding=SAME, activation=RELU6)
    )
    x = b.depthwise(x, DepthwiseConvolution2d(padding=SAME, activation=RELU))
    x = b.binary(x, x, activation=RELU6)
    x = b.move(Reshape((2, 96)), x)
    return b.dense(x, 5, FullyConnected(activation=RELU))


def _gate(b: Builder, x: Value) -> Value:
    """Channels that are weighted by their contents."""
    squeezed = b.activate(b.convolution(b.mean(x), 3, 1))
    opened = b.convolution(squeezed, x.info.known_shape[3], 1)
    sigmoid = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(1 / 256, -128))
    operation = Activation(ActivationFunction.SIGMOID)
    gate = b.net.add(operation, opened, output=None if b.is_float else sigmoid)
    return b.binary(x, gate, BinaryOperation.MUL)


def _activations(b: Builder) -> Value:
    """Several activations, each of which reads the one before."""
    x = b.activate(b.input(3, 11), ActivationFunction.LEAKY_RELU, 0.25)
    x = b.activate(x, ActivationFunction.BOUNDED_RELU, 3.0)
    return b.activate(b.activate(x), ActivationFunction.HARD_SWISH)


def _dense_chain(b: Builder) -> Value:
    """Four fully connected layers, with and without an activation at the end."""
    x = b.activate(b.dense(b.input(4, 12), 10))
    x = b.dense(b.dense(x, 9), 8)
    return b.softmax(b.dense(b.activate(x), 5))


def _moves(b: Builder) -> Value:
    """Elements that go through many hands; nothing is computed."""
    x = b.move(Reshape((2, 6, 4)), b.input(2, 3, 8))
    x = b.move(Transpose((2, 0, 1)), x)
    x = b.move(Concat(1), x, x)
    x = b.move(Pad(((0, 0), (1, 0), (0, 2))), x)
    return b.move(Reshape((160,)), x)


def _branches(b: Builder) -> Value:
    """Two ways from the input, joined."""
    x = b.input(2, 6, 6, 3)
    left, right = b.activate(b.convolution(x, 4)), b.activate(b.convolution(x, 4, 1))
    return b.binary(left, right, BinaryOperation.ADD)


def _many_at_once(b: Builder) -> Value:
    """Forty small tensors, all of which are needed in the end."""
    x = b.input(40, 3)
    rows = [b.activate(b.move(Slice((row, 0), (1, 3)), x)) for row in range(40)]
    return b.move(Concat(0), *reversed(rows))


def _read_twice(b: Builder) -> Value:
    """A value that is read by an activation, by a sum, and by the caller."""
    x = b.dense(b.input(3, 8), 8)
    b.net.output("middle", x)
    return b.binary(b.activate(x), x)


def _attention(b: Builder) -> Value:
    """Products of matrices around a softmax."""
    x, y = b.input(2, 5, 6), b.input(2, 5, 6, name="y")
    step = 1.0 if b.is_float else x.info.scale * y.info.scale * _SPREAD
    scores = b.net.add(BatchMatMul(transpose_y=True), x, y, output=b._info(step))
    return b.net.add(BatchMatMul(), b.softmax(scores), y, output=b._info(_INPUT_SCALE))


def _image_network(b: Builder) -> Value:
    """Build the layers of image networks, from images to probabilities."""
    stem = Convolution2d((2, 2), padding=SAME, activation=RELU6)
    x = b.convolution(b.input(2, 18, 16, 3), 8, 3, stem)
    x = pool(b, _residual(b, _separable(b, x, 8)))
    x = b.move(Reshape((2, 8)), b.mean(_gate(b, x)))
    return b.softmax(b.dense(b.activate(b.dense(x, 12)), 6))


def _many_elements(b: Builder) -> Value:
    """Tensors of 70,000 elements and more."""
    x, y = b.input(3, 151, 157), b.input(3, 151, 157, name="y")
    product = b.binary(b.activate(b.binary(x, y)), y, BinaryOperation.MUL)
    return b.activate(product)


@cache
def kit_patterns() -> tuple[Pattern, ...]:
    """Every pattern in every type of `TYPES`."""
    patterns = (
        _made(name, build, data_type)
        for name, build in (_pairs() | _networks()).items()
        for data_type in TYPES
    )
    return (*patterns, _far_numbers())


def _far_numbers() -> Pattern:
    """A sigmoid is 0 at its far end; a product with large numbers shows if it is not."""
    builder = Builder("sigmoid times far numbers", DataType.FLOAT32)
    far = np.array([-1e38, -3.4e38, -1e30, -200.0, -20.0, 20.0, 200.0, 1e38], np.float32)
    x = builder.input(*far.shape)
    sigmoid = builder.net.add(Activation(ActivationFunction.SIGMOID), x)
    builder.net.output("y", builder.binary(x, sigmoid, BinaryOperation.MUL))
    return Pattern(f"{builder.net.name}/float32", builder.net.build(), {"x": far})


def _made(name: str, build: Callable[[Builder], Value], data_type: DataType) -> Pattern:
    name = f"{name}/{data_type.name.lower()}"
    builder = Builder(name, data_type)
    builder.net.output("y", build(builder))
    return Pattern(name, builder.net.build())
