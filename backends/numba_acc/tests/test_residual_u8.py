"""Additions that are computed with the quantised convolution in front of them, against CpuRef."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from armpy_numba_acc.passes.region import lower_region

from armpy import Model, Network, Runtime, RuntimeOptions
from armpy.graph import SubgraphView
from armpy.ops import BinaryOperation, Convolution2d, ElementwiseBinary, FusedActivation, Padding
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import (
    PRODUCT_ISAS,
    isas_of_this_test,
    run_compiled,
    run_reference,
)

U8, S8 = DataType.QASYMM_U8, DataType.QASYMM_S8
NONE, RELU, RELU6 = FusedActivation.NONE, FusedActivation.RELU, FusedActivation.RELU6


@dataclass(frozen=True)
class Case:
    """A convolution and an addition; scales are the product's, the other's and the sum's."""

    shape: tuple[int, ...] = (1, 9, 7, 16)
    filters: int = 16
    data_type: DataType = S8
    scales: tuple[float, float, float] = (0.3, 0.2, 0.35)
    activations: tuple[FusedActivation, FusedActivation] = (NONE, NONE)
    is_second: bool = False
    other_shape: tuple[int, ...] | None = None
    has_two_readers: bool = False


def network(case: Case) -> tuple[Network, dict[str, Array]]:
    """The network and its inputs."""
    random = np.random.default_rng(3)
    offset = 128 if case.data_type is U8 else 0
    low, high = case.data_type.integer_range

    def info(shape: tuple[int, ...] | None, scale: float, zero: int) -> TensorInfo:
        return TensorInfo(shape, case.data_type, Quantization.per_tensor(scale, offset + zero))

    net = Network()
    shapes = case.shape, case.other_shape or (*case.shape[:3], case.filters)
    image = net.input("x", info(shapes[0], 0.05, 4))
    other = net.input("other", info(shapes[1], case.scales[1], -9))
    weights = random.integers(-127, 128, (case.filters, 3, 3, case.shape[3])).astype(np.int8)
    scale = Quantization.per_tensor(20 * case.scales[0] / np.sqrt(weights[0].size) / 75)
    constant = net.constant(weights, data_type=DataType.QSYMM_S8, quantization=scale)
    bias = net.constant(random.integers(-9000, 9000, case.filters).astype(np.int32))
    convolution = Convolution2d(padding=Padding.SAME, activation=case.activations[0])
    product = net.add(convolution, image, constant, bias, output=info(None, case.scales[0], 13))
    addition = ElementwiseBinary(BinaryOperation.ADD, activation=case.activations[1])
    summands = (other, product) if case.is_second else (product, other)
    net.output("y", net.add(addition, *summands, output=info(None, case.scales[2], -20)))
    if case.has_two_readers:
        net.output("z", product)
    inputs = {
        name: random.integers(low, high + 1, shape).astype(case.data_type.dtype)
        for name, shape in zip(("x", "other"), shapes, strict=True)
    }
    return net, inputs


def kernels(net: Network) -> list[str]:
    """Names of the kernels that compute a network."""
    graph = net.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), PRODUCT_ISAS[0])
    return [kernel.name for kernel in program.kernels]


CASES = {
    "plain": Case(),
    "clamped": Case(activations=(NONE, RELU)),
    "clamped twice": Case(activations=(RELU6, RELU6)),
    "second summand": Case(is_second=True),
    "odd channels": Case((2, 5, 6, 3), 37, activations=(NONE, RELU)),
    "unsigned, odd": Case((1, 5, 5, 8), 21, U8),
    "unsigned, many": Case((1, 8, 8, 5), 100, U8, activations=(NONE, RELU)),
    "ties": Case(scales=(0.25, 0.25, 0.5)),
    "nearly ties": Case((2, 24, 24, 16), scales=(0.25, 0.375000012, 0.5)),
    "larger than the sum": Case((1, 15, 15, 16), scales=(1.0, 0.9, 0.1)),
    "far apart": Case(scales=(0.01, 3.0, 0.4)),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", CASES)
def test_sums_are_the_references(name: str) -> None:
    net, inputs = network(CASES[name])
    expected = run_reference(net, inputs)["y"].astype(int)
    assert len(np.unique(expected)) > 10, "the case compares constants"
    assert not any(kernel.startswith("elementwise") for kernel in kernels(net))
    for isa in isas_of_this_test(PRODUCT_ISAS):
        actual = run_compiled(net, inputs, isa)["y"].astype(int)
        np.testing.assert_array_equal(actual, expected, err_msg=isa.name)


@pytest.mark.parametrize(
    "case",
    [
        Case(other_shape=(1, 1, 1, 16)),
        Case(has_two_readers=True),
    ],
    ids=["broadcast", "read twice"],
)
def test_other_additions_stay_by_themselves(case: Case) -> None:
    net, inputs = network(case)
    assert any(kernel.startswith("elementwise") for kernel in kernels(net))
    expected, actual = (
        run_reference(net, inputs)["y"],
        run_compiled(net, inputs, PRODUCT_ISAS[0])["y"],
    )
    np.testing.assert_array_equal(actual, expected)


def test_an_addition_whose_output_is_far_finer_than_its_inputs_is_refused() -> None:
    net, _ = network(replace(Case(), scales=(1.2e5, 0.1, 0.1)))
    with Model(net, Runtime(RuntimeOptions(["NumbaAcc", "CpuRef"]))) as model:
        assert model.placement is not None
        (refusal,) = model.placement.refusals
    assert refusal.operation == "ElementwiseBinary"
    assert refusal.text == "scales that make results several times as large are not supported"
