"""Layers that are written otherwise: float16, channels in front, rows along other axes."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.passes.rewriting import rewritten

from armpy import Network, ops
from armpy.graph import SubgraphView
from armpy.ops import BinaryOperation
from armpy.ops.operation import Array, Operation
from armpy.ops.tolerance import EXACT, Tolerance
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType

from .one_layer import check_layer, isas_for, quantized
from .support import check_against_reference, random_array, run_reference

F16, F32, I32, BOOL = DataType.FLOAT16, DataType.FLOAT32, DataType.SIGNED32, DataType.BOOLEAN
S8, U8 = DataType.QASYMM_S8, DataType.QASYMM_U8
NCHW, SAME = DataLayout.NCHW, ops.Padding.SAME
STEP = Tolerance(2.0**-11, 2.0**-10)
"""One step of float16: float32 that differs by a rounding may round to the next one."""


def halves(*shape: int) -> Array:
    """Numbers around 0."""
    return np.random.default_rng(3).normal(size=shape).astype(np.float16)


def check_network(
    operation: Operation, operands: list[Array], tolerance: Tolerance | None, is_constant: bool
) -> None:
    """Compare a layer with CpuRef; operands after the first may be constants."""
    network = Network()
    feeds = {"x": operands[0]}
    values = [network.input("x", TensorInfo(operands[0].shape, _type_of(operands[0])))]
    for number, array in enumerate(operands[1:]):
        if is_constant:
            values.append(network.constant(array))
        else:
            feeds[f"y{number}"] = array
            values.append(network.input(f"y{number}", TensorInfo(array.shape, _type_of(array))))
    network.output("out", network.add(operation, *values))
    expected = run_reference(network, feeds)
    for isa in isas_for(operation):
        check_against_reference(network, feeds, isa, expected, tolerance)


def _type_of(array: Array) -> DataType:
    """Of an array that is not quantised."""
    return {np.dtype(np.float16): F16, np.dtype(np.float32): F32, np.dtype(bool): BOOL}[array.dtype]


OPERATIONS: list[tuple[Operation, list[Array]]] = [
    (ops.ElementwiseBinary(BinaryOperation.ADD), [halves(2, 3, 17), halves(17)]),
    (ops.ElementwiseBinary(BinaryOperation.MUL), [halves(2, 67), halves(2, 67)]),
    (ops.ElementwiseUnary(ops.UnaryOperation.EXP), [halves(5, 19)]),
    (ops.Activation(ops.ActivationFunction.SIGMOID), [halves(5, 19)]),
    (ops.Activation(ops.ActivationFunction.HARD_SWISH), [halves(5, 19)]),
    (ops.Prelu(), [halves(5, 19), halves(19)]),
    (ops.Softmax(), [halves(3, 40)]),
    (ops.Softmax(axis=1), [halves(2, 7, 5)]),
    (ops.LogSoftmax(), [halves(3, 40)]),
    (ops.L2Normalization(axis=0), [halves(7, 9)]),
    (ops.Comparison(ops.ComparisonOperation.LESS), [halves(4, 33), halves(4, 33)]),
    (ops.Reduce(ops.ReduceOperation.MEAN, (1, 2)), [halves(2, 5, 7, 9)]),
    (ops.Pooling2d(ops.PoolingAlgorithm.AVERAGE, (3, 3)), [halves(1, 7, 9, 17)]),
    (ops.Pooling2d(ops.PoolingAlgorithm.MAX, (2, 2), data_layout=NCHW), [halves(1, 5, 8, 9)]),
    (ops.Reshape((19, 5)), [halves(5, 19)]),
    (ops.Transpose((1, 0)), [halves(5, 19)]),
    (ops.Select(), [np.arange(35).reshape(5, 7) % 3 == 0, halves(5, 7), halves(5, 7)]),
]


@pytest.mark.parametrize("case", OPERATIONS, ids=lambda case: repr(case[0]))
def test_float16_is_computed_in_float32(case: tuple[Operation, list[Array]]) -> None:
    check_network(*case, STEP, False)


WEIGHTED = [
    (ops.Convolution2d(padding=SAME), (2, 9, 7, 5), (11, 3, 3, 5)),
    (ops.Convolution2d(padding=SAME, stride=(2, 2), data_layout=NCHW), (2, 5, 9, 7), (11, 3, 3, 5)),
    (ops.Convolution2d(data_layout=NCHW), (1, 8, 5, 7), (6, 2, 2, 4)),
    (ops.DepthwiseConvolution2d(padding=SAME, data_layout=NCHW), (1, 8, 5, 7), (1, 3, 3, 8)),
    (ops.TransposeConvolution2d(stride=(2, 2), data_layout=NCHW), (1, 5, 4, 3), (6, 3, 3, 5)),
    (ops.FullyConnected(), (4, 35), (9, 35)),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32], ids=str)
@pytest.mark.parametrize("case", WEIGHTED, ids=lambda case: repr(case[0]))
def test_weighted_layers(
    case: tuple[Operation, tuple[int, ...], tuple[int, ...]], dtype: type[np.floating]
) -> None:
    operation, *shapes = case
    channels = shapes[1][3] if isinstance(operation, ops.DepthwiseConvolution2d) else shapes[1][0]
    operands = [halves(*shape).astype(dtype) for shape in (*shapes, (channels,))]
    tolerance = None if dtype is np.float32 else Tolerance(2.0**-8, 2.0**-10)
    check_network(operation, operands, tolerance, True)


@pytest.mark.parametrize("data_type", [S8, U8], ids=lambda t: t.name)
def test_channels_of_bytes_may_be_in_front(data_type: DataType) -> None:
    low = data_type.integer_range[0]
    shape = (2, 5, 8, 9)
    info = quantized(shape, data_type, 0.1, low + 100)
    pooled = quantized((2, 5, 4, 4), data_type, 0.1, low + 100)
    pooling = ops.Pooling2d(ops.PoolingAlgorithm.MAX, (2, 2), (2, 2), data_layout=NCHW)
    check_layer(pooling, [info], pooled, EXACT)
    softmax = quantized(shape, data_type, 1 / 256, low)
    check_layer(ops.Softmax(axis=1), [info], softmax)


def test_layers_after_each_other_are_not_transposed_in_between() -> None:
    network = Network()
    value = network.input("x", TensorInfo((1, 5, 9, 7), F32))
    for channels in (5, 6):
        weights = random_array(TensorInfo((6, 3, 3, channels), F32))
        operation = ops.Convolution2d(padding=SAME, data_layout=NCHW)
        value = network.add(operation, value, network.constant(weights))
    network.output("y", value)
    graph = network.build()
    layers = rewritten(SubgraphView.of(graph, graph.layers)).layers
    names = [layer.operation.name for layer in layers]
    assert names == ["Transpose", "Convolution2d", "Convolution2d", "Transpose"]
    feeds = {"x": random_array(TensorInfo((1, 5, 9, 7), F32), 4)}
    expected = run_reference(network, feeds)
    for isa in isas_for(ops.Convolution2d()):
        check_against_reference(network, feeds, isa, expected)


def test_constants_alone_may_be_all_that_is_converted() -> None:
    network = Network()
    floats, weights = halves(2, 8).astype(np.float32), halves(2, 8)
    real = network.add(
        ops.Dequantize(), network.constant(weights), output=TensorInfo(weights.shape, F32)
    )
    value = network.input("x", TensorInfo(floats.shape, F32))
    network.output("y", network.add(ops.ElementwiseBinary(BinaryOperation.ADD), value, real))
    isa = isas_for(ops.Dequantize())[0]
    check_against_reference(network, {"x": floats}, isa, {"y": floats + weights})
