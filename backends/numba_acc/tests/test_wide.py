"""Elements of 16 bits: the same as CpuRef's on every instruction set."""

import numpy as np
import pytest
from armpy_numba_acc.passes.support import support

from armpy import ops
from armpy.ops import BinaryOperation
from armpy.ops.tolerance import EXACT
from armpy.tensor import TensorInfo
from armpy.types import DataType

from .one_layer import QUANTIZED_OPERATIONS, check_layer, quantized

F32, I32 = DataType.FLOAT32, DataType.SIGNED32
S8, U8 = DataType.QASYMM_S8, DataType.QASYMM_U8
S16, U16 = DataType.QSYMM_S16, DataType.QASYMM_U16

ZERO_POINTS = {S8: -3, U8: 130, S16: 0, U16: 30000, I32: 0}
EVERY_WORD = np.arange(1 << 16, dtype=np.uint16)


@pytest.mark.parametrize("data_type", [S16, U16], ids=lambda t: t.name)
@pytest.mark.parametrize("scale", [1.0, 0.0123])
def test_floats_are_quantized_to_words(data_type: DataType, scale: float) -> None:
    values = np.concatenate(
        [
            (np.arange(-33000, 33000, 7) + 0.5) * scale,
            [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.49999997 * scale],
        ]
    ).astype(np.float32)
    target = quantized(values.shape, data_type, scale, ZERO_POINTS[data_type])
    check_layer(ops.Quantize(), [TensorInfo(values.shape, F32)], target, EXACT, [values])


@pytest.mark.sampled(29)
@pytest.mark.parametrize("source", [S16, U16], ids=lambda t: t.name)
@pytest.mark.parametrize("target", [S8, U8, S16, U16, I32], ids=lambda t: t.name)
@pytest.mark.parametrize("ratio", [1.0, 0.5, 2.0, 1 / 257.3, 0.71, 3.3e-9, 90000.0])
def test_words_are_requantized_in_fixed_point(
    source: DataType, target: DataType, ratio: float
) -> None:
    infos = [
        quantized(EVERY_WORD.shape, kind, scale, ZERO_POINTS[kind])
        for kind, scale in ((source, 0.01), (target, 0.01 / ratio))
    ]
    check_layer(ops.Quantize(), infos[:1], infos[1], EXACT, [EVERY_WORD.view(source.dtype)])


@pytest.mark.parametrize("source", [S8, U8], ids=lambda t: t.name)
@pytest.mark.parametrize("target", [S16, U16, I32], ids=lambda t: t.name)
@pytest.mark.parametrize("ratio", [1.0, 255.5, 0.37])
def test_bytes_are_requantized_to_words(source: DataType, target: DataType, ratio: float) -> None:
    stored = np.arange(256, dtype=np.uint8).view(source.dtype)
    infos = [
        quantized(stored.shape, kind, scale, ZERO_POINTS[kind])
        for kind, scale in ((source, 0.01), (target, 0.01 / ratio))
    ]
    check_layer(ops.Quantize(), infos[:1], infos[1], EXACT, [stored])


@pytest.mark.parametrize("source", [S16, U16], ids=lambda t: t.name)
def test_words_are_dequantized(source: DataType) -> None:
    info = quantized(EVERY_WORD.shape, source, 0.0013, ZERO_POINTS[source])
    output = TensorInfo(EVERY_WORD.shape, F32)
    check_layer(ops.Dequantize(), [info], output, EXACT, [EVERY_WORD.view(source.dtype)])


@pytest.mark.parametrize("shape", [(1, 2), (3, 5, 12), (7, 1000), (5, 1)], ids=str)
@pytest.mark.parametrize(("scale", "beta"), [(10 / 65535, 1.0), (0.0004, 0.7)])
def test_softmax_of_words_is_exact(shape: tuple[int, ...], scale: float, beta: float) -> None:
    source, target = quantized(shape, S16, scale, 0), quantized(shape, S16, 2.0**-15, 0)
    check_layer(ops.Softmax(beta=beta), [source], target, EXACT)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("source", [S8, U8], ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [(1, 2), (3, 5, 12), (9, 64)], ids=str)
def test_softmax_of_bytes_has_words(source: DataType, shape: tuple[int, ...]) -> None:
    info = quantized(shape, source, 0.07, ZERO_POINTS[source])
    check_layer(ops.Softmax(), [info], quantized(shape, S16, 2.0**-16, -32768))


FIXED = [BinaryOperation.ADD, BinaryOperation.SUB, BinaryOperation.MUL]
BINARY = [kind for kind in QUANTIZED_OPERATIONS if not kind.name.startswith(("POWER", "DIV"))]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("kind", BINARY, ids=lambda kind: kind.name)
@pytest.mark.parametrize("activation", [ops.FusedActivation.NONE, ops.FusedActivation.RELU])
@pytest.mark.parametrize("scales", [(0.01, 0.02, 0.015), (0.25, 0.25, 0.25)], ids=str)
def test_functions_of_two_words(
    kind: BinaryOperation, activation: ops.FusedActivation, scales: tuple[float, float, float]
) -> None:
    operation = ops.ElementwiseBinary(kind, activation=activation)
    if kind in (BinaryOperation.MUL, BinaryOperation.SQUARED_DIFFERENCE):
        scales = (scales[0], scales[1], scales[2] * 100)
    infos = [quantized((3, 5, 67), S16, scale, 0) for scale in scales]
    tolerance = EXACT if kind in FIXED else None
    check_layer(operation, infos[:2], infos[2], tolerance)
    broadcast = [infos[0], quantized((67,), S16, scales[1], 0)]
    check_layer(operation, broadcast, infos[2], tolerance)


@pytest.mark.parametrize("kind", FIXED, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "scales", [(1e-3, 7e-5, 1.1e-3), (1e-4, 1e-4, 2e-4), (0.02, 0.3, 0.005), (1.0, 1e-9, 1.0)]
)
def test_many_pairs_of_words_are_exact(
    kind: BinaryOperation, scales: tuple[float, float, float]
) -> None:
    if kind is BinaryOperation.MUL:
        scales = (scales[0], scales[1], scales[0] * scales[1] * 9999)
    random = np.random.default_rng(1)
    infos = [quantized((1 << 16,), S16, scale, 0) for scale in scales]
    operands = [EVERY_WORD.view(np.int16), random.permutation(EVERY_WORD).view(np.int16)]
    check_layer(ops.ElementwiseBinary(kind), infos[:2], infos[2], EXACT, operands)


@pytest.mark.parametrize("kind", FIXED[:2], ids=lambda kind: kind.name)
@pytest.mark.parametrize("shifts", [(0, 0), (0, 3), (12, 0), (1, 2)], ids=str)
def test_words_whose_scales_are_powers_of_two_are_shifted(
    kind: BinaryOperation, shifts: tuple[int, int]
) -> None:
    operation = ops.ElementwiseBinary(kind, power_of_two_scales=True)
    infos = [quantized((1 << 16,), S16, 2.0 ** (-10 - shift), 0) for shift in (*shifts, 0)]
    operands = [EVERY_WORD.view(np.int16), EVERY_WORD[::-1].copy().view(np.int16)]
    check_layer(operation, infos[:2], infos[2], EXACT, operands)


@pytest.mark.parametrize(
    ("zero_point", "scale", "reason"), [(5, 1.0, "zero points"), (0, 1e-9, "several times")]
)
def test_sums_of_words_that_are_not_exact_are_refused(
    zero_point: int, scale: float, reason: str
) -> None:
    infos = [quantized((3,), S16, 1.0, zero_point) for _ in range(2)]
    answer = support(ops.ElementwiseBinary(), infos, [quantized((3,), S16, scale, zero_point)])
    assert not answer
    assert reason in str(answer)


ACTIVATIONS = [
    (ops.Activation(ops.ActivationFunction.RELU), 0.0009),
    (ops.Activation(ops.ActivationFunction.RELU), 0.0013),
    (ops.Activation(ops.ActivationFunction.BOUNDED_RELU, 6.0, 0.0), 0.001),
    (ops.Activation(ops.ActivationFunction.BOUNDED_RELU, 1.0, -1.0), 0.00017),
    (ops.Activation(ops.ActivationFunction.LEAKY_RELU, 0.3), 0.0007),
    (ops.Activation(ops.ActivationFunction.LEAKY_RELU, -1.7), 0.002),
    (ops.Activation(ops.ActivationFunction.TANH, 1.0, 1.0), 2.0**-15),
    (ops.Activation(ops.ActivationFunction.SIGMOID), 2.0**-15),
    (ops.Activation(ops.ActivationFunction.GELU), 0.0007),
    (ops.Activation(ops.ActivationFunction.GELU, approximate=True), 0.0007),
]


@pytest.mark.parametrize(("operation", "output_scale"), ACTIVATIONS, ids=str)
@pytest.mark.parametrize("scale", [0.0009, 2.0**-12, 2.0**-11, 0.07])
def test_activations_of_every_word(
    operation: ops.Activation, output_scale: float, scale: float
) -> None:
    info = quantized(EVERY_WORD.shape, S16, scale, 0)
    output = quantized(EVERY_WORD.shape, S16, output_scale, 0)
    check_layer(operation, [info], output, EXACT, [EVERY_WORD.view(np.int16)])


def test_sigmoid_with_another_output_scale_is_refused() -> None:
    infos = [quantized((3,), S16, scale, 0) for scale in (0.01, 0.001)]
    answer = support(ops.Activation(ops.ActivationFunction.SIGMOID), infos[:1], infos[1:])
    assert not answer
    assert "another output scale" in str(answer)


REDUCTIONS = [
    ops.ReduceOperation.MEAN,
    ops.ReduceOperation.SUM,
    ops.ReduceOperation.MAX,
    ops.ReduceOperation.MIN,
]


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", REDUCTIONS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("axes", [(1, 2), (3,), (0, 2)], ids=str)
def test_reductions_of_words(kind: ops.ReduceOperation, axes: tuple[int, ...]) -> None:
    info = quantized((3, 7, 9, 37), S16, 0.01, 0)
    scale = {ops.ReduceOperation.MEAN: 0.0021, ops.ReduceOperation.SUM: 0.13}.get(kind, 0.01)
    operation = ops.Reduce(kind, axes=axes, keep_dims=True)
    check_layer(operation, [info], quantized(None, S16, scale, 0), EXACT)


@pytest.mark.slow
def test_means_of_most_words_do_not_overflow() -> None:
    info = quantized((1, 1 << 16, 2), S16, 0.01, 0)
    operands = [np.tile(np.array([-32768, 32767], np.int16), (1, 1 << 16, 1))]
    operation = ops.Reduce(ops.ReduceOperation.MEAN, axes=(1,))
    check_layer(operation, [info], quantized(None, S16, 0.01, 0), EXACT, operands)
    longer = quantized((1, (1 << 16) + 1, 2), S16, 0.01, 0)
    answer = support(operation, [longer], [quantized((1, 2), S16, 0.01, 0)])
    assert not answer
    assert "more than 65536 elements" in str(answer)


UNARY = [
    (ops.UnaryOperation.ABS, 0.001, 0.0009),
    (ops.UnaryOperation.ABS, 0.001, 0.001),
    (ops.UnaryOperation.EXP, 0.0003, 0.56),
    (ops.UnaryOperation.EXP, 0.01, 0.001),
    (ops.UnaryOperation.LOG, 0.002, 0.0004),
    (ops.UnaryOperation.RSQRT, 0.02, 0.0003),
    (ops.UnaryOperation.SQRT, 0.02, 0.0008),
]


@pytest.mark.parametrize(("kind", "scale", "output_scale"), UNARY, ids=str)
def test_functions_of_every_word(
    kind: ops.UnaryOperation, scale: float, output_scale: float
) -> None:
    info = quantized(EVERY_WORD.shape, S16, scale, 0)
    output = quantized(EVERY_WORD.shape, S16, output_scale, 0)
    check_layer(ops.ElementwiseUnary(kind), [info], output, EXACT, [EVERY_WORD.view(np.int16)])
