"""Sums that lie next to where their scaled values are rounded the other way."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.packing.factors import Factors

from armpy import Network
from armpy.ops import Convolution2d, DepthwiseConvolution2d, FusedActivation
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import isas_of_this_test, run_compiled, run_reference

SCALES = [0.7, 0.5, 0.011, 1e-3, 3.1e-5, 2.0**-16 * 1.3, 4.1e-6]


def biases(scale: float) -> Array:
    """Sums around every half step of an output, for all that a byte holds and some more."""
    halves = np.arange(-300, 300) + 0.5
    nearest = np.rint(halves / scale).astype(np.int64)
    return np.concatenate([nearest - 1, nearest, nearest + 1]).astype(np.int32)


def network(scale: float, activation: FusedActivation, is_depthwise: bool) -> Network:
    """A layer of which the outputs are biases times a scale, whatever its input is."""
    net = Network()
    bias = biases(scale)
    count = len(bias)
    channels = count if is_depthwise else 4
    unit = Quantization.per_tensor(1.0, 3)
    source = net.input("x", TensorInfo((1, 2, 2, channels), DataType.QASYMM_S8, unit))
    weights = np.zeros((1, 1, 1, count) if is_depthwise else (count, 1, 1, 4), np.int8)
    constant = net.constant(
        weights, data_type=DataType.QSYMM_S8, quantization=Quantization.per_tensor(scale)
    )
    operation = (DepthwiseConvolution2d if is_depthwise else Convolution2d)(activation=activation)
    output = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(1.0, -11))
    net.output("y", net.add(operation, source, constant, net.constant(bias), output=output))
    return net


@pytest.mark.sampled(17)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("activation", [FusedActivation.NONE, FusedActivation.RELU])
@pytest.mark.parametrize("is_depthwise", [False, True], ids=["convolution", "depthwise"])
def test_results_are_exactly_the_references(
    scale: float, activation: FusedActivation, is_depthwise: bool
) -> None:
    net = network(scale, activation, is_depthwise)
    shape = net.build().inputs[0].info.known_shape
    inputs = {"x": np.full(shape, 5, np.int8)}
    expected = run_reference(net, inputs)["y"]
    for isa in isas_of_this_test():
        np.testing.assert_array_equal(run_compiled(net, inputs, isa)["y"], expected, isa.name)


def test_rounding_is_imprecise_where_sums_are_beyond_float32() -> None:
    # Halfway between two numbers of float32; 2**28 of these steps are 256 of the output's.
    small = 2.0**-20 * (1 + 2.0**-24)
    factors = Factors.of(np.array([0.01, small]), rounds_twice=True)
    for largest, is_imprecise in (([2.0**15, 2.0**15], False), ([2.0**15, 2.0**28], True)):
        _, rounding = factors.rounded(0, True, np.array(largest))
        assert rounding.is_imprecise is is_imprecise


def test_nudges_follow_the_scales_exponent() -> None:
    # 0.75 = 0.75 * 2**0, 0.01 = 0.64 * 2**-6, 3 = 0.75 * 2**2
    factors = Factors.of(np.array([0.75, 0.01, 3.0]), rounds_twice=True)
    np.testing.assert_array_equal(factors.nudges, np.array([0.0, 2.0**-7, 0.0], np.float32))


def test_zero_points_join_nudges_where_nothing_is_negative() -> None:
    factors = Factors.of(np.array([0.01]), rounds_twice=True)
    rounded, rounding = factors.rounded(7, False, np.array([1000.0]))
    # 0.01 = 0.64 * 2**-6: the nudge is 2**-7; the bytes lie between 256 and 512.
    assert rounded.nudges[0] == 2.0**-7 + 7 + 256.5
    assert rounding.base == 256
