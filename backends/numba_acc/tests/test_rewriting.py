"""Layers that are written otherwise: float16, channels in front, rows along other axes."""

from __future__ import annotations

import numpy as np
from armpy_numba_acc.passes.rewriting import rewritten

from armpy import Network, ops
from armpy.graph import SubgraphView
from armpy.ops import BinaryOperation
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType

from .one_layer import isas_for
from .support import check_against_reference, random_array, run_reference

F16, F32, I32, BOOL = DataType.FLOAT16, DataType.FLOAT32, DataType.SIGNED32, DataType.BOOLEAN
NCHW, SAME = DataLayout.NCHW, ops.Padding.SAME


def halves(*shape: int) -> Array:
    """Numbers around 0."""
    return np.random.default_rng(3).normal(size=shape).astype(np.float16)


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
