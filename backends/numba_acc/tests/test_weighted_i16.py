"""Convolutions and matrix products of 16-bit elements: bit for bit CpuRef's results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from armpy_numba_acc.kernels import convolution_i16
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.packing.weights_i16 import LARGEST_SUM, Pieces
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.passes.support import support

from armpy import Network
from armpy.graph import SubgraphView
from armpy.ops import (
    Convolution2d,
    DepthwiseConvolution2d,
    FullyConnected,
    FusedActivation,
    Padding,
    TransposeConvolution2d,
)
from armpy.ops.operation import Array, Operation
from armpy.ops.shapes import PaddingSpec
from armpy.ops.tolerance import EXACT
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    run_in_turn,
    run_reference,
)

S16, SYMM, S8 = DataType.QSYMM_S16, DataType.QSYMM_S8, DataType.QASYMM_S8
RELU, RELU6, SAME = FusedActivation.RELU, FusedActivation.RELU6, Padding.SAME


@dataclass(frozen=True)
class Case:
    """A layer; `scale` is the output's in standard deviations of the sums over 2**13."""

    shape: tuple[int, ...]
    filters: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: PaddingSpec = Padding.VALID
    activation: FusedActivation = FusedActivation.NONE
    bias: type | None = np.int64
    depth: int = 0
    scale: float = 1.0


def network(
    operation: Operation, case: Case, weights_shape: tuple[int, ...], axis: int, seed: int = 0
) -> tuple[Network, dict[str, Array]]:
    """A network of one layer, and its input: a tenth are the type's extremes."""
    random = np.random.default_rng(seed)
    scales = random.uniform(0.005, 0.02, weights_shape[axis]).tolist()
    weights = random.integers(-128, 128, weights_shape).astype(np.int8)
    spread = 0.01 * 1e-4 * 75 * 19000 * np.sqrt(np.prod(weights_shape) / weights_shape[axis])
    net = Network()
    x = net.input("x", TensorInfo(case.shape, S16, Quantization.per_tensor(1e-4, 0)))
    quantization = Quantization.per_axis(scales, axis)
    constant = net.constant(weights, data_type=SYMM, quantization=quantization)
    output = Quantization.per_tensor(float(spread) / (1 << 13) * case.scale, 0)
    bias = None
    if case.bias is not None:
        bias = net.constant(random.integers(-(10**6), 10**6, weights_shape[axis]).astype(case.bias))
    net.output("y", net.add(operation, x, constant, bias, output=TensorInfo(None, S16, output)))
    data = random.integers(-(1 << 15), 1 << 15, case.shape)
    data[random.random(case.shape) < 0.1] = -(1 << 15)
    return net, {"x": data.astype(np.int16)}


CONVOLUTIONS = {
    "one channel, one filter": Case((1, 4, 3, 1), 1),
    "pointwise": Case((1, 9, 11, 24), 40),
    "pointwise, odd": Case((3, 5, 7, 33), 67, activation=RELU6, scale=0.01),
    "pointwise, strided": Case((2, 8, 9, 16), 24, stride=(2, 3)),
    "no bias": Case((1, 7, 7, 64), 96, activation=RELU, bias=None),
    "a bias of 32 bits": Case((1, 7, 6, 19), 35, (3, 3), padding=SAME, bias=np.int32),
    "a bias of 32 bits, clamped": Case((1, 7, 6, 9), 5, activation=RELU, bias=np.int32),
    "first layer": Case((1, 23, 24, 3), 32, (3, 3), (2, 2), padding=SAME, activation=RELU),
    "own borders": Case((1, 9, 8, 5), 7, (3, 2), (2, 1), padding=((0, 3), (2, 0))),
    "dilated": Case((1, 12, 12, 5), 17, (3, 3), dilation=(2, 3), padding=SAME),
    "sums of several pieces": Case((1, 5, 5, 67), 21, (5, 5), dilation=(1, 2), padding=SAME),
    "long rows of elements": Case((1, 4, 4, 333), 18, (3, 3), padding=SAME),
    "one long tap": Case((2, 1, 3, 1501), 33, bias=np.int32),
    "groups": Case((1, 6, 5, 9), 12, (3, 3), padding=SAME, depth=3),
    "factors above 1": Case((1, 6, 6, 20), 33, scale=1e-6),
    "factors above 1, a bias of 32 bits": Case((1, 6, 6, 20), 33, scale=1e-6, bias=np.int32),
}


def convolution(case: Case) -> tuple[Network, dict[str, Array]]:
    """A network of one convolution."""
    operation = Convolution2d(case.stride, case.dilation, case.padding, case.activation)
    return network(operation, case, (case.filters, *case.kernel, case.depth or case.shape[3]), 0)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str, isa: Isa) -> None:
    net, inputs = convolution(CONVOLUTIONS[name])
    check_against_reference(net, inputs, isa, tolerance=EXACT)


DEPTHWISE = {
    "3 by 3": Case((2, 9, 10, 24), 24, (3, 3), padding=SAME, activation=RELU6, scale=0.01),
    "strided": Case((1, 12, 11, 7), 7, (3, 3), (2, 2), padding=SAME, bias=np.int32),
    "dilated": Case((1, 12, 11, 40), 40, (3, 2), dilation=(2, 3), padding=SAME),
    "several of each": Case((1, 6, 7, 5), 15, (3, 3), padding=SAME, bias=None),
    "one channel": Case((1, 9, 9, 1), 9, (3, 3), padding=SAME),
    "sums of several pieces": Case((1, 33, 30, 3), 3, (32, 29)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
@pytest.mark.parametrize("name", DEPTHWISE)
def test_depthwise(name: str, isa: Isa) -> None:
    case = DEPTHWISE[name]
    operation = DepthwiseConvolution2d(
        stride=case.stride,
        dilation=case.dilation,
        padding=case.padding,
        activation=case.activation,
    )
    net, inputs = network(operation, case, (1, *case.kernel, case.filters), 3)
    check_against_reference(net, inputs, isa, tolerance=EXACT)


TRANSPOSED = {
    "2 by 2, every second": Case((1, 6, 7, 33), 18, (2, 2), (2, 2), padding=SAME),
    "3 by 3, every second": Case((2, 5, 4, 8), 5, (3, 3), (2, 2), padding=SAME, bias=None),
    "3 by 3": Case((1, 5, 6, 4), 7, (3, 3), bias=np.int32),
    "holes": Case((1, 3, 4, 6), 4, (2, 1), (3, 2)),
}


@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed(name: str, isa: Isa) -> None:
    case = TRANSPOSED[name]
    sizes = (
        tuple(size * step for size, step in zip(case.shape[1:3], case.stride, strict=True))
        if case.padding is SAME
        else tuple(
            (size - 1) * step + kernel
            for size, step, kernel in zip(case.shape[1:3], case.stride, case.kernel, strict=True)
        )
    )
    operation = TransposeConvolution2d(
        stride=case.stride,
        padding=case.padding,
        output_shape=(case.shape[0], *sizes, case.filters),
    )
    net, inputs = network(operation, case, (case.filters, *case.kernel, case.shape[3]), 0)
    check_against_reference(net, inputs, isa, tolerance=EXACT)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
@pytest.mark.parametrize(
    "case",
    [
        Case((1, 64), 10),
        Case((5, 33), 40, activation=RELU),
        Case((3, 1600), 17, bias=np.int32),
        Case((2, 8), 3, bias=None, scale=1e-5),
    ],
    ids=str,
)
def test_fully_connected(case: Case, isa: Isa) -> None:
    net, inputs = network(FullyConnected(case.activation), case, (case.filters, case.shape[1]), 0)
    check_against_reference(net, inputs, isa, tolerance=EXACT)


@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
@pytest.mark.parametrize("weight", [-128, 127])
def test_largest_products_do_not_overflow(weight: int, isa: Isa) -> None:
    depth = 4000
    net = Network()
    x = net.input("x", TensorInfo((1, 1, 1, depth), S16, Quantization.per_tensor(1.0, 0)))
    weights = net.constant(
        np.full((2, 1, 1, depth), weight, np.int8),
        data_type=SYMM,
        quantization=Quantization.per_axis([1.0, 0.5], 0),
    )
    # The sum, -2**15 * weight * depth, is halved and quartered in units of weight * depth.
    output = Quantization.per_tensor(2.0 * depth * abs(weight), 0)
    net.output("y", net.add(Convolution2d(), x, weights, output=TensorInfo(None, S16, output)))
    data = {"x": np.full((1, 1, 1, depth), -(1 << 15), np.int16)}
    sign = 1 if weight < 0 else -1
    expected = {"y": np.array([[[[sign << 14, sign << 13]]]], np.int16)}
    check_against_reference(net, data, isa, expected, EXACT)
    np.testing.assert_array_equal(run_reference(net, data)["y"], expected["y"])


@pytest.mark.parametrize(
    "shape", [(3, 1, 4000), (5, 9, 64), (2, 600, 1), (4, 25, 511), (1, 2, 513)]
)
def test_pieces_fit_32_bits_and_hold_every_weight_once(shape: tuple[int, ...]) -> None:
    weights = np.random.default_rng(3).integers(-128, 128, shape).astype(np.int8)
    pieces = Pieces.of(weights)
    columns, taps, depth = pieces.values.shape
    for first in range(0, taps, pieces.at_once):
        part = pieces.values[:, first : first + pieces.at_once].astype(np.int64)
        assert np.abs(part).sum(axis=(1, 2)).max() <= LARGEST_SUM
    # Put back to where their elements are: taps are laid out one after the other.
    places = np.zeros((columns, shape[1], shape[2] + depth), np.int64)
    for number, start in enumerate(pieces.starts):
        tap = number * shape[1] // taps
        places[:, tap, start : start + depth] += pieces.values[:, number]
    np.testing.assert_array_equal(places[..., : shape[2]], weights)
    assert not places[..., shape[2] :].any()
    assert (pieces.starts + depth <= shape[2] + shape[2] % 2).all()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"x": Quantization.per_tensor(1e-4, 3)}, "zero points are not supported"),
        ({"y": Quantization.per_tensor(1e-12, 0)}, "16384 times as large"),
        ({"w": Quantization.per_tensor(0.01, 5)}, "zero points are not supported"),
    ],
)
def test_refusals_have_reasons(changed: dict[str, Quantization], reason: str) -> None:
    plain = Quantization.per_tensor(0.01, 0)
    weights = TensorInfo((4, 1, 1, 3), S8, changed.get("w", plain), is_constant=True)
    source = TensorInfo((1, 2, 2, 3), S16, changed.get("x", plain))
    output = TensorInfo((1, 2, 2, 4), S16, changed.get("y", plain))
    answer = support(Convolution2d(), [source, weights], [output])
    assert not answer
    assert reason in str(answer)


@pytest.mark.parametrize("name", ["pointwise, odd", "long rows of elements"])
def test_threads_share_the_work(name: str) -> None:
    net, inputs = convolution(CONVOLUTIONS[name])
    expected = run_reference(net, inputs)["y"]
    graph = net.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), ISAS[0], 3)
    output = np.zeros_like(expected)
    run_in_turn(program, ISAS[0], [inputs["x"], output], 3)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("rounding", ["plain", "signed", "real"])
def test_kernels_compile_for_arm(rounding: str) -> None:
    neon = make_isa("neon", "aarch64-linux-gnu", "cortex-a76", frozenset({"neon", "dotprod"}))
    for is_depthwise in (0, 1):
        function = convolution_i16.make(neon, 4, 1, 1, is_depthwise, "i16", rounding)
        assert "mla" in compile_assembly(function, "kernel", neon)
