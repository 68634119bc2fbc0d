"""Weights and biases that are computed: as CpuRef on every instruction set."""

from __future__ import annotations

import pytest

from armpy import Network, ops
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .one_layer import isas_for
from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    random_array,
    run_reference,
)

F32 = DataType.FLOAT32
CASES: list[tuple[Operation, tuple[int, ...], tuple[int, ...]]] = [
    (ops.Convolution2d(padding=ops.Padding.SAME), (2, 9, 7, 5), (67, 3, 3, 5)),
    (ops.Convolution2d(stride=(2, 1)), (1, 5, 6, 16), (32, 1, 1, 16)),
    (ops.FullyConnected(activation=ops.FusedActivation.RELU), (1, 19), (5, 19)),
    (ops.FullyConnected(), (21, 64), (33, 64)),
]


@pytest.mark.parametrize("computed", ["weights", "bias", "both", "weights without bias"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case[0]))
def test_layers(case: tuple[Operation, tuple[int, ...], tuple[int, ...]], computed: str) -> None:
    operation, *shapes = case
    infos = [TensorInfo(shape, F32) for shape in (*shapes, shapes[1][:1])]
    are_inputs = [True, computed != "bias", computed in ("bias", "both")]
    network = Network()
    feeds, operands = {}, []
    for number in range(2 if "without" in computed else 3):
        array = random_array(infos[number], number)
        if are_inputs[number]:
            feeds[f"x{number}"] = array
            operands.append(network.input(f"x{number}", infos[number]))
        else:
            operands.append(network.constant(array))
    network.output("y", network.add(operation, *operands))
    expected = run_reference(network, feeds)
    for isa in isas_for(operation):
        check_against_reference(network, feeds, isa, expected)


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_what_follows_is_computed_together_with_them(isa: str) -> None:
    network = Network()
    infos = [TensorInfo(shape, F32) for shape in ((4, 19), (5, 19), (4, 5))]
    x, weights, other = (network.input(f"x{n}", info) for n, info in enumerate(infos))
    y = network.add(ops.FullyConnected(), x, weights)
    y = network.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), y, other)
    network.output("y", network.add(ops.Activation(ops.ActivationFunction.RELU), y))
    feeds = {f"x{n}": random_array(info, n) for n, info in enumerate(infos)}
    check_against_reference(network, feeds, ISAS[ISA_NAMES.index(isa)])
