"""Grouped convolutions with a group for each channel are depthwise convolutions."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.passes.grouping import with_depthwise

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.graph import SubgraphView

from .support import ISAS, check_against_reference, random_array

CHANNELS = 20


def network_of(kind: DataType, filters: int, depth: int = 1) -> Network:
    """A 3x3 convolution of 20 channels, of which every filter sees some."""
    network = Network()
    is_float = kind is DataType.FLOAT32
    quantization = None if is_float else Quantization.per_tensor(0.05, 3)
    info = TensorInfo((2, 7, 6, CHANNELS), kind, quantization=quantization)
    shape = TensorInfo((filters, 3, 3, depth), kind if is_float else DataType.QSYMM_S8)
    scales = tuple(0.01 + 0.001 * number for number in range(filters))
    weights = network.constant(
        random_array(shape, 1),
        data_type=shape.data_type,
        quantization=None if is_float else Quantization.per_axis(scales, 0),
    )
    operation = ops.Convolution2d(
        stride=(2, 1), padding=ops.Padding.SAME, activation=ops.FusedActivation.RELU
    )
    output = TensorInfo(None, kind, quantization=quantization)
    network.output("y", network.add(operation, network.input("x", info), weights, output=output))
    return network


@pytest.mark.sampled(3)
@pytest.mark.parametrize("filters", [CHANNELS, 3 * CHANNELS])
@pytest.mark.parametrize("kind", [DataType.FLOAT32, DataType.QASYMM_S8])
def test_channels_with_filters_of_their_own_are_depthwise(kind: DataType, filters: int) -> None:
    network = network_of(kind, filters)
    graph = network.build()
    (layer,) = with_depthwise(SubgraphView.of(graph, graph.layers)).layers
    assert isinstance(layer.operation, ops.DepthwiseConvolution2d)
    turned, original = layer.constant("weights"), graph.layers[0].constant("weights")
    assert turned is not None
    assert original is not None
    np.testing.assert_array_equal(turned[0, :, :, 7], original[7, :, :, 0])
    inputs = {"x": random_array(TensorInfo((2, 7, 6, CHANNELS), kind))}
    check_against_reference(network, inputs, ISAS[0])


def test_groups_of_several_channels_stay() -> None:
    graph = network_of(DataType.FLOAT32, CHANNELS, depth=2).build()
    view = SubgraphView.of(graph, graph.layers)
    assert with_depthwise(view) is view
