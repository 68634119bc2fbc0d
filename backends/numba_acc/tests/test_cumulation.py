"""Sums and products of the elements so far: like CpuRef, bit for bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from armpy import Network, ops
from armpy.ops.tolerance import EXACT
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .support import (
    check_against_reference,
    isas_of_this_test,
    random_array,
)

SHAPES = (((3, 1, 70), 2), ((9, 33), 0), ((2, 5, 3), 1), ((13, 6), -1), ((4, 1), 1), ((0, 3), 1))
TYPES = (
    *(DataType.FLOAT32, DataType.SIGNED8, DataType.UNSIGNED8, DataType.SIGNED16),
    *(DataType.SIGNED32, DataType.UNSIGNED32, DataType.SIGNED64, DataType.UNSIGNED64),
)


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("operation", [ops.ReduceOperation.SUM, ops.ReduceOperation.PROD])
@pytest.mark.parametrize("data_type", TYPES, ids=lambda data_type: data_type.name)
def test_elements_are_added_in_the_order_of_the_reference(
    data_type: DataType, operation: ops.ReduceOperation
) -> None:
    network, given = Network(), {}
    for number, (shape, axis) in enumerate(SHAPES):
        x = network.input(f"x{number}", TensorInfo(shape, data_type))
        given[x.name] = random_array(x.info, number)
        for exclusive, reverse in itertools.product((False, True), repeat=2):
            layer = ops.Cumulate(operation, axis, exclusive, reverse)
            network.output(f"{x.name} {exclusive} {reverse}", network.add(layer, x))
    for isa in isas_of_this_test():
        check_against_reference(network, given, isa, tolerance=EXACT)


def test_signs_of_zeros_and_what_is_no_number_stay() -> None:
    values = np.array([[-0.0, -0.0, 1], [-0.0, np.inf, -np.inf], [0, np.nan, 1]], np.float32)
    network = Network()
    x = network.input("x", TensorInfo(values.shape, DataType.FLOAT32))
    for axis in (0, 1):
        layer = ops.Cumulate(ops.ReduceOperation.SUM, axis, exclusive=True)
        network.output(f"y{axis}", network.add(layer, x))
    for isa in isas_of_this_test():
        check_against_reference(network, {"x": values}, isa, tolerance=EXACT)
