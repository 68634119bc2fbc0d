"""Quantised layers whose scales, or biases, no converter would write."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from armpy_numba_acc.passes.support import support

from armpy import DataType, Network, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.errors import UnimplementedError
from armpy.ops.operation import Array, Operation
from armpy.tensor import Quantization
from armpy_testing.effort import effort

from .one_layer import network_of
from .support import (
    ISAS,
    check_against_reference,
    random_array,
    run_compiled,
    run_reference,
)

Reals = npt.NDArray[np.float64]
U8, S8, S16 = DataType.QASYMM_U8, DataType.QASYMM_S8, DataType.QSYMM_S16
COUNT = effort(60)
BINARY, UNARY, FUNCTION = ops.BinaryOperation, ops.UnaryOperation, ops.ActivationFunction

LAYERS: dict[str, tuple[Operation, Callable[..., Reals] | None]] = {
    "abs": (ops.ElementwiseUnary(UNARY.ABS), np.abs),
    "exp": (ops.ElementwiseUnary(UNARY.EXP), None),
    "rsqrt": (ops.ElementwiseUnary(UNARY.RSQRT), None),
    "sqrt": (ops.ElementwiseUnary(UNARY.SQRT), None),
    "quantize": (ops.Quantize(), lambda x: x),
    "relu": (ops.Activation(FUNCTION.RELU), lambda x: np.maximum(x, 0)),
    "bounded": (ops.Activation(FUNCTION.BOUNDED_RELU, 6.0), lambda x: np.clip(x, 0, 6)),
    "leaky": (ops.Activation(FUNCTION.LEAKY_RELU, 0.25), lambda x: np.maximum(x, 0.25 * x)),
    "hard_swish": (ops.Activation(FUNCTION.HARD_SWISH), None),
    "sigmoid": (ops.Activation(FUNCTION.SIGMOID), None),
    "prelu": (ops.Prelu(), lambda x, y: np.where(x >= 0, x, x * y)),
    "mul": (ops.ElementwiseBinary(BINARY.MUL), np.multiply),
    "add": (ops.ElementwiseBinary(BINARY.ADD), None),
    "sub": (ops.ElementwiseBinary(BINARY.SUB), None),
    "maximum": (ops.ElementwiseBinary(BINARY.MAXIMUM), np.maximum),
    "sum": (ops.Reduce(ops.ReduceOperation.SUM, (0,)), None),
    "mean": (ops.Reduce(ops.ReduceOperation.MEAN, (0,)), None),
    "norm": (ops.L2Normalization(), None),
    "greater": (ops.Comparison(ops.ComparisonOperation.GREATER), np.greater),
}
"""Operations, and what they are of real numbers where fixed point keeps close to that."""

_OF_TWO = (ops.ElementwiseBinary, ops.Prelu, ops.Comparison)


def random_info(random: np.random.Generator, data_type: DataType) -> TensorInfo:
    """A tensor whose scale is any float32, or one of those that float32 holds squares of."""
    reach = 38 if random.random() < 0.5 else 9
    scale = float(np.float32(10.0 ** random.uniform(-reach, reach)))
    low, high = data_type.integer_range
    zero_point = 0 if data_type is S16 else int(random.integers(low, high, endpoint=True))
    return TensorInfo((40,), data_type, Quantization.per_tensor(scale, zero_point))


def reals(stored: Array, info: TensorInfo) -> Reals:
    real: Reals = (stored.astype(np.float64) - info.zero_point) * info.scale
    return real


def quantized(real: Reals, info: TensorInfo) -> Reals:
    """Stored numbers next to real ones, saturated."""
    steps: Reals = np.clip(np.rint(real / info.scale), -1e9, 1e9) + info.zero_point
    return np.clip(steps, *info.data_type.integer_range)


@pytest.mark.parametrize("name", LAYERS)
def test_extreme_scales_saturate_on_the_right_side_and_alike(name: str) -> None:
    operation, function = LAYERS[name]
    random = np.random.default_rng(len(name))
    for number in range(max(1, COUNT // len(LAYERS))):
        data_type = (U8, S8, S16)[random.integers(3)]
        count = 2 if isinstance(operation, _OF_TWO) else 1
        infos = [random_info(random, data_type) for _ in range(count)]
        output = random_info(random, data_type).with_shape(None)
        if name == "greater":
            output = TensorInfo(None, DataType.BOOLEAN)
        if data_type is S16 and name in ("rsqrt", "hard_swish", "sigmoid", "norm", "mean", "sum"):
            continue
        network = network_of(operation, infos, output)
        feeds = {f"x{i}": random_array(info, number) for i, info in enumerate(infos)}
        expected = run_reference(network, feeds)
        (reference_output,) = expected.values()
        if function is not None:
            real_inputs = [
                reals(array, info) for array, info in zip(feeds.values(), infos, strict=True)
            ]
            with np.errstate(over="ignore"):
                real = function(*real_inputs)
            check_side(reference_output, real, network.build().outputs[0].info)
        output_info = network.build().outputs[0].info
        if support(operation, infos, [output_info]):
            check_against_reference(network, feeds, ISAS[0], expected)


def check_side(found: Array, real: Reals, info: TensorInfo) -> None:
    """No element may be further off than half of what the type holds."""
    if not info.data_type.is_quantized:
        return
    low, high = info.data_type.integer_range
    off = np.abs(found.astype(np.float64) - quantized(real, info))
    assert off.max() <= (high - low) / 2, f"{found[off.argmax()]} for {real[off.argmax()]}"


@pytest.mark.parametrize(
    ("operation", "image", "shape"),
    [
        (ops.Convolution2d(), (1, 4, 4, 8), (8, 3, 3, 8)),
        (ops.Convolution2d(), (1, 1, 1, 72), (8, 1, 1, 72)),
        (ops.DepthwiseConvolution2d(), (1, 3, 3, 8), (1, 3, 3, 8)),
        (ops.FullyConnected(), (1, 72), (8, 72)),
    ],
    ids=["convolution", "vector", "depthwise", "fully_connected"],
)
def test_sums_that_leave_32_bits_with_their_bias_saturate(
    operation: Operation, image: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    random = np.random.default_rng(0)
    network = Network()
    x = network.input("x", TensorInfo(image, S8, Quantization.per_tensor(1.0, -128)))
    weights = network.constant(
        random.integers(100, 127, shape).astype(np.int8),
        data_type=S8,
        quantization=Quantization.per_tensor(1.0),
    )
    bias = network.constant(np.array([2**31 - 1, 2**31 - 5, -(2**31), 0, 1, 2, 3, 4], np.int32))
    output = TensorInfo(None, S8, Quantization.per_tensor(2.0**24))
    network.output("y", network.add(operation, x, weights, bias, output=output))
    feeds = {"x": np.full(image, 127, np.int8)}
    # 2**31 is 128 steps, and what is added to it a seventh of one or less.
    actual = run_reference(network, feeds)["y"]
    assert actual.reshape(-1, 8)[0].tolist() == [127, 127, -128, *[0] * 5]
    with pytest.raises(UnimplementedError, match="sums may not fit 32 bits"):
        run_compiled(network, feeds, ISAS[0])
    with Runtime(RuntimeOptions(backends=["NumbaAcc", "CpuRef"])) as runtime:
        number = runtime.load_network(network)
        actual = runtime.enqueue_workload(number, feeds)["y"]
    np.testing.assert_array_equal(actual, run_reference(network, feeds)["y"])


@pytest.mark.parametrize(
    ("quantization", "text"),
    [
        (
            Quantization.per_tensor(2.0**-42, 0),
            "the scale 2.27374e-13 of QASYMM_S8 (2, 3) is out of the range of kernels, 9.09e-13 "
            "to 1.1e+12: keep this layer float when you quantise ('armpy quantize --keep-float')",
        ),
        (Quantization.per_tensor(2.0**41, 0), "the scale 2.19902e+12 of QASYMM_S8 (2, 3) is out"),
        (
            Quantization((1.0, 2.0**-127), (0, 0), 0),
            "the scale 5.87747e-39 of QASYMM_S8 (2, 3) is out of the range of kernels, 1.18e-38 to",
        ),
        (Quantization.per_tensor(2.0**-40, 0), ""),
    ],
)
def test_a_refused_scale_is_named_with_the_range_and_a_fix(
    quantization: Quantization, text: str
) -> None:
    info = TensorInfo((2, 3), S8, quantization)
    answer = support(ops.Dequantize(), [info], [TensorInfo((2, 3), DataType.FLOAT32)])
    assert answer.text.startswith(text)
    assert bool(answer) is (not text)
