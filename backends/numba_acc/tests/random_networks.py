"""Networks of one to three layers with everything about them drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

import numpy as np

from armpy import Network
from armpy.graph import Value
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
    L2Normalization,
    LogSoftmax,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Prelu,
    Quantize,
    Reduce,
    ReduceOperation,
    Resize,
    ResizeMethod,
    Softmax,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from backends.numba_acc.tests.support import random_array

T = TypeVar("T")
_MOST_PRODUCTS = 30_000
"""Sums of more may not fit 32 bits, and are refused."""

F32, U8, S8 = DataType.FLOAT32, DataType.QASYMM_U8, DataType.QASYMM_S8
S16 = DataType.QSYMM_S16
TYPES = (F32, U8, S8, S16)


@dataclass
class Sketch:
    """A network under construction, on elements of one type.

    Parameters
    ----------
    random : Generator
    data_type : DataType
    batch : int, optional
        Images of every input, if they are not made of chance.
    """

    random: np.random.Generator
    data_type: DataType
    batch: int | None = None

    def __post_init__(self) -> None:
        self.net = Network()

    def one_of(self, *options: T) -> T:
        return options[self.random.integers(len(options))]

    def upto(self, most: int, least: int = 1) -> int:
        """A size; small ones are as frequent as large ones."""
        top = np.log2(most + 1)
        return max(least, int(2 ** self.random.uniform(0, top)))

    def info(self, shape: tuple[int, ...] | None, scale: float) -> TensorInfo:
        """A tensor whose real elements have about this scale, over the whole of a byte or word."""
        if self.data_type is F32:
            return TensorInfo(shape, F32)
        if self.data_type is S16:
            return TensorInfo(shape, S16, Quantization.per_tensor(scale / (1 << 14), 0))
        low, high = self.data_type.integer_range
        zero_point = int(self.random.integers(low + 64, high - 63))
        return TensorInfo(shape, self.data_type, Quantization.per_tensor(scale / 64, zero_point))

    def input(self, shape: tuple[int, ...]) -> Value:
        return self.net.input(f"x{self.random.integers(1 << 60)}", self.info(shape, 1.0))

    def image(self) -> Value:
        batch, *shape = self.upto(3), self.upto(20), self.upto(20), self.upto(130)
        return self.input((self.batch or batch, *shape))

    def weights(self, shape: tuple[int, ...], channel_axis: int) -> Value:
        """Weights whose real elements are around 0, a tenth large."""
        if self.data_type is F32:
            return self.net.constant(self.random.normal(0, 0.1, shape).astype(np.float32))
        if self.data_type is U8:
            zero_point = int(self.random.integers(90, 160))
            data = self.random.integers(0, 256, shape).astype(np.uint8)
            quantization = Quantization.per_tensor(0.1 / 75, zero_point)
            return self.net.constant(data, data_type=U8, quantization=quantization)
        scales = self.random.uniform(0.05 / 75, 0.2 / 75, shape[channel_axis]).tolist()
        data = self.random.integers(-127, 128, shape).astype(np.int8)
        per_axis = Quantization.per_axis(scales, channel_axis)
        return self.net.constant(data, data_type=DataType.QSYMM_S8, quantization=per_axis)

    def bias(self, count: int) -> Value | None:
        if self.random.random() < 0.2:
            return None
        if self.data_type is F32:
            return self.net.constant(self.random.normal(size=count).astype(np.float32))
        most, dtype = (10**6, np.int64) if self.data_type is S16 else (2000, np.int32)
        return self.net.constant(self.random.integers(-most, most, count).astype(dtype))

    def activation(self) -> FusedActivation:
        return self.one_of(FusedActivation.NONE, FusedActivation.RELU, FusedActivation.RELU6)

    def window(self, image: Value) -> tuple[tuple[int, int], tuple[int, int], Padding]:
        """Size, stride and padding of windows that fit the image; most are usual ones.

        Depthwise kernels are compiled for each size and stride, which takes most of the time.
        """
        _, height, width, _ = image.info.known_shape
        size = self.one_of((1, 1), (2, 2), (3, 3), (3, 3), (5, 5))
        stride = self.one_of((1, 1), (1, 1), (2, 2))
        if self.random.random() < 0.15:
            size, stride = (self.upto(7), self.upto(7)), (self.upto(3), self.upto(3))
        size = min(size[0], height), min(size[1], width)
        return size, stride, self.one_of(Padding.SAME, Padding.VALID)


def convolution(sketch: Sketch, value: Value) -> Value:
    """A convolution, sometimes dilated."""
    channels, filters = value.info.known_shape[3], sketch.upto(130)
    size, stride, padding = sketch.window(value)
    dilation = (1, 1)
    if sketch.random.random() < 0.2:
        stride, padding = (1, 1), Padding.SAME
        dilation = (sketch.upto(3), sketch.upto(3))
    operation = Convolution2d(stride, dilation, padding, sketch.activation())
    weights = sketch.weights((filters, *size, channels), 0)
    output = sketch.info(None, 0.1 * float(np.sqrt(prod(size) * channels)))
    return sketch.net.add(operation, value, weights, sketch.bias(filters), output=output)


def depthwise(sketch: Sketch, value: Value) -> Value:
    """A depthwise convolution, sometimes with several outputs per channel."""
    size, stride, padding = sketch.window(value)
    filters = value.info.known_shape[3] * sketch.one_of(1, 1, 1, 2, 3)
    operation = DepthwiseConvolution2d(
        stride=stride, padding=padding, activation=sketch.activation()
    )
    weights = sketch.weights((1, *size, filters), 3)
    output = sketch.info(None, 0.1 * float(np.sqrt(prod(size))))
    return sketch.net.add(operation, value, weights, sketch.bias(filters), output=output)


def fully_connected(sketch: Sketch, value: Value) -> Value:
    """A matrix product of whatever is in a batch."""
    depth = value.info.num_elements // value.info.known_shape[0]
    if depth > _MOST_PRODUCTS:
        return activation(sketch, value)
    columns = sketch.upto(130)
    operation = FullyConnected(activation=sketch.activation())
    output = sketch.info(None, 0.1 * float(np.sqrt(depth)))
    weights = sketch.weights((columns, depth), 0)
    return sketch.net.add(operation, value, weights, sketch.bias(columns), output=output)


def pooling(sketch: Sketch, value: Value) -> Value:
    """Largest elements or means of windows."""
    algorithm = sketch.one_of(PoolingAlgorithm.MAX, PoolingAlgorithm.AVERAGE)
    operation = Pooling2d(algorithm, *sketch.window(value), sketch.activation())
    return sketch.net.add(operation, value, output=value.info.with_shape(None))


def addition(sketch: Sketch, value: Value) -> Value:
    """A sum, difference, product or maximum with an input of the same shape or of channels."""
    shape = value.info.known_shape
    other = sketch.input(shape if sketch.random.random() < 0.7 else shape[-1:])
    kinds = [BinaryOperation.ADD, BinaryOperation.SUB, BinaryOperation.MUL]
    kinds += [BinaryOperation.MAXIMUM, BinaryOperation.SQUARED_DIFFERENCE]
    if sketch.data_type in (U8, S8):
        kinds += [BinaryOperation.DIV, BinaryOperation.MINIMUM]
    operation = ElementwiseBinary(sketch.one_of(*kinds), sketch.activation())
    return sketch.net.add(operation, value, other, output=sketch.info(None, 1.5))


def activation(sketch: Sketch, value: Value) -> Value:
    """A function of each element."""
    functions = [ActivationFunction.RELU, ActivationFunction.SIGMOID, ActivationFunction.TANH]
    functions.append(ActivationFunction.LEAKY_RELU)
    if sketch.data_type is not S16:
        functions += [ActivationFunction.HARD_SWISH, ActivationFunction.GELU]
    chosen = sketch.one_of(*functions)
    output = sketch.info(None, 1.0)
    curves = ActivationFunction.SIGMOID, ActivationFunction.TANH
    if sketch.data_type is not F32 and chosen in curves:
        is_sigmoid = chosen is ActivationFunction.SIGMOID
        low = sketch.data_type.integer_range[0]
        zero_point = low if is_sigmoid else low + 128
        scale = 1 / 256 if is_sigmoid else 1 / 128
        if sketch.data_type is S16:
            scale, zero_point = 2.0**-15, 0
        output = replace(output, quantization=Quantization.per_tensor(scale, zero_point))
    return sketch.net.add(Activation(chosen, 1.0, 1.0), value, output=output)


def rows(sketch: Sketch, value: Value) -> Value:
    """Shares of the exponentials of the channels, their logarithms, or channels by their norm."""
    output, operation = sketch.info(None, 1.0), sketch.one_of(*_ROWS)
    if sketch.data_type is S16:
        operation = Softmax()
        output = replace(output, quantization=Quantization.per_tensor(2.0**-15, 0))
    elif sketch.data_type is not F32:
        low, high = sketch.data_type.integer_range
        scale, zero_point = {
            Softmax: (1 / 256, low),
            LogSoftmax: (1 / 16, high),
            L2Normalization: (1 / 128, low + 128),
        }[type(operation)]
        output = replace(output, quantization=Quantization.per_tensor(scale, zero_point))
    return sketch.net.add(operation, value, output=output)


_ROWS = (Softmax(), Softmax(), LogSoftmax(), L2Normalization())


def rectifier(sketch: Sketch, value: Value) -> Value:
    """A slope for each channel's negative elements; of words, which have none, a function."""
    if sketch.data_type is S16:
        return activation(sketch, value)
    slopes = sketch.info((1, 1, value.info.known_shape[-1]), 0.5)
    alpha = sketch.net.constant(
        random_array(slopes, int(sketch.random.integers(1 << 30))),
        data_type=slopes.data_type,
        quantization=slopes.quantization,
    )
    return sketch.net.add(Prelu(), value, alpha, output=sketch.info(None, 1.0))


def requantized(sketch: Sketch, value: Value) -> Value:
    """The same in another quantisation; of floats, a function."""
    if sketch.data_type is F32:
        return activation(sketch, value)
    return sketch.net.add(Quantize(), value, output=sketch.info(None, 1.2))


def mean(sketch: Sketch, value: Value) -> Value:
    """Means of images."""
    operation = Reduce(ReduceOperation.MEAN, axes=(1, 2), keep_dims=True)
    return sketch.net.add(operation, value, output=sketch.info(None, 0.3))


def resized(sketch: Sketch, value: Value) -> Value:
    """An image of another size."""
    method = sketch.one_of(ResizeMethod.BILINEAR, ResizeMethod.NEAREST_NEIGHBOR)
    centres = bool(sketch.random.random() < 0.5)
    operation = Resize((sketch.upto(24), sketch.upto(24)), method, half_pixel_centers=centres)
    return sketch.net.add(operation, value, output=value.info.with_shape(None))


def joined(sketch: Sketch, value: Value) -> Value:
    """Channels after those of another input."""
    other = sketch.net.input(
        f"x{sketch.random.integers(1 << 60)}",
        value.info.with_shape((*value.info.known_shape[:-1], sketch.upto(40))),
    )
    axis = len(value.info.known_shape) - 1
    return sketch.net.add(Concat(axis=axis), value, other, output=value.info.with_shape(None))


Layer = Callable[[Sketch, Value], Value]
_OF_IMAGES: tuple[Layer, ...] = (
    *(convolution, convolution, convolution, depthwise, depthwise),
    *(pooling, joined, mean, resized, rectifier),
)
_OF_ANY: tuple[Layer, ...] = (
    *(fully_connected, addition, addition, addition),
    *(activation, rows, requantized),
)


def random_network(seed: int, batch: int | None = None) -> tuple[Network, dict[str, Array]]:
    """The network of a number, and inputs for it; two of three have one layer.

    Parameters
    ----------
    seed : int
    batch : int, optional
        Images; networks of other numbers of images are the same otherwise.
    """
    random = np.random.default_rng(seed)
    sketch = Sketch(random, TYPES[seed % len(TYPES)], batch)
    if random.random() < 0.1 and batch is None:
        value = _matrices(sketch)
    else:
        value = sketch.image()
        for _ in range(sketch.one_of(1, 1, 1, 1, 2, 3)):
            is_image = len(value.info.known_shape) == 4
            layers = _OF_IMAGES + _OF_ANY if is_image else _OF_ANY
            value = layers[random.integers(len(layers))](sketch, value)
    sketch.net.output("y", value)
    inputs = sketch.net.build().inputs
    return sketch.net, {
        value.name: random_array(value.info, seed + number) for number, value in enumerate(inputs)
    }


UNLIKE = (np.nan, np.inf, -np.inf, 1e-39, -1e-39, 0.0, -0.0)
"""Floats whose sums and products with others do not depend on an order."""


def make_hostile(inputs: dict[str, Array], seed: int) -> dict[str, Array]:
    """The same inputs with some floats in each that no network should meet."""
    random = np.random.default_rng(seed)
    changed = {}
    for name, array in inputs.items():
        changed[name] = array.copy()
        if array.dtype == np.float32:
            places = random.integers(0, array.size, random.integers(1, 4))
            changed[name].reshape(-1)[places] = random.choice(UNLIKE, len(places))
    return changed


def spreads(network: Network) -> bool:
    """Whether a NaN may reach further than to where it is read (Winograd's tiles)."""
    operations = [layer.operation for layer in network.build().layers]
    return any(
        isinstance(operation, Convolution2d) and operation.stride == (1, 1)
        for operation in operations
    )


def _matrices(sketch: Sketch) -> Value:
    """A product of matrices, none of them constant."""
    rows, depth, columns, batch = (sketch.upto(60) for _ in range(4))
    x, y = sketch.input((batch % 5 + 1, rows, depth)), sketch.input((batch % 5 + 1, depth, columns))
    output = sketch.info(None, float(np.sqrt(depth)))
    return sketch.net.add(BatchMatMul(), x, y, output=output)
