"""Reference workloads: small networks of one layer that stand for all layers of their kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.ops import (
    Activation,
    ActivationFunction,
    BatchMatMul,
    BinaryOperation,
    Concat,
    Convolution2d,
    DepthwiseConvolution2d,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    FullyConnected,
    LogicalBinary,
    LogicalBinaryOperation,
    Operation,
    Pad,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Quantize,
    Reduce,
    ReduceOperation,
    Reshape,
    Resize,
    ResizeMethod,
    Softmax,
    Transpose,
    UnaryOperation,
)
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_tools.calibrate.control_flow import if_network, while_network
from armpy_tools.devices.kinds import kind_of, type_class

Shape = tuple[int, ...]

FLOATS = (DataType.FLOAT32, DataType.FLOAT16)
BYTES = (DataType.QASYMM_S8, DataType.QASYMM_U8)
TYPES = (*FLOATS, *BYTES)
_OTHER_TYPES = (DataType.FLOAT16, DataType.QASYMM_U8)
_LEAST_TYPES = (DataType.SIGNED32, DataType.BOOLEAN)

_SEED = 20


@dataclass(frozen=True, slots=True)
class CalibrationWorkload:
    """A network of one layer."""

    graph: Graph
    data_type: DataType  # of its first input
    size: int  # 0 for the smallest of its kind

    @property
    def kind(self) -> str:
        """The kind of its layer; see `armpy_tools.devices.kinds.kind_of`."""
        layer = self.graph.layers[0]
        return kind_of(layer.operation, layer.input_infos)

    @property
    def types(self) -> str:
        """The class of data types of its layer."""
        return type_class(self.graph.layers[0].input_infos)

    @property
    def name(self) -> str:
        """``Softmax/FLOAT32/0``."""
        return f"{self.kind}/{self.data_type.name}/{self.size}"


@dataclass(frozen=True, slots=True)
class _Sketch:
    """A layer in several sizes."""

    operations: Sequence[Operation]  # one for all sizes, or one for each
    inputs: Sequence[tuple[Shape, ...]]  # for each size, the shapes of the inputs
    # For each size, the shapes of weights and bias, if there are any.
    constants: Sequence[tuple[Shape, ...]] = ()
    types: tuple[DataType, ...] = TYPES
    output: DataType | None = None  # where it differs from the input's


_VECTORS: Sequence[tuple[Shape, ...]] = [((1, 16),), ((1, 56, 56, 64),), ((1, 28, 28, 32),)]
_PAIRS: Sequence[tuple[Shape, ...]] = [(shape, shape) for (shape,) in _VECTORS]
_SAME = Padding.SAME

_SKETCHES: Sequence[_Sketch] = (
    _Sketch(
        [*[Convolution2d(padding=_SAME)] * 3, Convolution2d((2, 2), padding=_SAME)],
        [((1, 8, 8, 8),), ((1, 56, 56, 32),), ((1, 28, 28, 16),), ((1, 112, 112, 3),)],
        [
            ((8, 3, 3, 8), (8,)),
            ((32, 3, 3, 32), (32,)),
            ((32, 3, 3, 16), (32,)),
            ((16, 3, 3, 3), (16,)),
        ],
    ),
    _Sketch(
        [Convolution2d()],
        [((1, 7, 7, 16),), ((1, 14, 14, 256),), ((1, 28, 28, 32),)],
        [((16, 1, 1, 16), (16,)), ((256, 1, 1, 256), (256,)), ((64, 1, 1, 32), (64,))],
    ),
    _Sketch(
        [DepthwiseConvolution2d(padding=_SAME)],
        [((1, 8, 8, 8),), ((1, 56, 56, 64),), ((1, 28, 28, 32),)],
        [((1, 3, 3, 8), (8,)), ((1, 3, 3, 64), (64,)), ((1, 3, 3, 32), (32,))],
    ),
    _Sketch(
        [FullyConnected()],
        [((1, 16),), ((1, 1024),), ((32, 256),)],
        [((16, 16), (16,)), ((1024, 1024), (1024,)), ((256, 256), (256,))],
    ),
    *(
        _Sketch(
            [Pooling2d(algorithm, (2, 2), (2, 2))], [((1, 8, 8, 8),), *_VECTORS[1:]], types=TYPES
        )
        for algorithm in (PoolingAlgorithm.MAX, PoolingAlgorithm.AVERAGE)
    ),
    *(
        _Sketch([ElementwiseBinary(operation)], _PAIRS, types=types)
        for operation, types in (
            (BinaryOperation.ADD, (*TYPES, DataType.SIGNED32)),
            (BinaryOperation.MUL, (*TYPES, DataType.SIGNED32)),
            (BinaryOperation.DIV, (DataType.FLOAT32,)),
        )
    ),
    *(
        _Sketch([Activation(function, a, b)], _VECTORS, types=types)
        for function, a, b, types in (
            (ActivationFunction.RELU, 0.0, 0.0, TYPES),
            (ActivationFunction.SIGMOID, 0.0, 0.0, TYPES),
            (ActivationFunction.TANH, 1.0, 1.0, (DataType.FLOAT32, DataType.QASYMM_S8)),
            (ActivationFunction.HARD_SWISH, 0.0, 0.0, (DataType.FLOAT32, DataType.QASYMM_S8)),
        )
    ),
    _Sketch([Softmax()], [((1, 16),), ((256, 256),), ((1, 1024),)]),
    _Sketch(
        [Reshape((16,)), Reshape((56 * 56 * 64,)), Reshape((28 * 28 * 32,))],
        _VECTORS,
        types=(*TYPES, DataType.SIGNED32),
    ),
    _Sketch([Concat(-1)], _PAIRS, types=TYPES),
    _Sketch(
        [Transpose((1, 0)), *[Transpose((0, 3, 1, 2))] * 2],
        _VECTORS,
        types=(DataType.FLOAT32, DataType.QASYMM_S8),
    ),
    _Sketch(
        [Pad(((0, 0), (1, 1))), *[Pad(((0, 0), (1, 1), (1, 1), (0, 0)))] * 2],
        _VECTORS,
        types=(DataType.FLOAT32, DataType.QASYMM_S8),
    ),
    _Sketch(
        [Reduce(ReduceOperation.MEAN, (1,)), *[Reduce(ReduceOperation.MEAN, (1, 2))] * 2],
        _VECTORS,
        types=(DataType.FLOAT32, DataType.QASYMM_S8),
    ),
    *(
        _Sketch([ElementwiseUnary(operation)], _VECTORS, types=(DataType.FLOAT32,))
        for operation in (UnaryOperation.EXP, UnaryOperation.SQRT)
    ),
    _Sketch([LogicalBinary(LogicalBinaryOperation.LOGICAL_AND)], _PAIRS, types=(DataType.BOOLEAN,)),
    _Sketch(
        [Resize((size, size), ResizeMethod.BILINEAR) for size in (8, 56, 28)],
        [((1, 4, 4, 4),), ((1, 28, 28, 32),), ((1, 14, 14, 32),)],
        types=(DataType.FLOAT32, DataType.QASYMM_S8),
    ),
    _Sketch(
        [BatchMatMul()],
        [((1, 8, 8),) * 2, ((4, 128, 128),) * 2, ((4, 32, 32),) * 2],
        types=(DataType.FLOAT32, DataType.QASYMM_S8),
    ),
    _Sketch([Quantize()], _VECTORS, types=(DataType.FLOAT32,), output=DataType.QASYMM_S8),
    _Sketch([Dequantize()], _VECTORS, types=(DataType.QASYMM_S8,), output=DataType.FLOAT32),
)


def reference_workloads() -> Iterator[CalibrationWorkload]:
    """Every workload, the most informative one first.

    Notes
    -----
    Measurements may run out of time. So float32 and signed bytes come first, of these the smallest
    and the largest sizes; then the types that cost about as much; then the sizes between.
    """
    most, others = (DataType.FLOAT32, DataType.QASYMM_S8), (*_OTHER_TYPES, *_LEAST_TYPES)
    yield from _sized(most, 0)
    yield from _sized(most, 1)
    yield CalibrationWorkload(if_network(), DataType.BOOLEAN, 0)
    yield CalibrationWorkload(while_network(), DataType.SIGNED32, 0)
    for size in (0, 1):
        yield from _sized(others, size)
    for size in (2, 3):
        yield from _sized((*most, *others), size)


def _sized(types: Sequence[DataType], size: int) -> Iterator[CalibrationWorkload]:
    for data_type in types:
        for sketch in _SKETCHES:
            if data_type in sketch.types and size < len(sketch.inputs):
                yield CalibrationWorkload(_graph(sketch, data_type, size), data_type, size)


def scalar_workloads() -> Iterator[CalibrationWorkload]:
    """Additions, or the like, of single elements."""
    for data_type in (*FLOATS, DataType.SIGNED32, DataType.BOOLEAN):
        operation: Operation = ElementwiseBinary(BinaryOperation.ADD)
        if data_type is DataType.BOOLEAN:
            operation = LogicalBinary(LogicalBinaryOperation.LOGICAL_AND)
        sketch = _Sketch([operation], [((1,), (1,))], types=(data_type,))
        yield CalibrationWorkload(_graph(sketch, data_type, 0), data_type, 0)


def chain(length: int) -> Graph:
    """Additions one after the other, each of the last sum and the input."""
    net = Network(f"chain of {length}")
    value = first = net.input("x", TensorInfo((1, 16), DataType.FLOAT32))
    for _ in range(length):
        value = net.add(ElementwiseBinary(BinaryOperation.ADD), value, first)
    net.output("y", value)
    return net.build()


def random_inputs(graph: Graph) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """Elements for the inputs of a workload: the same ones each time."""
    generator = np.random.default_rng(_SEED)
    return [_elements(generator, value.info) for value in graph.inputs]


def _graph(sketch: _Sketch, data_type: DataType, size: int) -> Graph:
    """The network of one layer of a sketch."""
    operation = sketch.operations[size if len(sketch.operations) > 1 else 0]
    net = Network(operation.name)
    operands: list[Value] = [
        net.input(f"x{number}", _info(shape, data_type))
        for number, shape in enumerate(sketch.inputs[size])
    ]
    generator = np.random.default_rng(_SEED)
    if sketch.constants:
        weights, bias = sketch.constants[size]
        operands += [_weights(net, generator, weights, data_type), _bias(net, bias, data_type)]
    output = None
    if sketch.output or data_type.is_quantized:
        output = _output(operation, sketch.output or data_type)
    net.output("y", net.add(operation, *operands, output=output))
    return net.build()


def _info(shape: Shape | None, data_type: DataType, scale: float = 0.05) -> TensorInfo:
    """An info whose quantisation is the same for all tensors of a type."""
    if not data_type.is_quantized:
        return TensorInfo(shape, data_type)
    return TensorInfo(shape, data_type, Quantization.per_tensor(scale, _zero_point(data_type)))


def _zero_point(data_type: DataType) -> int:
    """Return the stored integer of 0: the middle."""
    return 128 if data_type is DataType.QASYMM_U8 else 0


def _output(operation: Operation, data_type: DataType) -> TensorInfo:
    """The info of an output, whose quantisation some operations fix."""
    low = -128 if data_type is DataType.QASYMM_S8 else 0
    function = getattr(operation, "function", None)
    if isinstance(operation, Softmax) or function is ActivationFunction.SIGMOID:
        return TensorInfo(None, data_type, Quantization.per_tensor(1 / 256, low))
    if function is ActivationFunction.TANH:
        return TensorInfo(None, data_type, Quantization.per_tensor(1 / 128, _zero_point(data_type)))
    return _info(None, data_type)


def _weights(
    net: Network, generator: np.random.Generator, shape: Shape, data_type: DataType
) -> Value:
    """Weights that go with inputs of a type."""
    info = _info(shape, data_type, 0.01)
    if data_type is DataType.QASYMM_S8:
        info = TensorInfo(shape, DataType.QSYMM_S8, Quantization.per_tensor(0.01))
    elements = _elements(generator, info)
    return net.constant(
        elements, name="weights", data_type=info.data_type, quantization=info.quantization
    )


def _bias(net: Network, shape: Shape, data_type: DataType) -> Value:
    """A bias of zeros."""
    constant = partial(net.constant, name="bias")
    if not data_type.is_quantized:
        return constant(data_type.zeros(shape), data_type=data_type)
    quantization = Quantization.per_tensor(0.05 * 0.01)
    return constant(
        np.zeros(shape, np.int32), data_type=DataType.SIGNED32, quantization=quantization
    )


def _elements(
    generator: np.random.Generator, info: TensorInfo
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Random elements of a type, between 0.5 and 1.5 where they are numbers."""
    shape, dtype = info.known_shape, info.data_type.dtype
    if info.data_type.is_float:
        return generator.uniform(0.5, 1.5, shape).astype(dtype)
    if info.data_type is DataType.BOOLEAN:
        return generator.integers(0, 2, shape).astype(dtype)
    if info.data_type is DataType.SIGNED32:
        return generator.integers(0, 3, shape).astype(dtype)
    low, high = info.data_type.integer_range
    return generator.integers(max(low, -127), high, shape).astype(dtype)
