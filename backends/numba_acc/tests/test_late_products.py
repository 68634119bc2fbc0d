"""Shortcuts that come after a product are added by its kernel."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.passes.late_products import with_late_products

from armpy import DataType, Network, TensorInfo, ops
from armpy.graph import SubgraphView

from .support import ISAS, check_against_reference, program_of

ADD = ops.BinaryOperation.ADD
MORE_CHANNELS = ops.Pad(pad_list=((0, 0), (0, 0), (0, 0), (0, 4)))


@pytest.mark.parametrize("is_first", [True, False])
def test_shortcut_of_blazeface_is_added_by_the_convolution_in_front_of_it(is_first: bool) -> None:
    network = Network()
    x = network.input("x", TensorInfo((1, 6, 8, 24), DataType.FLOAT32))
    weights = np.random.default_rng(0).normal(size=(28, 1, 1, 24)).astype(np.float32)
    product = network.add(ops.Convolution2d(), x, network.constant(weights))
    shortcut = network.add(MORE_CHANNELS, x)
    summands = (product, shortcut) if is_first else (shortcut, product)
    network.output("y", network.add(ops.ElementwiseBinary(ADD), *summands))
    program = program_of(network)
    assert [info.operation for info in program.infos] == ["Pad", "Convolution2d"]
    image = np.random.default_rng(1).normal(size=(1, 6, 8, 24)).astype(np.float32)
    check_against_reference(network, {"x": image}, ISAS[0])


def test_product_that_the_other_summand_reads_stays_in_front_of_it() -> None:
    network = Network()
    x = network.input("x", TensorInfo((1, 6, 8, 24), DataType.FLOAT32))
    weights = np.ones((24, 1, 1, 24), np.float32)
    product = network.add(ops.Convolution2d(), x, network.constant(weights))
    other = network.add(ops.Activation(ops.ActivationFunction.RELU), product)
    network.output("y", network.add(ops.ElementwiseBinary(ADD), product, other))
    graph = network.build()
    view = SubgraphView.of(graph, graph.layers)
    assert with_late_products(view) is view
