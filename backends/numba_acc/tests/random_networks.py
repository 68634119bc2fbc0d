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
    BlockwiseFullyConnected,
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
    TransposeConvolution2d,
    UnidirectionalSequenceLstm,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .hostile_weights import hostile_array, hostile_weights
from .support import random_array

T = TypeVar("T")
_MOST_PRODUCTS = 30_000
"""Sums of more may not fit 32 bits, and are refused."""

F32, U8, S8 = DataType.FLOAT32, DataType.QASYMM_U8, DataType.QASYMM_S8
S16, SYMM, S32 = DataType.QSYMM_S16, DataType.QSYMM_S8, DataType.SIGNED32
TYPES = (F32, U8, S8, S16)

HOSTILE_SHARE = 0.5
"""Of the networks of integers; their weights and elements make sums as large as they can be."""


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
        share = 0.0 if self.data_type is F32 else HOSTILE_SHARE
        self.is_hostile = bool(self.random.random() < share)
        # What most elements of a hostile network's inputs are; any if there is none.
        self.usual: int | None = None
        if self.is_hostile:
            low, high = self.data_type.integer_range
            self.usual = self.one_of(low, high, high, high, None)

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

    def sums_info(self, scale: float) -> TensorInfo:
        """A product's output; in hostile networks finer, as `bias` takes most of its sums away."""
        if self.is_hostile:
            scale *= 2.0 ** -self.random.uniform(0, 7)
        return self.info(None, scale)

    def input(self, shape: tuple[int, ...], info: TensorInfo | None = None) -> Value:
        info = self.info(shape, 1.0) if info is None else info
        return self.net.input(f"x{self.random.integers(1 << 60)}", info)

    def channels(self, most: int = 130) -> int:
        """Channels of an image, or filters: one of three times a multiple of 16."""
        count = self.upto(most)
        return -(-count // 16) * 16 if self.random.random() < 0.3 else count

    def image(self) -> Value:
        batch, *shape = self.upto(3), self.upto(20), self.upto(20), self.channels()
        return self.input((self.batch or batch, *shape))

    def weights(self, shape: tuple[int, ...], channel_axis: int, has_scales: bool = True) -> Value:
        """Weights whose real elements are around 0, a tenth large; maybe a scale per channel."""
        if self.data_type is F32:
            return self.net.constant(self.random.normal(0, 0.1, shape).astype(np.float32))
        zero_point, kind = 0, SYMM
        quantization = Quantization.per_tensor(0.1 / 75, 0)
        if self.data_type is U8:
            zero_point, kind = int(self.random.integers(90, 160)), U8
            if self.is_hostile:  # with 127, one weight is just too large for a signed byte
                zero_point = self.one_of(127, 127, 0, 255, zero_point)
            quantization = Quantization.per_tensor(0.1 / 75, zero_point)
        elif has_scales and self.random.random() < 0.8:
            scales = self.random.uniform(0.05 / 75, 0.2 / 75, shape[channel_axis]).tolist()
            quantization = Quantization.per_axis(scales, channel_axis)
        least, most = (limit - zero_point for limit in kind.integer_range)
        if self.is_hostile:
            values = hostile_weights(self.random, shape, (least, most), self.data_type is S16)
        else:
            values = self.random.integers(least + (kind is SYMM), most, shape, endpoint=True)
        self._sums = values.sum(axis=tuple({*range(len(shape))} - {channel_axis}))
        stored = (values + zero_point).astype(kind.dtype)
        return self.net.constant(stored, data_type=kind, quantization=quantization)

    def bias(self, value: Value, count: int) -> Value | None:
        """The bias of a product with the last weights; with it, most usual sums are around 0."""
        if self.random.random() < 0.2:
            return None
        if self.data_type is F32:
            return self.net.constant(self.random.normal(size=count).astype(np.float32))
        is_wide = self.data_type is S16 and self.random.random() < 0.7
        most, dtype = (10**6, np.int64) if is_wide else (2000, np.int32)
        bias = self.random.integers(-most, most, count)
        if self.usual is not None:
            bias -= self._sums * (self.usual - value.info.zero_point)
        largest = 1 << (40 if is_wide else 30)
        return self.net.constant(bias.clip(-largest, largest).astype(dtype))

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
    """A convolution, sometimes dilated, of groups, or 3x3 of many channels."""
    depth, filters = value.info.known_shape[3], sketch.channels()
    size, stride, padding = sketch.window(value)
    dilation, kind = (1, 1), sketch.random.random()
    if kind < 0.2:
        stride, padding = (1, 1), Padding.SAME
        dilation = (sketch.upto(3), sketch.upto(3))
    elif kind < 0.3:
        groups = sketch.one_of(*(n for n in range(1, depth + 1) if depth % n == 0))
        depth, filters = depth // groups, groups * sketch.upto(max(1, 130 // groups))
    elif depth % 16 == 0 and kind < 0.6:
        filters, size, stride = -(-filters // 16) * 16, (3, 3), (1, 1)
        padding = Padding.SAME
    operation = Convolution2d(stride, dilation, padding, sketch.activation())
    weights = sketch.weights((filters, *size, depth), 0)
    output = sketch.sums_info(0.1 * float(np.sqrt(prod(size) * depth)))
    return sketch.net.add(operation, value, weights, sketch.bias(value, filters), output=output)


def transposed(sketch: Sketch, value: Value) -> Value:
    """A transposed convolution."""
    filters, depth = sketch.upto(40), value.info.known_shape[3]
    size = (sketch.upto(4), sketch.upto(4))
    stride = sketch.one_of((1, 1), (2, 2), (2, 2), (3, 2))
    operation = TransposeConvolution2d(
        stride, sketch.one_of(Padding.SAME, Padding.VALID), sketch.activation()
    )
    weights = sketch.weights((filters, *size, depth), 0)
    output = sketch.sums_info(0.1 * float(np.sqrt(prod(size) * depth)))
    return sketch.net.add(operation, value, weights, sketch.bias(value, filters), output=output)


def depthwise(sketch: Sketch, value: Value) -> Value:
    """A depthwise convolution, sometimes with several outputs per channel."""
    size, stride, padding = sketch.window(value)
    filters = value.info.known_shape[3] * sketch.one_of(1, 1, 1, 2, 3)
    operation = DepthwiseConvolution2d(
        stride=stride, padding=padding, activation=sketch.activation()
    )
    weights = sketch.weights((1, *size, filters), 3)
    output = sketch.sums_info(0.1 * float(np.sqrt(prod(size))))
    return sketch.net.add(operation, value, weights, sketch.bias(value, filters), output=output)


def fully_connected(sketch: Sketch, value: Value) -> Value:
    """A matrix product of whatever is in a batch."""
    depth = value.info.num_elements // value.info.known_shape[0]
    if depth > _MOST_PRODUCTS:
        return activation(sketch, value)
    columns = sketch.upto(130)
    operation = FullyConnected(activation=sketch.activation())
    output = sketch.sums_info(0.1 * float(np.sqrt(depth)))
    weights = sketch.weights((columns, depth), 0)
    return sketch.net.add(operation, value, weights, sketch.bias(value, columns), output=output)


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
    *(convolution, convolution, convolution, depthwise, depthwise, transposed),
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
    share = 0.7 if sketch.is_hostile else 0.3
    if random.random() < share and batch is None:
        value = sketch.one_of(*_ALONE)(sketch)
    else:
        value = sketch.image()
        for _ in range(sketch.one_of(1, 1, 1, 1, 2, 3)):
            is_image = len(value.info.known_shape) == 4
            layers = _OF_IMAGES + _OF_ANY if is_image else _OF_ANY
            value = layers[random.integers(len(layers))](sketch, value)
    sketch.net.output("y", value)
    inputs = sketch.net.build().inputs
    arrays = {
        value.name: random_array(value.info, seed + number) for number, value in enumerate(inputs)
    }
    if sketch.is_hostile:
        for value in inputs:
            arrays[value.name] = hostile_array(random, value.info, sketch.usual)
    return sketch.net, arrays


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


def _sums(sketch: Sketch) -> Value:
    """A product of bytes whose sums are the output; of others, a product with small weights."""
    if sketch.data_type not in (U8, S8):
        return _dynamic(sketch)
    value = sketch.image() if sketch.random.random() < 0.7 else sketch.input((1, sketch.upto(300)))
    is_image, channels = len(value.info.known_shape) == 4, sketch.channels()
    depth = value.info.known_shape[-1]
    output = TensorInfo(None, S32)
    if not is_image:
        operands = value, sketch.weights((channels, depth), 0), sketch.bias(value, channels)
        return sketch.net.add(FullyConnected(), *operands, output=output)
    size, stride, padding = sketch.window(value)
    weights = sketch.weights((channels, *size, depth), 0)
    operands = value, weights, sketch.bias(value, channels)
    return sketch.net.add(Convolution2d(stride, padding=padding), *operands, output=output)


def _one_row(sketch: Sketch) -> Value:
    """One vector times a matrix."""
    depth = sketch.one_of(sketch.upto(600), int(sketch.random.integers(500, 1200)))
    value = sketch.input((1, depth))
    return fully_connected(sketch, value)


def _product(sketch: Sketch) -> Value:
    """A convolution of an input."""
    return convolution(sketch, sketch.image())


def _many_channels(sketch: Sketch) -> Value:
    """A convolution that is worth fewer multiplications, on some instruction sets."""
    batch, (height, width) = sketch.upto(2), map(int, sketch.random.integers(13, 30, 2))
    depth, filters = (32 * sketch.one_of(1, 2) for _ in range(2))
    value = sketch.input((batch, height, width, depth))
    padding = sketch.one_of(Padding.SAME, Padding.VALID)
    operation = Convolution2d(padding=padding, activation=sketch.activation())
    weights = sketch.weights((filters, 3, 3, depth), 0)
    output = sketch.sums_info(0.3 * float(np.sqrt(depth)))
    return sketch.net.add(operation, value, weights, sketch.bias(value, filters), output=output)


def _dynamic(sketch: Sketch) -> Value:
    """A product of floats with weights of 8 bits or less; of others, one of a vector."""
    if sketch.data_type is not F32:
        return _one_row(sketch)
    if sketch.random.random() < 0.5:
        return _blocks(sketch, sketch.upto(20), sketch.upto(300), sketch.channels())
    is_image = sketch.random.random() < 0.5
    value = sketch.image() if is_image else sketch.input((sketch.upto(20), sketch.upto(300)))
    depth, columns, random = value.info.known_shape[-1], sketch.channels(), sketch.random
    operation: Convolution2d | FullyConnected = FullyConnected()
    shape: tuple[int, ...] = columns, depth
    if is_image:
        size, stride, padding = sketch.window(value)
        operation, shape = Convolution2d(stride, padding=padding), (columns, *size, depth)
    stored = random.integers(-127, 128, shape)
    if random.random() < HOSTILE_SHARE:
        stored = hostile_weights(random, shape, (-127, 127))
    scales = random.uniform(0.05 / 75, 0.2 / 75, sketch.one_of(1, columns)).tolist()
    quantization = Quantization.per_axis(scales, 0)
    if len(scales) == 1:
        quantization = Quantization.per_tensor(scales[0], 0)
    weights = sketch.net.constant(stored.astype(np.int8), data_type=S8, quantization=quantization)
    return sketch.net.add(operation, value, weights, sketch.bias(value, columns))


def _blocks(sketch: Sketch, rows: int, depth: int, columns: int) -> Value:
    """Weights of few bits in blocks, all of them or half of them the least or the largest."""
    random, bits, size = sketch.random, sketch.one_of(2, 4, 4, 8), sketch.one_of(16, 32, 64, 128)
    blocks = -(-depth // size)
    stored = random.integers(0, 256, (columns, blocks, size * bits // 8)).astype(np.uint8)
    if random.random() < HOSTILE_SHARE:
        is_extreme = random.random(stored.shape) < random.choice([0.5, 1.0])
        stored = np.where(is_extreme, random.choice([0, 255], stored.shape), stored)
    points = random.integers(0, 1 << bits, (columns, blocks)).astype(np.uint8)
    operation = BlockwiseFullyConnected(
        bits, quantizes_input=bool(bits == 4 and random.random() < 0.5)
    )
    operands = [
        sketch.input((rows, depth)),
        sketch.net.constant(stored.astype(np.uint8), data_type=DataType.UNSIGNED8),
        sketch.net.constant(random.normal(0, 0.05, (columns, blocks)).astype(np.float32)),
        sketch.net.constant(points, data_type=DataType.UNSIGNED8),
    ]
    return sketch.net.add(operation, *operands, sketch.bias(operands[0], columns))


def _recurrent(sketch: Sketch) -> Value:
    """An LSTM of floats or of signed bytes; of others, a product of matrices."""
    if sketch.data_type not in (F32, S8):
        return _matrices(sketch)
    batch, time, size, cells = sketch.upto(4), sketch.upto(6), sketch.upto(40), sketch.upto(40)
    operation = UnidirectionalSequenceLstm(
        cell_clip=10.0 * sketch.random.integers(2),
        hidden_state_scale=0.007,
        hidden_state_zero_point=4,
    )
    state, cell_state = TensorInfo((batch, cells), F32), TensorInfo((batch, cells), F32)
    if sketch.data_type is S8:
        state = TensorInfo((batch, cells), S8, Quantization.per_tensor(0.007, 4))
        cell_state = TensorInfo((batch, cells), S16, Quantization.per_tensor(2.0**-11, 0))
    operands: list[Value | None] = []
    has_input_gate = sketch.random.random() < 0.5
    for operand in operation.inputs:
        name = operand.name
        is_left_out = "layer_norm" in name or "projection" in name or name.startswith("cell_to_")
        is_left_out |= not has_input_gate and (
            "_input_weights" in name or name.startswith("input_gate")
        )
        if name == "input":
            operands.append(sketch.input((batch, time, size)))
        elif name.endswith("_state_in"):
            info = state if name.startswith("output") else cell_state
            operands.append(sketch.input((batch, cells), info))
        elif is_left_out:
            operands.append(None)
        elif name.endswith("bias"):
            operands.append(_gate_bias(sketch, cells))
        else:
            depth = size if name.startswith("input_to") else cells
            operands.append(sketch.weights((cells, depth), 0, has_scales=False))
    outputs = [replace(info, shape=None) for info in (state, cell_state, state)]
    layer = sketch.net.add_layer(
        operation, operands, outputs=() if sketch.data_type is F32 else outputs
    )
    return layer.outputs[2]


def _gate_bias(sketch: Sketch, cells: int) -> Value:
    """The bias of a gate."""
    if sketch.data_type is F32:
        return sketch.net.constant(sketch.random.normal(size=cells).astype(np.float32))
    return sketch.net.constant(sketch.random.integers(-5000, 5000, cells).astype(np.int32))


_ALONE: tuple[Callable[[Sketch], Value], ...] = (
    *(_matrices, _sums, _one_row, _dynamic, _recurrent),
    *(_product, _product, _product, _product, _many_channels, _many_channels),
)
