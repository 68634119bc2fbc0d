"""Quantised convolutions and matrix products against CpuRef."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from armpy_numba_acc.kernels import convolution_u8
from armpy_numba_acc.llvm.arithmetic.dots import ByteProducts
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.llvm.values import CodeValue
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.passes.support import support

from armpy import Network
from armpy.graph import SubgraphView
from armpy.ops import Convolution2d, FullyConnected, FusedActivation, Padding
from armpy.ops.operation import Array, Operation
from armpy.ops.shapes import PaddingSpec
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import (
    PRODUCT_ISAS,
    PRODUCT_NAMES,
    check_against_reference,
    isas_of_this_test,
    run_compiled,
    run_in_turn,
    run_reference,
)

U8, S8, SYMM = DataType.QASYMM_U8, DataType.QASYMM_S8, DataType.QSYMM_S8


@dataclass(frozen=True)
class Case:
    """A layer; `scale` is the output's in standard deviations of the sums over 64."""

    shape: tuple[int, ...]
    filters: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: PaddingSpec = Padding.VALID
    activation: FusedActivation = FusedActivation.NONE
    types: tuple[DataType, DataType] = (S8, SYMM)
    weights_zero_point: int = 0
    scale: float = 1.0
    has_bias: bool = True
    weights_spread: float = 0.0  # of weights around their zero point; of any value if it is 0


def quantization(data_type: DataType, scale: float, offset: int) -> Quantization:
    """A per-tensor quantisation with its zero point off the middle of the range."""
    return Quantization.per_tensor(scale, offset + (128 if data_type is U8 else 0))


def network(
    operation: Operation, case: Case, weights_shape: tuple[int, ...], random: np.random.Generator
) -> tuple[Network, dict[str, Array]]:
    """A network of one layer, and its input."""
    kind, weights_kind = case.types
    low, high = kind.integer_range
    weights = random.integers(*weights_kind.integer_range, weights_shape, endpoint=True)
    if case.weights_spread:
        small = random.laplace(case.weights_zero_point, case.weights_spread, weights_shape)
        weights = np.rint(small).astype(np.int64).clip(*weights_kind.integer_range)
    if weights_kind is SYMM:
        scales = Quantization.per_axis(random.uniform(0.005, 0.02, weights_shape[0]).tolist(), 0)
    else:
        scales = Quantization.per_tensor(0.01, case.weights_zero_point)
    spread = 0.05 * 0.01 * 75 * 75 * np.sqrt(np.prod(weights_shape[1:]))
    net = Network()
    source = net.input("x", TensorInfo(case.shape, kind, quantization(kind, 0.05, 9)))
    constant = net.constant(
        weights.astype(weights_kind.dtype), data_type=weights_kind, quantization=scales
    )
    bias = random.integers(-9000, 9000, weights_shape[0]).astype(np.int32)
    output = TensorInfo(None, kind, quantization(kind, float(spread) / 64 * case.scale, -17))
    operands = (source, constant, net.constant(bias) if case.has_bias else None)
    net.output("y", net.add(operation, *operands, output=output))
    return net, {"x": random.integers(low, high, case.shape, endpoint=True).astype(kind.dtype)}


def convolution(case: Case, seed: int = 0) -> tuple[Network, dict[str, Array]]:
    """A network of one convolution."""
    operation = Convolution2d(case.stride, case.dilation, case.padding, case.activation)
    shape = (case.filters, *case.kernel, case.shape[3])
    return network(operation, case, shape, np.random.default_rng(seed))


def fully_connected(case: Case, depth: int, seed: int = 0) -> tuple[Network, dict[str, Array]]:
    """A network of one matrix product."""
    operation = FullyConnected(case.activation)
    return network(operation, case, (case.filters, depth), np.random.default_rng(seed))


RELU, RELU6 = FusedActivation.RELU, FusedActivation.RELU6
SAME = Padding.SAME
BOTH_U8 = (U8, U8)
CONVOLUTIONS = {
    "one channel, one filter": Case((1, 4, 3, 1), 1),
    "pointwise": Case((1, 9, 11, 24), 40),
    "pointwise, odd": Case((3, 5, 7, 33), 67, activation=RELU6),
    "pointwise, strided": Case((2, 8, 9, 16), 24, stride=(2, 3)),
    "pointwise, no bias": Case((1, 7, 7, 64), 96, activation=RELU, has_bias=False),
    "first layer": Case((1, 23, 24, 3), 32, (3, 3), (2, 2), padding=SAME, activation=RELU6),
    "10 by 4, one channel": Case((1, 49, 10, 1), 64, (10, 4), (2, 2), padding=SAME),
    "3 by 3, batches": Case((3, 8, 6, 16), 16, (3, 3), padding=SAME),
    "own borders": Case((1, 9, 8, 5), 7, (3, 2), (2, 1), padding=((0, 3), (2, 0))),
    "dilated": Case((1, 12, 12, 5), 17, (3, 3), dilation=(2, 3), padding=SAME),
    "dilated in height": Case((1, 12, 9, 6), 8, (3, 3), dilation=(2, 1)),
    "u8 weights": Case((1, 9, 11, 24), 40, types=BOTH_U8, weights_zero_point=113),
    "u8 weights, odd": Case(
        (2, 6, 5, 7), 19, (3, 3), padding=SAME, types=BOTH_U8, weights_zero_point=255
    ),
    "u8 weights around 128": Case((1, 6, 5, 9), 33, types=BOTH_U8, weights_zero_point=128),
    "u8 with signed weights": Case((1, 6, 5, 9), 33, types=(U8, SYMM), activation=RELU),
    "signed weights with a zero point": Case(
        (1, 5, 5, 6), 9, types=(S8, S8), weights_zero_point=-7
    ),
    "small weights": Case((1, 6, 7, 66), 37, activation=RELU, weights_spread=12),
    "small weights, 3 by 3": Case(
        (2, 9, 8, 18), 20, (3, 3), (2, 1), padding=SAME, types=(S8, SYMM), weights_spread=16
    ),
    "small u8 weights": Case(
        (1, 9, 5, 35), 33, types=BOTH_U8, weights_zero_point=203, weights_spread=16
    ),
    "scales above 1": Case((1, 6, 6, 20), 33, scale=1e-4),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_is_the_references(name: str) -> None:
    net, inputs = convolution(CONVOLUTIONS[name])
    expected = run_reference(net, inputs)
    assert len(np.unique(expected["y"])) > 1, "the case compares constants"
    for isa in isas_of_this_test(PRODUCT_ISAS):
        check_against_reference(net, inputs, isa, expected)


@pytest.mark.parametrize(
    ("case", "depth"),
    [
        (Case((1, 640), 128), 640),
        (Case((5, 64), 12, activation=RELU), 64),
        (Case((3, 1), 16), 1),
        (Case((2, 4, 5, 3), 10, types=BOTH_U8, weights_zero_point=90), 60),
        (Case((17, 37), 70, types=(S8, S8)), 37),
    ],
)
def test_fully_connected_is_the_references(case: Case, depth: int) -> None:
    net, inputs = fully_connected(case, depth)
    expected = run_reference(net, inputs)
    for isa in isas_of_this_test(PRODUCT_ISAS):
        check_against_reference(net, inputs, isa, expected)


@pytest.mark.parametrize("isa", PRODUCT_ISAS, ids=PRODUCT_NAMES)
def test_results_are_rounded_twice_as_by_the_reference(isa: Isa) -> None:
    net, inputs = convolution(Case((1, 20, 20, 24), 40))
    expected, actual = run_reference(net, inputs)["y"], run_compiled(net, inputs, isa)["y"]
    # Rounding once would differ in several of a thousand.
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    "case",
    [
        Case((1, 13, 9, 20), 40, (3, 3), padding=SAME, types=BOTH_U8, weights_zero_point=99),
        Case((1, 1, 1, 64), 200),
    ],
)
@pytest.mark.parametrize("num_threads", [2, 7])
def test_threads_share_the_output(case: Case, num_threads: int) -> None:
    net, inputs = convolution(case)
    graph = net.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), PRODUCT_ISAS[0], num_threads)
    expected = run_reference(net, inputs)["y"]
    actual = np.full_like(expected, 7)
    run_in_turn(program, PRODUCT_ISAS[0], [inputs["x"], actual], num_threads)
    np.testing.assert_array_equal(actual, expected)


def test_vectors_of_256_bits_multiply_bytes() -> None:
    isas = {isa.name: isa for isa in PRODUCT_ISAS}
    if "avx512vnni" not in isas:
        pytest.skip("this processor has no 8-bit dot products to try 256 bits with")
    narrow = isas["avx512vnni"]._replace(
        name="avx2vnni", vector_bytes=32, num_registers=16, dot="vpdpbusd256"
    )
    for name in ("pointwise, odd", "u8 weights, odd", "first layer"):
        net, inputs = convolution(CONVOLUTIONS[name])
        check_against_reference(net, inputs, narrow)


@pytest.mark.slow
def test_products_of_signed_bytes_give_what_those_of_unsigned_ones_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With what vpdpbssd is said to do in its place, as few processors have it."""
    isas = {isa.name: isa for isa in PRODUCT_ISAS}
    if "avx2" not in isas:
        pytest.skip("this processor has no vectors to try it with")
    calls = 0

    def add(
        _: ByteProducts, total: CodeValue, elements: CodeValue, weights: CodeValue
    ) -> CodeValue:
        nonlocal calls
        calls += 1
        x, y = elements.bitcast(total.kind), weights.bitcast(total.kind)
        for shift in (24, 16, 8, 0):
            total = total + ((x << shift) >> 24) * ((y << shift) >> 24)
        return total

    monkeypatch.setattr(ByteProducts, "add", add)
    monkeypatch.setenv("ARMPY_NUMBA_CACHE", "off")
    signed = isas["avx2"]._replace(name="avx2 signed", dot="vpdpbssd256")
    for name in ("pointwise, odd", "u8 weights, odd", "first layer"):
        check_against_reference(*convolution(CONVOLUTIONS[name]), signed)
    check_against_reference(*fully_connected(Case((1, 70), 33), 70), signed)
    assert calls


@pytest.mark.slow
def test_arm_processors_get_dot_products_of_signed_bytes() -> None:
    neon = make_isa("neon", "aarch64-linux-gnu", "cortex-a76", frozenset({"neon", "dotprod"}))
    function = convolution_u8.make(neon, 6, 4, 1, 1, 1, 1, 0, 1)
    assert "sdot" in compile_assembly(function, "kernel", neon)


def _reason(net: Network) -> str:
    """Why the last layer is refused."""
    layer = net.build().layers[-1]
    infos = [None if value is None else value.info for value in layer.inputs]
    return str(support(layer.operation, infos, [value.info for value in layer.outputs]))


def test_sums_that_may_overflow_are_refused() -> None:
    net, _ = fully_connected(Case((1, 70000), 1), 70000)
    assert "sums of 70000 products" in _reason(net)
