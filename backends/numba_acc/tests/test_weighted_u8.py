"""Quantised convolutions with instructions that this processor may lack, and a refusal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from armpy_numba_acc.kernels import convolution_u8
from armpy_numba_acc.llvm.arithmetic.dots import ByteProducts
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.llvm.values import CodeValue
from armpy_numba_acc.machine.isa import make_isa
from armpy_numba_acc.passes.support import support

from armpy import Network
from armpy.ops import Convolution2d, FullyConnected, FusedActivation, Padding
from armpy.ops.operation import Array, Operation
from armpy.ops.shapes import PaddingSpec
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import (
    PRODUCT_ISAS,
    check_against_reference,
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
CONVOLUTIONS = (
    Case((3, 5, 7, 33), 67, activation=RELU6),
    Case((2, 6, 5, 7), 19, (3, 3), padding=SAME, types=BOTH_U8, weights_zero_point=255),
    Case((1, 23, 24, 3), 32, (3, 3), (2, 2), padding=SAME, activation=RELU6),
)
"""Of odd sizes, with odd zero points, and of few channels."""


def test_vectors_of_256_bits_multiply_bytes() -> None:
    isas = {isa.name: isa for isa in PRODUCT_ISAS}
    if "avx512vnni" not in isas:
        pytest.skip("this processor has no 8-bit dot products to try 256 bits with")
    narrow = isas["avx512vnni"]._replace(
        name="avx2vnni", vector_bytes=32, num_registers=16, dot="vpdpbusd256"
    )
    for case in CONVOLUTIONS:
        check_against_reference(*convolution(case), narrow)


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
    for case in CONVOLUTIONS:
        check_against_reference(*convolution(case), signed)
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
