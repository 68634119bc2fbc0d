"""Products of 16-bit elements: the largest ones, pieces of weights, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.kernels import convolution_i16
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.packing.weights_i16 import LARGEST_SUM, Pieces
from armpy_numba_acc.passes.support import support

from armpy import Network
from armpy.ops import (
    Convolution2d,
)
from armpy.ops.tolerance import EXACT
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    run_reference,
)

S16, SYMM, S8 = DataType.QSYMM_S16, DataType.QSYMM_S8, DataType.QASYMM_S8


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


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("rounding", ["plain", "signed", "real"])
def test_kernels_compile_for_arm(rounding: str) -> None:
    neon = make_isa("neon", "aarch64-linux-gnu", "cortex-a76", frozenset({"neon", "dotprod"}))
    for is_depthwise in (0, 1):
        function = convolution_i16.make(neon, 4, 1, 1, is_depthwise, "i16", rounding)
        assert "mla" in compile_assembly(function, "kernel", neon)
