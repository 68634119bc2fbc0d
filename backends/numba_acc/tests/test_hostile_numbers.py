"""Float layers on what no network should meet and some do: NaN, infinities, the largest numbers.

CpuRef says what is right; subnormals count as zero (`test_subnormals.py` says why). Sums and
products have one such number each, as their order may differ from CpuRef's.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from armpy import DataType, Network, TensorInfo, ops
from armpy.ops.operation import Array, Operation
from armpy.ops.tolerance import Tolerance
from armpy.tensor import Quantization
from armpy_conformance.comparison.seeded_values import HOSTILE

from .one_layer import (
    FLOAT_OPERATIONS,
    isas_for,
    network_of,
    quantized,
)
from .support import (
    check_against_reference,
    run_compiled,
    run_reference,
    without_subnormals,
)

F32, S32, U8, S8 = DataType.FLOAT32, DataType.SIGNED32, DataType.QASYMM_U8, DataType.QASYMM_S8
SAME, VALID = ops.Padding.SAME, ops.Padding.VALID
RELU1, RELU6 = ops.FusedActivation.RELU1, ops.FusedActivation.RELU6
NONE = ops.FusedActivation.NONE
ELEMENTWISE = Tolerance(1e-6, 2e-6)
SUMS = Tolerance(1e-4, 1e-4)
HUGE = math.nan, math.inf, -math.inf, 3e38, -3e38, 1e20, 1e-39
FIRST, SECOND = (np.ascontiguousarray(values) for values in np.meshgrid(HOSTILE, HOSTILE))


def check(
    operation: Operation, given: list[Array], output: TensorInfo, tolerance: Tolerance | None
) -> None:
    """Compare a layer on some inputs with CpuRef."""
    infos = [TensorInfo(array.shape, F32) for array in given]
    network = network_of(operation, infos, output)
    feeds = {f"x{number}": array for number, array in enumerate(given)}
    with np.errstate(all="ignore"):
        expected = run_reference(network, without_subnormals(feeds))
    for isa in isas_for(operation):
        check_against_reference(network, feeds, isa, expected, tolerance)


def floats(*shape: int) -> Array:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def unlike(number: float, *shape: int) -> Array:
    """Ordinary numbers with one that is not; if there are several images, in one of them."""
    array = floats(*shape)
    array[tuple(size // 2 for size in shape)] = number
    return array


def test_sines_of_any_angle_are_as_the_mathematics_library_has_them() -> None:
    angles = np.array([1e5, 1.3e8, -1.4e8, 1e20, -1e20, 3.4e38, 2.0**100, 0.5], np.float32)
    for kind, function in (("SIN", math.sin), ("COS", math.cos)):
        operation = ops.ElementwiseUnary(ops.UnaryOperation[kind])
        info = TensorInfo(angles.shape, F32)
        network = network_of(operation, [info], info)
        expected = [function(float(angle)) for angle in angles]
        for isa in isas_for(operation):
            sines = run_compiled(network, {"x0": angles}, isa)["y"]
            np.testing.assert_allclose(sines, expected, rtol=0, atol=2e-7)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", FLOAT_OPERATIONS, ids=lambda kind: kind.name)
def test_functions_of_all_pairs(kind: ops.BinaryOperation) -> None:
    info = TensorInfo(FIRST.shape, F32)
    check(ops.ElementwiseBinary(kind), [FIRST, SECOND], info, ELEMENTWISE)


def test_fused_clamps_and_slopes_keep_what_is_no_number() -> None:
    info = TensorInfo(FIRST.shape, F32)
    operation = ops.ElementwiseBinary(ops.BinaryOperation.SUB, RELU6)
    check(operation, [FIRST, SECOND], info, ELEMENTWISE)
    check(ops.Prelu(), [FIRST, SECOND], info, ELEMENTWISE)


def test_every_number_but_zero_is_true() -> None:
    info = TensorInfo(HOSTILE.shape, DataType.BOOLEAN)
    network = network_of(ops.Cast(), [TensorInfo(HOSTILE.shape, F32)], info)
    for isa in isas_for(ops.Cast()):
        # Subnormals, too: their bits are looked at.
        check_against_reference(network, {"x0": HOSTILE}, isa, {"y": HOSTILE != 0})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("data_type", [S32, DataType.SIGNED64, U8, S8])
def test_conversions_saturate(data_type: DataType) -> None:
    if data_type is not S8:
        quantization = Quantization.per_tensor(1.0) if data_type is U8 else None
        info = TensorInfo(HOSTILE.shape, data_type, quantization)
        check(ops.Cast(), [HOSTILE], info, None)
        return
    for scale in (1e-12, 0.1, 1e12):
        check(ops.Quantize(), [HOSTILE], quantized(HOSTILE.shape, S8, scale, -3), None)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("algorithm", ops.PoolingAlgorithm, ids=lambda kind: kind.name)
@pytest.mark.parametrize("number", HUGE)
def test_pooling(algorithm: ops.PoolingAlgorithm, number: float) -> None:
    for channels, padding, activation in ((5, SAME, NONE), (64, VALID, RELU1), (33, SAME, RELU6)):
        operation = ops.Pooling2d(algorithm, (3, 2), (2, 1), padding, activation)
        check(operation, [unlike(number, 1, 6, 7, channels)], TensorInfo(None, F32), SUMS)


@pytest.mark.slow
@pytest.mark.parametrize("number", HUGE)
def test_reductions_along_an_axis(number: float) -> None:
    image = unlike(number, 4, 5, 37)
    for kind in (ops.ReduceOperation.SUM, ops.ReduceOperation.MEAN, ops.ReduceOperation.MAX):
        for axes in ((1,), (2,)):
            check(ops.Reduce(kind, axes), [image], TensorInfo(None, F32), SUMS)
    for function in ops.ArgMinMaxFunction:
        check(ops.ArgMinMax(function, 1), [image], TensorInfo(None, S32), None)


def test_rows_of_infinities_and_no_numbers() -> None:
    rows = floats(12, 37)
    rows[:7, 3] = HUGE
    rows[7], rows[8], rows[9, :20], rows[10], rows[11] = -np.inf, np.inf, 3.4e38, np.nan, -1e38
    info = TensorInfo(rows.shape, F32)
    for operation in (ops.Softmax(), ops.LogSoftmax(), ops.L2Normalization()):
        check(operation, [rows], info, SUMS)


@pytest.mark.slow
@pytest.mark.parametrize("number", HUGE)
def test_images_that_are_normalised_and_resized(number: float) -> None:
    image = unlike(number, 2, 5, 6, 37)
    for operation in (ops.InstanceNormalization(), ops.Normalization()):
        check(operation, [image], TensorInfo(image.shape, F32), SUMS)
    for method in ops.ResizeMethod:
        resize = ops.Resize(method=method, size=(9, 13))
        check(resize, [image], TensorInfo(None, F32), SUMS)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("where", ["input", "weights", "bias"])
def test_weighted_layers(number: float, where: str) -> None:
    layers: list[tuple[Operation, tuple[int, ...], tuple[int, ...], int]] = [
        (ops.Convolution2d(activation=RELU6), (1, 6, 5, 19), (24, 1, 1, 19), 24),
        (ops.DepthwiseConvolution2d(padding=SAME), (1, 6, 5, 19), (1, 3, 3, 19), 19),
        (ops.FullyConnected(), (1, 40), (33, 40), 33),
        (ops.FullyConnected(activation=RELU6), (5, 40), (33, 40), 33),
    ]
    for operation, image, weights, channels in layers:
        shapes = {"input": image, "weights": weights, "bias": (channels,)}
        arrays = {
            name: unlike(number, *shape) if name == where else floats(*shape)
            for name, shape in shapes.items()
        }
        network = Network()
        x = network.input("x", TensorInfo(image, F32))
        w, b = network.constant(arrays["weights"]), network.constant(arrays["bias"])
        network.output("y", network.add(operation, x, w, b))
        feeds = {"x": arrays["input"]}
        expected = run_reference(network, without_subnormals(feeds))
        for isa in isas_for(operation):
            check_against_reference(network, feeds, isa, expected, SUMS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", [*HUGE, 0.0])
def test_floats_with_weights_of_8_bits(number: float) -> None:
    layers: list[tuple[Operation, tuple[int, ...], tuple[int, ...], int]] = [
        (ops.Convolution2d(padding=SAME), (2, 6, 7, 5), (17, 3, 3, 5), 0),
        (ops.DepthwiseConvolution2d(padding=SAME), (2, 6, 5, 19), (1, 3, 3, 19), 3),
        (ops.FullyConnected(), (3, 40), (33, 40), 0),
    ]
    for operation, shape, weights, axis in layers:
        for scales in (1, weights[axis]):
            network = Network()
            x = network.input("x", TensorInfo(shape, F32))
            stored = np.random.default_rng(1).integers(-127, 128, weights).astype(np.int8)
            several = Quantization.per_axis([0.01] * scales, axis)
            single = Quantization.per_tensor(0.01)
            w = network.constant(
                stored, data_type=DataType.QSYMM_S8, quantization=several if scales > 1 else single
            )
            network.output("y", network.add(operation, x, w))
            feeds = {"x": unlike(number, *shape)}
            expected = run_reference(network, without_subnormals(feeds))
            for isa in isas_for(operation):
                check_against_reference(network, feeds, isa, expected, SUMS)
