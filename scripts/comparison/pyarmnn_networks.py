"""Random networks built with PyArmNN's INetwork, each for one kind of layer.

Written for PyArmNN 20.08 and for its replacement, and run by both: it imports neither armpy nor
anything that a plain Python with NumPy lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarmnn as ann  # type: ignore[import-not-found]

Shape = Sequence[int]
Array = npt.NDArray[Any]  # Any: three types of elements

FLOAT, U8, S8 = "float32", "uint8", "int8"


class Builder:
    """One network under construction.

    Parameters
    ----------
    seed : int
        Selects everything about the network.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.network = ann.INetwork()
        self.inputs: list[tuple[Any, Array]] = []
        self.outputs: list[Any] = []
        self.kind = ""
        self.type = str(self.rng.choice([FLOAT, U8, S8]))

    def info(self, shape: Shape, kind: str = "", *, constant: bool = False) -> Any:
        """A description with a random scale for 8-bit types."""
        kind = kind or self.type
        number = {
            FLOAT: ann.DataType_Float32,
            U8: ann.DataType_QAsymmU8,
            S8: ann.DataType_QAsymmS8,
            "int32": ann.DataType_Signed32,
        }[kind]
        scale, zero_point = 0.0, 0
        if kind in (U8, S8):
            scale = float(self.rng.choice([0.0078125, 0.02, 0.05, 0.1]))
            zero_point = int(self.rng.integers(-10, 10)) + (128 if kind == U8 else 0)
        info = ann.TensorInfo(ann.TensorShape(tuple(map(int, shape))), number, scale, zero_point)
        if constant and hasattr(info, "SetConstant"):
            info.SetConstant()
        return info

    def elements(self, shape: Shape, kind: str = "") -> Array:
        """Random elements of a type."""
        kind = kind or self.type
        if kind == FLOAT:
            return self.rng.standard_normal(shape).astype(np.float32)
        if kind == "int32":
            return self.rng.integers(-50, 50, shape, np.int32)
        limits = np.iinfo(kind)
        return self.rng.integers(limits.min, limits.max, shape, kind, endpoint=True)

    def input(self, shape: Shape, kind: str = "", data: Array | None = None) -> Any:
        """Add an input of the network."""
        layer = self.network.AddInputLayer(len(self.inputs), f"in{len(self.inputs)}")
        info = self.info(shape, kind)
        layer.GetOutputSlot(0).SetTensorInfo(info)
        self.inputs.append((info, self.elements(shape, kind) if data is None else data))
        return layer.GetOutputSlot(0)

    def constant(self, shape: Shape, kind: str = "", data: Array | None = None) -> Any:
        """A constant tensor."""
        info = self.info(shape, kind, constant=True)
        return ann.ConstTensor(info, self.elements(shape, kind) if data is None else data)

    def weights(self, shape: Shape) -> Any:
        """Weights of a layer: symmetric if quantised."""
        info = self.info(shape, constant=True)
        if self.type == S8:
            info.SetQuantizationOffset(0)
        return ann.ConstTensor(info, self.elements(shape))

    def bias(self, source: Any, weights: Any, size: int) -> Any:
        """Biases of the scale that sums have."""
        if self.type == FLOAT:
            return self.constant((size,))
        info = self.info((size,), "int32", constant=True)
        scale = source.GetTensorInfo().GetQuantizationScale()
        info.SetQuantizationScale(scale * weights.GetInfo().GetQuantizationScale())
        return ann.ConstTensor(info, self.elements((size,), "int32"))

    def connect(self, layer: Any, *sources: Any) -> None:
        """Connect outputs to a layer's inputs."""
        for index, source in enumerate(sources):
            source.Connect(layer.GetInputSlot(index))

    def finish(self, layer: Any, *infos: Any) -> None:
        """Describe a layer's outputs, and make them the network's."""
        for index, info in enumerate(infos):
            slot = layer.GetOutputSlot(index)
            slot.SetTensorInfo(info)
            output = self.network.AddOutputLayer(len(self.outputs), f"out{len(self.outputs)}")
            slot.Connect(output.GetInputSlot(0))
            self.outputs.append(info)

    def same(self, source: Any) -> Any:
        """The description of an output that is one of an input, too."""
        return ann.TensorInfo(source.GetTensorInfo())

    def reshaped(self, source: Any, shape: Shape) -> Any:
        """The description of an input with another shape."""
        info = self.same(source)
        info.SetShape(ann.TensorShape(tuple(map(int, shape))))
        return info

    def integer(self, low: int, high: int) -> int:
        """A random integer, `high` included."""
        return int(self.rng.integers(low, high + 1))

    def layout(self) -> tuple[Any, bool]:
        """A data layout, and whether channels come last."""
        last = bool(self.rng.integers(2))
        return (ann.DataLayout_NHWC if last else ann.DataLayout_NCHW), last


def _image(last: bool, sizes: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """A shape (n, h, w, c) in the layout."""
    n, h, w, c = sizes
    return (n, h, w, c) if last else (n, c, h, w)


def _activation(b: Builder) -> None:
    d = ann.ActivationDescriptor()
    functions = [f for f in range(10) if f != ann.ActivationFunction_Sqrt or b.type == FLOAT]
    d.m_Function = int(b.rng.choice(functions))
    d.m_A, d.m_B = 1.5, 0.5
    shape = (1, b.integer(1, 5), b.integer(1, 5), 3)
    data = None
    if d.m_Function == ann.ActivationFunction_Sqrt and b.type == FLOAT:
        data = np.abs(b.elements(shape))
    source = b.input(shape, data=data)
    layer = b.network.AddActivationLayer(d, "layer")
    b.connect(layer, source)
    b.finish(layer, b.info(shape))


def _binary(add: str) -> Callable[[Builder], None]:
    def build(b: Builder) -> None:
        shape = (2, b.integer(1, 4), 3)
        other = shape if b.integer(0, 1) else (1, 1, 3)
        second = np.abs(b.elements(other)) + 1 if add == "Division" and b.type == FLOAT else None
        sources = b.input(shape), b.input(other, data=second)
        layer = getattr(b.network, f"Add{add}Layer")("layer")
        b.connect(layer, *sources)
        b.finish(layer, b.info(shape))

    return build


def _unary(b: Builder) -> None:
    # Roots of negative numbers abort 20.08 where results are quantised.
    operations = [0, 1, 2, 3, 4] if b.type == FLOAT else [0, 1, 4]
    d = ann.ElementwiseUnaryDescriptor(int(b.rng.choice(operations)))
    shape = (2, b.integer(1, 5))
    data = np.abs(b.elements(shape)) + np.float32(0.1) if b.type == FLOAT else None
    source = b.input(shape, data=data)
    layer = b.network.AddElementwiseUnaryLayer(d, "layer")
    b.connect(layer, source)
    b.finish(layer, b.info(shape))


def _floor(b: Builder) -> None:
    b.type = FLOAT
    source = b.input((3, 4))
    layer = b.network.AddFloorLayer("layer")
    b.connect(layer, source)
    b.finish(layer, b.same(source))


def _arg_min_max(b: Builder) -> None:
    d = ann.ArgMinMaxDescriptor()
    d.m_Function, d.m_Axis = b.integer(0, 1), b.integer(-3, 2)
    shape = [2, 4, 3]
    source = b.input(shape)
    layer = b.network.AddArgMinMaxLayer(d, "layer")
    b.connect(layer, source)
    del shape[d.m_Axis]
    b.finish(layer, b.info(shape, "int32"))


def _batch_normalization(b: Builder) -> None:
    b.type = FLOAT
    d = ann.BatchNormalizationDescriptor()
    d.m_DataLayout, last = b.layout()
    channels = b.integer(1, 4)
    shape = _image(last, (2, 3, 2, channels))
    tensors = [b.constant((channels,)) for _ in range(4)]
    tensors[1] = b.constant((channels,), data=np.abs(b.elements((channels,))))
    source = b.input(shape)
    layer = b.network.AddBatchNormalizationLayer(d, *tensors, "layer")
    b.connect(layer, source)
    b.finish(layer, b.info(shape))


def _batch_to_space(b: Builder) -> None:
    d = ann.BatchToSpaceNdDescriptor([2, 2], [(0, 1), (1, 0)])
    d.m_DataLayout, last = b.layout()
    source = b.input(_image(last, (4, 2, 3, 2)))
    layer = b.network.AddBatchToSpaceNdLayer(d, "layer")
    b.connect(layer, source)
    b.finish(layer, b.reshaped(source, _image(last, (1, 3, 5, 2))))


def _space_to_batch(b: Builder) -> None:
    d = ann.SpaceToBatchNdDescriptor([2, 2], [(1, 0), (0, 1)])
    d.m_DataLayout, last = b.layout()
    source = b.input(_image(last, (1, 3, 5, 2)))
    layer = b.network.AddSpaceToBatchNdLayer(d, "layer")
    b.connect(layer, source)
    b.finish(layer, b.reshaped(source, _image(last, (4, 2, 3, 2))))


def _depth_to_space(b: Builder) -> None:
    layout, last = b.layout()
    source = b.input(_image(last, (1, 2, 3, 8)))
    layer = b.network.AddDepthToSpaceLayer(ann.DepthToSpaceDescriptor(2, layout), "layer")
    b.connect(layer, source)
    b.finish(layer, b.reshaped(source, _image(last, (1, 4, 6, 2))))


def _space_to_depth(b: Builder) -> None:
    layout, last = b.layout()
    source = b.input(_image(last, (1, 4, 6, 2)))
    layer = b.network.AddSpaceToDepthLayer(ann.SpaceToDepthDescriptor(2, layout), "layer")
    b.connect(layer, source)
    b.finish(layer, b.reshaped(source, _image(last, (1, 2, 3, 8))))


def _concat(b: Builder) -> None:
    axis, count = b.integer(0, 2), b.integer(2, 3)
    shapes = [[2, 3, 4] for _ in range(count)]
    for shape in shapes:
        shape[axis] = b.integer(1, 3)
    d = ann.CreateDescriptorForConcatenation([ann.TensorShape(tuple(s)) for s in shapes], axis)
    sources = [b.input(shape) for shape in shapes]
    layer = b.network.AddConcatLayer(d, "layer")
    b.connect(layer, *sources)
    whole = [2, 3, 4]
    whole[axis] = sum(shape[axis] for shape in shapes)
    b.finish(layer, b.info(whole))


def _stack(b: Builder) -> None:
    b.type = FLOAT  # 20.08 corrupts its memory with others
    axis = b.integer(0, 2)
    shape = (2, 3)
    b.inputs.clear()
    info = b.info(shape)
    sources = [b.input(shape) for _ in range(2)]
    for index, source in enumerate(sources):
        source.SetTensorInfo(info)
        b.inputs[index] = (info, b.inputs[index][1])
    d = ann.StackDescriptor(axis, 2, ann.TensorShape(shape))
    layer = b.network.AddStackLayer(d, "layer")
    b.connect(layer, *sources)
    whole = [*shape[:axis], 2, *shape[axis:]]
    b.finish(layer, b.reshaped(sources[0], whole))


def _splitter(b: Builder) -> None:
    axis = b.integer(0, 2)
    shape = [2, 4, 6]
    half = [*shape]
    half[axis] //= 2
    d = ann.SplitterDescriptor(2, 3)
    for view in range(2):
        for coord in range(3):
            d.SetViewSize(view, coord, half[coord])
            d.SetViewOriginCoord(view, coord, half[axis] * view if coord == axis else 0)
    source = b.input(shape)
    layer = b.network.AddSplitterLayer(d, "layer")
    b.connect(layer, source)
    b.finish(layer, b.reshaped(source, half), b.reshaped(source, half))


def _window(b: Builder, d: Any, size: int, kernel: int, sides: tuple[str, str], axis: str) -> int:
    """Set padding and stride along an axis; returns the output's size."""
    before, after, stride = b.integer(0, 1), b.integer(0, 1), b.integer(1, 2)
    setattr(d, f"m_Pad{sides[0]}", before)
    setattr(d, f"m_Pad{sides[1]}", after)
    setattr(d, f"m_Stride{axis}", stride)
    return (size + before + after - kernel) // stride + 1


def _convolution(b: Builder) -> None:
    d = ann.Convolution2dDescriptor()
    d.m_DataLayout, last = b.layout()
    d.m_BiasEnabled = bool(b.integer(0, 1))
    kernel, channels, filters = (b.integer(1, 3), b.integer(1, 3)), b.integer(1, 4), b.integer(1, 5)
    source = b.input(_image(last, (1, 6, 7, channels)))
    height = _window(b, d, 6, kernel[0], ("Top", "Bottom"), "Y")
    width = _window(b, d, 7, kernel[1], ("Left", "Right"), "X")
    weights = b.weights(_image(last, (filters, *kernel, channels)))
    bias = b.bias(source, weights, filters) if d.m_BiasEnabled else None
    layer = b.network.AddConvolution2dLayer(d, weights, bias, "layer")
    b.connect(layer, source)
    b.finish(layer, b.info(_image(last, (1, height, width, filters))))


def _depthwise_convolution(b: Builder) -> None:
    d = ann.DepthwiseConvolution2dDescriptor()
    d.m_DataLayout, last = b.layout()
    d.m_BiasEnabled = bool(b.integer(0, 1))
    kernel, channels, multiplier = (b.integer(1, 3), 2), b.integer(2, 4), b.integer(1, 2)
    source = b.input(_image(last, (1, 6, 7, channels)))
    height = _window(b, d, 6, kernel[0], ("Top", "Bottom"), "Y")
    width = _window(b, d, 7, kernel[1], ("Left", "Right"), "X")
    weights = b.weights((multiplier, channels, *kernel))
    bias = b.bias(source, weights, channels * multiplier) if d.m_BiasEnabled else None
    layer = b.network.AddDepthwiseConvolution2dLayer(d, weights, bias, "layer")
    b.connect(layer, source)
    b.finish(layer, b.info(_image(last, (1, height, width, channels * multiplier))))


def _transpose_convolution(b: Builder) -> None:
    d = ann.TransposeConvolution2dDescriptor()
    d.m_DataLayout, last = b.layout()
    d.m_BiasEnabled = bool(b.integer(0, 1))
    d.m_StrideX = d.m_StrideY = b.integer(1, 2)
    channels, filters = b.integer(1, 3), b.integer(1, 3)
    source = b.input(_image(last, (1, 3, 4, channels)))
    weights = b.weights(_image(last, (filters, 3, 3, channels)))
    bias = b.bias(source, weights, filters) if d.m_BiasEnabled else None
    layer = b.network.AddTransposeConvolution2dLayer(d, weights, bias, "layer")
    b.connect(layer, source)
    sizes = (2 * d.m_StrideY + 3, 3 * d.m_StrideX + 3)
    b.finish(layer, b.info(_image(last, (1, *sizes, filters))))


def _fully_connected(b: Builder) -> None:
    d = ann.FullyConnectedDescriptor()
    d.m_BiasEnabled, d.m_TransposeWeightMatrix = bool(b.integer(0, 1)), bool(b.integer(0, 1))
    depth, units = b.integer(1, 9), b.integer(1, 5)
    source = b.input((2, depth))
    weights = b.weights((units, depth) if d.m_TransposeWeightMatrix else (depth, units))
    bias = b.bias(source, weights, units) if d.m_BiasEnabled else None
    layer = b.network.AddFullyConnectedLayer(d, weights, bias, "layer")
    b.connect(layer, source)
    b.finish(layer, b.info((2, units)))


def _pooling(b: Builder) -> None:
    d = ann.Pooling2dDescriptor()
    d.m_DataLayout, last = b.layout()
    d.m_PoolType = b.integer(0, 2 if b.type == FLOAT else 1)
    d.m_PaddingMethod = b.integer(0, 1)
    d.m_OutputShapeRounding = b.integer(0, 1)
    d.m_PoolWidth, d.m_PoolHeight = b.integer(2, 3), b.integer(2, 3)
    source = b.input(_image(last, (1, 6, 7, 2)))
    sizes = []
    for size, window, sides, axis in (
        (6, d.m_PoolHeight, ("Top", "Bottom"), "Y"),
        (7, d.m_PoolWidth, ("Left", "Right"), "X"),
    ):
        _window(b, d, size, window, sides, axis)
        pads = sum(getattr(d, f"m_Pad{side}") for side in sides)
        room, stride = size + pads - window, getattr(d, f"m_Stride{axis}")
        up = d.m_OutputShapeRounding == ann.OutputShapeRounding_Ceiling
        count = (-(-room // stride) if up else room // stride) + 1
        # Arm NN leaves windows out that begin in the padding at the end.
        if up and (count - 1) * stride >= size + getattr(d, f"m_Pad{sides[0]}"):
            count -= 1
        sizes.append(count)
    layer = b.network.AddPooling2dLayer(d, "layer")
    b.connect(layer, source)
    b.finish(layer, b.reshaped(source, _image(last, (1, sizes[0], sizes[1], 2))))


def _gather(b: Builder) -> None:
    source = b.input((5, 3))
    indices = b.input((4,), "int32", np.array([0, 4, 2, 2], np.int32))
    args = [ann.GatherDescriptor(0)] if hasattr(ann, "GatherDescriptor") else []
    layer = b.network.AddGatherLayer(*args, "layer")
    b.connect(layer, source, indices)
    b.finish(layer, b.reshaped(source, (4, 3)))


def _instance_normalization(b: Builder) -> None:
    b.type = FLOAT
    d = ann.InstanceNormalizationDescriptor()
    d.m_Gamma, d.m_Beta, d.m_Eps = 1.5, 0.25, 0.001
    d.m_DataLayout, last = b.layout()
    source = b.input(_image(last, (2, 3, 4, 2)))
    layer = b.network.AddInstanceNormalizationLayer(d, "layer")
    b.connect(layer, source)
    b.finish(layer, b.same(source))


def _l2_normalization(b: Builder) -> None:
    b.type = FLOAT
    d = ann.L2NormalizationDescriptor()
    d.m_DataLayout, last = b.layout()
    source = b.input(_image(last, (2, 3, 4, 5)))
    layer = b.network.AddL2NormalizationLayer(d, "layer")
    b.connect(layer, source)
    b.finish(layer, b.same(source))


def _softmax(b: Builder) -> None:
    d = ann.SoftmaxDescriptor()
    d.m_Beta, d.m_Axis = float(b.rng.choice([0.5, 1.0, 2.0])), b.integer(-2, 1)
    source = b.input((3, 5))
    layer = b.network.AddSoftmaxLayer(d, "layer")
    b.connect(layer, source)
    info = b.info((3, 5))
    if b.type != FLOAT:
        info.SetQuantizationScale(1 / 256)
        info.SetQuantizationOffset(0 if b.type == U8 else -128)
    b.finish(layer, info)


def _log_softmax(b: Builder) -> None:
    b.type = FLOAT
    d = ann.SoftmaxDescriptor()
    d.m_Beta, d.m_Axis = 1.5, b.integer(-2, 1)
    source = b.input((3, 5))
    layer = b.network.AddLogSoftmaxLayer(d, "layer")
    b.connect(layer, source)
    b.finish(layer, b.same(source))


def _mean(b: Builder) -> None:
    axes = sorted(b.rng.choice(3, b.integer(1, 2), replace=False).tolist())
    keeps = bool(b.integer(0, 1))
    d = ann.MeanDescriptor(axes, keeps)
    shape = [2, 3, 4]
    source = b.input(shape)
    layer = b.network.AddMeanLayer(d, "layer")
    b.connect(layer, source)
    result = [
        1 if axis in axes else size for axis, size in enumerate(shape) if keeps or axis not in axes
    ]
    b.finish(layer, b.reshaped(source, result))


def _normalization(b: Builder) -> None:
    b.type = FLOAT
    d = ann.NormalizationDescriptor()
    d.m_NormSize, d.m_Alpha, d.m_Beta, d.m_K = 3, 0.5, 0.75, 1.0
    d.m_NormChannelType = b.integer(0, 1)
    last = False
    if d.m_NormChannelType == ann.NormalizationAlgorithmChannel_Across:
        d.m_DataLayout, last = b.layout()
    source = b.input(_image(last, (1, 3, 4, 5)))
    layer = b.network.AddNormalizationLayer(d, "layer")
    b.connect(layer, source)
    b.finish(layer, b.same(source))


def _pad(b: Builder) -> None:
    pads = [(b.integer(0, 2), b.integer(0, 2)) for _ in range(3)]
    d = ann.PadDescriptor(pads, 0.0)
    shape = [2, 1, 3]
    source = b.input(shape)
    layer = b.network.AddPadLayer(d, "layer")
    b.connect(layer, source)
    padded = [size + sum(pair) for size, pair in zip(shape, pads, strict=True)]
    b.finish(layer, b.reshaped(source, padded))


def _permute(b: Builder) -> None:
    order = b.rng.permutation(4).tolist()
    shape = [2, 3, 4, 5]
    source = b.input(shape)
    d = ann.PermuteDescriptor(ann.PermutationVector(tuple(order)))
    layer = b.network.AddPermuteLayer(d, "layer")
    b.connect(layer, source)
    result = [0] * 4
    for place, target in enumerate(order):
        result[target] = shape[place]
    b.finish(layer, b.reshaped(source, result))


def _prelu(b: Builder) -> None:
    sources = b.input((2, 3, 4)), b.input((1, 1, 4))
    layer = b.network.AddPreluLayer("layer")
    b.connect(layer, *sources)
    b.finish(layer, b.info((2, 3, 4)))


def _quantize(b: Builder) -> None:
    source = b.input((3, 4), FLOAT)
    layer = b.network.AddQuantizeLayer("layer")
    b.connect(layer, source)
    b.finish(layer, b.info((3, 4), S8 if b.type == FLOAT else b.type))


def _dequantize(b: Builder) -> None:
    source = b.input((3, 4), S8 if b.type == FLOAT else b.type)
    layer = b.network.AddDequantizeLayer("layer")
    b.connect(layer, source)
    b.finish(layer, b.info((3, 4), FLOAT))


def _reshape(b: Builder) -> None:
    source = b.input((2, 3, 4))
    shape = [(6, 4), (24,), (1, 2, 12)][b.integer(0, 2)]
    layer = b.network.AddReshapeLayer(ann.ReshapeDescriptor(ann.TensorShape(shape)), "layer")
    b.connect(layer, source)
    b.finish(layer, b.reshaped(source, shape))


def _resize(b: Builder) -> None:
    d = ann.ResizeDescriptor()
    d.m_DataLayout, last = b.layout()
    d.m_Method = b.integer(0, 1)
    d.m_TargetHeight, d.m_TargetWidth = b.integer(2, 7), b.integer(2, 7)
    source = b.input(_image(last, (1, 4, 5, 2)))
    layer = b.network.AddResizeLayer(d, "layer")
    b.connect(layer, source)
    sizes = d.m_TargetHeight, d.m_TargetWidth
    b.finish(layer, b.reshaped(source, _image(last, (1, *sizes, 2))))


def _slice(b: Builder) -> None:
    shape = (4, 5, 3)
    begin = [b.integer(0, 2) for _ in shape]
    size = [b.integer(1, whole - first) for whole, first in zip(shape, begin, strict=True)]
    source = b.input(shape)
    layer = b.network.AddSliceLayer(ann.SliceDescriptor(begin, size), "layer")
    b.connect(layer, source)
    b.finish(layer, b.reshaped(source, size))


def _strided_slice(b: Builder) -> None:
    shape = (4, 5, 6)
    begin, end, stride = [], [], []
    for whole in shape:
        backwards = bool(b.integer(0, 1))
        step = b.integer(1, 2)
        begin.append(whole - 1 if backwards else b.integer(0, 1))
        end.append(0 if backwards else whole)
        stride.append(-step if backwards else step)
    d = ann.StridedSliceDescriptor(begin, end, stride)
    source = b.input(shape)
    layer = b.network.AddStridedSliceLayer(d, "layer")
    b.connect(layer, source)
    sizes = [len(range(*part)) for part in zip(begin, end, stride, strict=True)]
    b.finish(layer, b.reshaped(source, sizes))


KINDS: dict[str, Callable[[Builder], None]] = {
    "Activation": _activation,
    "Addition": _binary("Addition"),
    "ArgMinMax": _arg_min_max,
    "BatchNormalization": _batch_normalization,
    "BatchToSpaceNd": _batch_to_space,
    "Concat": _concat,
    "Convolution2d": _convolution,
    "DepthToSpace": _depth_to_space,
    "DepthwiseConvolution2d": _depthwise_convolution,
    "Dequantize": _dequantize,
    "Division": _binary("Division"),
    "ElementwiseUnary": _unary,
    "Floor": _floor,
    "FullyConnected": _fully_connected,
    "Gather": _gather,
    "InstanceNormalization": _instance_normalization,
    "L2Normalization": _l2_normalization,
    "LogSoftmax": _log_softmax,
    "Maximum": _binary("Maximum"),
    "Mean": _mean,
    "Minimum": _binary("Minimum"),
    "Multiplication": _binary("Multiplication"),
    "Normalization": _normalization,
    "Pad": _pad,
    "Permute": _permute,
    "Pooling2d": _pooling,
    "Prelu": _prelu,
    "Quantize": _quantize,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "Softmax": _softmax,
    "SpaceToBatchNd": _space_to_batch,
    "SpaceToDepth": _space_to_depth,
    "Splitter": _splitter,
    "Stack": _stack,
    "StridedSlice": _strided_slice,
    "Subtraction": _binary("Subtraction"),
    "TransposeConvolution2d": _transpose_convolution,
}
"""What builds a network for a kind of layer."""


def build(seed: int) -> Builder:
    """The network of a number; the kinds of layers follow each other."""
    builder = Builder(seed)
    names = sorted(KINDS)
    builder.kind = names[seed % len(names)]
    KINDS[builder.kind](builder)
    return builder
