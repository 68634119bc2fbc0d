"""Convolutions of volumes: their commands and weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.passes.rewriting import rewritten

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.graph import SubgraphView
from armpy.ops.operation import Array
from armpy.types import DataLayout

from .support import (
    ISAS,
    check_against_reference,
    random_array,
)

F32, S8, S16 = DataType.FLOAT32, DataType.QASYMM_S8, DataType.QSYMM_S16
SAME = ops.Padding.SAME

Volume = ops.Convolution3d | ops.TransposeConvolution3d


class Case(NamedTuple):
    """A convolution of a volume."""

    operation: Volume
    volume: tuple[int, ...] = (1, 5, 7, 6, 3)
    weights: tuple[int, ...] = (9, 3, 3, 3, 3)
    data_type: DataType = F32


def quantization_of(data_type: DataType, scale: float, zero_point: int) -> Quantization | None:
    """That of a tensor; none of floats."""
    if data_type is F32:
        return None
    return Quantization.per_tensor(scale, 0 if data_type is S16 else zero_point)


def network_of(case: Case) -> tuple[Network, dict[str, Array]]:
    """A network of the layer, and an input for it."""
    network, kind = Network(), case.data_type
    info = TensorInfo(case.volume, kind, quantization=quantization_of(kind, 0.05, 3))
    weights_info = TensorInfo(case.weights, F32 if kind is F32 else S8)
    filters = case.weights[0]
    weights = network.constant(
        random_array(weights_info, 1),
        data_type=weights_info.data_type,
        quantization=quantization_of(weights_info.data_type, 0.01, 0),
    )
    bias = np.arange(-4, filters - 4).astype(np.float32)
    if kind is not F32:
        bias = (bias * 99).astype(np.int64 if kind is S16 else np.int32)
    values = network.input("x", info), weights, network.constant(bias)
    quantization = quantization_of(kind, 0.2, -9)
    output = TensorInfo(None, kind, quantization=quantization)
    network.output("y", network.add(case.operation, *values, output=output))
    return network, {"x": random_array(info)}


def test_slices_of_padding_are_not_multiplied() -> None:
    operation = ops.Convolution3d(padding=((1, 1), (0, 0), (0, 0)))
    network, inputs = network_of(Case(operation, (2, 4, 5, 6, 8), (9, 3, 1, 1, 8)))
    graph = network.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), ISAS[0])
    # Of each volume, two slices of four see two slices; nothing is copied.
    assert [info.part for info in program.infos] == [""] * 6
    operations = [info.num_operations for info in program.infos]
    assert sum(operations) == 2 * (2 + 3 + 3 + 2) * 2 * 5 * 6 * 9 * 8
    check_against_reference(network, inputs, ISAS[0])


def test_what_follows_is_computed_with_each_volume_of_a_batch() -> None:
    network = Network()
    info = TensorInfo((3, 4, 5, 6, 8), F32)
    x, weights = network.input("x", info), network.input("w", TensorInfo((8, 3, 3, 3, 8), F32))
    value = network.add(ops.Activation(ops.ActivationFunction.ABS), x)
    convolved = network.add(ops.Convolution3d(padding=SAME), value, weights)
    total = network.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), convolved, value)
    network.output("y", network.add(ops.Activation(ops.ActivationFunction.RELU), total))
    inputs = {"x": random_array(info), "w": random_array(TensorInfo((8, 3, 3, 3, 8), F32), 2)}
    graph = network.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), ISAS[0])
    products = [info for info in program.infos if info.num_operations]
    # Sum and clamp have no commands of their own.
    assert [(info.operation, info.part) for info in products][-3:] == [("Convolution3d", "")] * 3
    check_against_reference(network, inputs, ISAS[0])


def test_channels_in_front_are_turned_to_the_back() -> None:
    network = Network()
    x = network.input("x", TensorInfo((2, 3, 5, 7, 6), F32))
    weights = network.constant(np.ones((4, 1, 3, 3, 3), np.float32))
    network.output("y", network.add(ops.Convolution3d(data_layout=DataLayout.NCDHW), x, weights))
    graph = network.build()
    _, convolution, _ = rewritten(SubgraphView.of(graph, graph.layers)).layers
    assert convolution.operation == ops.Convolution3d()
    assert convolution["input"].info.shape == (2, 5, 7, 6, 3)


def test_a_batch_of_volumes_keeps_one_copy_of_the_weights() -> None:
    sizes = []
    for count in (1, 6):
        network, _ = network_of(Case(ops.Convolution3d(padding=SAME), (count, 4, 6, 6, 3)))
        graph = network.build()
        sizes.append(lower_region(SubgraphView.of(graph, graph.layers), ISAS[0]).constants.nbytes)
    assert sizes[0] == sizes[1]
