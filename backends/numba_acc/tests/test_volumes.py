"""Convolutions of volumes: their commands and weights."""

from __future__ import annotations

import numpy as np
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.passes.rewriting import rewritten

from armpy import DataType, Network, TensorInfo, ops
from armpy.graph import SubgraphView
from armpy.ops.operation import Array
from armpy.types import DataLayout

from .support import (
    ISAS,
    check_against_reference,
    program_of,
    random_array,
)

F32 = DataType.FLOAT32
SAME = ops.Padding.SAME


def network_of(
    operation: ops.Convolution3d,
    volume: tuple[int, ...],
    weights_shape: tuple[int, ...] = (9, 3, 3, 3, 3),
) -> tuple[Network, dict[str, Array]]:
    """A network of a convolution of a volume, and an input for it."""
    network, info = Network(), TensorInfo(volume, F32)
    weights = network.constant(random_array(TensorInfo(weights_shape, F32), 1))
    filters = weights_shape[0]
    bias = network.constant(np.arange(-4, filters - 4).astype(np.float32))
    network.output("y", network.add(operation, network.input("x", info), weights, bias))
    return network, {"x": random_array(info)}


def test_slices_of_padding_are_not_multiplied() -> None:
    operation = ops.Convolution3d(padding=((1, 1), (0, 0), (0, 0)))
    network, inputs = network_of(operation, (2, 4, 5, 6, 8), (9, 3, 1, 1, 8))
    program = program_of(network)
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
    program = program_of(network)
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
        network, _ = network_of(ops.Convolution3d(padding=SAME), (count, 4, 6, 6, 3))
        graph = network.build()
        sizes.append(lower_region(SubgraphView.of(graph, graph.layers), ISAS[0]).constants.nbytes)
    assert sizes[0] == sizes[1]
