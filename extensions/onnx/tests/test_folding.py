"""Pairs that quantise and dequantise become operators on integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime as ort
from onnxruntime import quantization

import armpy

from .onnx_graphs import GraphWriter
from .onnx_saturation import skip_where_onnx_runtime_saturates

Array = npt.NDArray[Any]  # Any: every element type occurs

RNG = np.random.default_rng(11)


class Pairs(GraphWriter):
    """A graph in QDQ form in the making.

    Parameters
    ----------
    dtype : type
        Of activations: np.uint8 or np.int8.
    has_halves : bool
        Whether scales are powers of two, so that many results are halves.
    """

    def __init__(self, dtype: type = np.uint8, *, has_halves: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.has_halves = has_halves

    def scale(self, scale: float, point: int) -> tuple[str, str]:
        """A scale and a zero point, counted from the lowest integer."""
        lowest = int(np.iinfo(self.dtype).min)
        return self.constant(self.rounded(scale)), self.constant(
            np.array(lowest + point, self.dtype)
        )

    def rounded(self, scales: float | Array) -> Array:
        """Scales, or the powers of two next to them."""
        powers = np.exp2(np.rint(np.log2(scales)))
        return np.array(powers if self.has_halves else scales, np.float32)

    def pair(self, name: str, scale: float = 0.05, point: int = 120) -> str:
        """Quantise and dequantise."""
        names = self.scale(scale, point)
        return self.add("DequantizeLinear", self.add("QuantizeLinear", name, *names), *names)

    def image(self, shape: Sequence[int | str], scale: float = 0.05, point: int = 120) -> str:
        """Add an input after a pair."""
        return self.pair(self.input(f"x{len(self.inputs)}", *shape), scale, point)

    def weights(self, shape: tuple[int, ...], axis: int | None, dtype: type = np.int8) -> str:
        """Constant weights after a dequantisation, with a scale per index along an axis."""
        limits = np.iinfo(dtype)
        data: Array = RNG.integers(limits.min + 1, limits.max, shape).astype(dtype)
        count = () if axis is None else (shape[axis],)
        scale = self.rounded(RNG.uniform(0.002, 0.02, count))
        point: Array = np.full(count, 0 if dtype is np.int8 or axis is not None else 131, dtype)
        names = [self.constant(array) for array in (data, scale, point)]
        return self.add("DequantizeLinear", *names, axis=axis or 0)

    def file(self, value: str, rank: int) -> bytes:
        """Make the file."""
        self.output(value, "y", *[None] * rank)
        return bytes(self.model(17).SerializeToString())


Build = Callable[[Pairs], str]


def image(pairs: Pairs) -> str:
    """An image of eight channels."""
    return pairs.image((1, 8, 9, 10))


def conv(pairs: Pairs, *, groups: int = 1, axis: int | None = 0, bias: bool = True) -> str:
    """A convolution."""
    inputs = [image(pairs), pairs.weights((8, 8 // groups, 3, 3), axis)]
    if bias:
        inputs.append(pairs.constant(RNG.integers(-3, 4, 8).astype(np.float32)))
    return pairs.add("Conv", *inputs, group=groups, pads=[1, 1, 1, 1])


def bounds(pairs: Pairs, *numbers: float) -> list[str]:
    """Constant bounds of a Clip."""
    return [pairs.constant(np.array(number, np.float32)) for number in numbers]


def clamped(pairs: Pairs) -> str:
    """A convolution after which elements are clamped to 0 and 6."""
    return pairs.add("Clip", conv(pairs), *bounds(pairs, 0, 6))


def joined(pairs: Pairs) -> str:
    """Two images of other scales, one after the other."""
    parts = image(pairs), pairs.image((1, 3, 9, 10), 0.02, 60)
    return pairs.add("Concat", *parts, axis=1)


def gemm(pairs: Pairs) -> str:
    """A fully connected layer of 240 elements, of which few may be a step off."""
    bias = pairs.constant(RNG.integers(-3, 4, 6).astype(np.float32))
    return pairs.add("Gemm", pairs.image((40, 32)), pairs.weights((6, 32), 0), bias, transB=1)


def reshaped(pairs: Pairs) -> str:
    """The channels of an image as rows."""
    return pairs.add("Reshape", image(pairs), pairs.constant(np.array([0, 8, -1])))


CASES: Mapping[str, tuple[Build, str, int]] = {
    "conv": (conv, "Convolution2d", 4),
    "conv-one-scale": (lambda p: conv(p, axis=None), "Convolution2d", 4),
    "conv-no-bias": (lambda p: conv(p, bias=False), "Convolution2d", 4),
    "conv-groups": (lambda p: conv(p, groups=2), "Convolution2d", 4),
    "conv-depthwise": (lambda p: conv(p, groups=8), "DepthwiseConvolution2d", 4),
    "conv-relu": (lambda p: p.add("Relu", conv(p)), "Convolution2d", 4),
    "conv-clip": (clamped, "Convolution2d", 4),
    "matmul": (
        lambda p: p.add("MatMul", p.image((2, 5, 32)), p.weights((32, 6), 1)),
        "FullyConnected",
        3,
    ),
    "matmul-of-two": (
        lambda p: p.add("MatMul", p.image((2, 5, 32)), p.image((2, 32, 6), 0.02, 99)),
        "BatchMatMul",
        3,
    ),
    "gemm": (gemm, "FullyConnected", 2),
    "add": (
        lambda p: p.add("Add", image(p), p.image((1, 8, 9, 10), 0.03, 100)),
        "ElementwiseBinary",
        4,
    ),
    "concat": (joined, "Concat", 4),
    "maximum": (
        lambda p: p.add("MaxPool", image(p), kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        "Pooling2d",
        4,
    ),
    "sigmoid": (lambda p: p.add("Sigmoid", image(p)), "Activation", 4),
    "reshape": (reshaped, "Reshape", 3),
    "transpose": (lambda p: p.add("Transpose", image(p), perm=[0, 2, 3, 1]), "Transpose", 4),
}


_MOVING = ("maximum", "reshape", "transpose")
"""Whose outputs have the inputs' scale, as ONNX Runtime writes them."""

REAL: Mapping[str, Build] = {
    "average": lambda p: p.add("AveragePool", image(p), kernel_shape=[3, 3], strides=[2, 2]),
    "clip": lambda p: p.add("Clip", image(p), *bounds(p, 0, 6)),
    "global": lambda p: p.add("GlobalAveragePool", image(p)),
    "hard-swish": lambda p: p.add("HardSwish", image(p)),
    "leaky": lambda p: p.add("LeakyRelu", image(p), alpha=0.2),
    "mul": lambda p: p.add("Mul", image(p), p.image((1, 8, 1, 1), 0.01, 7)),
    "relu": lambda p: p.add("Relu", image(p)),
}
"""Whose layers on quantised tensors round twice."""


def theirs(file: bytes, inputs: Mapping[str, Array]) -> Array:
    """What ONNX Runtime gives that folds nothing."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, dict(inputs))[0])


def steps_off(
    pairs: Pairs, value: str, rank: int, step: float, point: int = 100
) -> tuple[armpy.Model, Array]:
    """The model of a value in a last pair, and how many steps results are off ONNX Runtime's."""
    file = pairs.file(pairs.pair(value, step, point), rank)
    shapes = {
        graph_input.name: [d.dim_value for d in graph_input.type.tensor_type.shape.dim]
        for graph_input in pairs.inputs
    }
    inputs = {name: RNG.normal(0, 2, shape).astype(np.float32) for name, shape in shapes.items()}
    model = armpy.load(file, front_end="onnx", backends=["CpuRef"])
    got = model.run(inputs)[model.graph.output_names[0]]
    return model, abs(got - theirs(file, inputs)) / pairs.rounded(step)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("has_halves", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("case", CASES)
def test_what_lies_between_pairs_is_computed_with_integers(
    case: str, dtype: type, has_halves: bool
) -> None:
    build, operation, rank = CASES[case]
    pairs = Pairs(dtype, has_halves=has_halves)
    last = (0.05, 120) if case in _MOVING else (0.113, 100)
    model, steps = steps_off(pairs, build(pairs), rank, *last)
    if has_halves:
        assert steps.max() < 0.01
        return
    assert steps.max() < (0.01 if case in _MOVING else 1.01)
    assert (steps > 0.5).mean() < 0.02
    layers = [layer for layer in model.graph.layers if layer.operation.name == operation]
    assert layers
    assert all(layer.output.info.data_type.is_quantized for layer in layers)
    assert model.placement is not None
    ran = [layer.operation for layer in model.placement.layers]
    assert ran.count("Dequantize") == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("case", REAL)
def test_other_operators_round_once(case: str, dtype: type) -> None:
    pairs = Pairs(dtype)
    _, steps = steps_off(pairs, REAL[case](pairs), 4, 0.031)
    assert steps.max() < 0.01


def test_a_tensor_with_another_reader_is_not_folded_away() -> None:
    pairs = Pairs()
    convolution = conv(pairs)
    file = pairs.file(pairs.add("Add", convolution, pairs.pair(convolution, 0.11, 100)), 4)
    inputs = {"x0": RNG.normal(0, 2, (1, 8, 9, 10)).astype(np.float32)}
    model = armpy.load(file, front_end="onnx", backends=["CpuRef"])
    got = model.run(inputs)[model.graph.output_names[0]]
    np.testing.assert_allclose(got, theirs(file, inputs), atol=0.12)
    (layer,) = [
        candidate for candidate in model.graph.layers if candidate.operation.name == "Convolution2d"
    ]
    assert layer.output.info.data_type.is_float


def test_folding_can_be_switched_off() -> None:
    pairs = Pairs()
    file = pairs.file(pairs.pair(conv(pairs), 0.11, 100), 4)
    model = armpy.load(
        file,
        front_end="onnx",
        backends=["CpuRef"],
        front_end_options={"fold_quantization": False},
    )
    (layer,) = [
        candidate for candidate in model.graph.layers if candidate.operation.name == "Convolution2d"
    ]
    assert layer.output.info.data_type.is_float


def test_scales_that_cannot_be_read_are_refused_with_a_parser_error() -> None:
    pairs = Pairs()
    model = onnx.load_from_string(pairs.file(pairs.pair(gemm(pairs), 0.11, 100), 2))
    scale = next(node for node in model.graph.node if node.op_type == "QuantizeLinear").input[1]
    (tensor,) = (tensor for tensor in model.graph.initializer if tensor.name == scale)
    tensor.raw_data = tensor.raw_data[:3]
    with pytest.raises(armpy.ParserError, match=f"initializer '{scale}': the tensor cannot be"):
        armpy.load(model.SerializeToString(), front_end="onnx", backends=["CpuRef"])


def small_network() -> onnx.ModelProto:
    """A network with what residual ones and mobile ones are made of; an open batch."""
    pairs = Pairs()

    def convolution(name: str, depth: int, count: int, kernel: int, **attributes: Any) -> str:
        weights = RNG.normal(0, 1, (count, depth, kernel, kernel)) / np.sqrt(depth * kernel**2)
        terms = RNG.normal(0, 0.1, count)
        constants = [pairs.constant(array.astype(np.float32)) for array in (weights, terms)]
        return pairs.add("Conv", name, *constants, pads=[kernel // 2] * 4, **attributes)

    x = pairs.input("x", "batch", 3, 32, 32)
    x = pairs.add("Relu", convolution(x, 3, 16, 3, strides=[2, 2]))
    x = pairs.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inner = pairs.add("Relu", convolution(x, 16, 32, 1))
    inner = pairs.add("Relu", convolution(inner, 1, 32, 3, group=32))
    x = pairs.add("Relu", pairs.add("Add", x, convolution(inner, 32, 16, 1)))
    x = pairs.add("Flatten", pairs.add("GlobalAveragePool", x))
    constants = RNG.normal(0, 0.3, (10, 16)), RNG.normal(0, 0.1, 10)
    names = [pairs.constant(array.astype(np.float32)) for array in constants]
    return onnx.load_from_string(pairs.file(pairs.add("Gemm", x, *names, transB=1), 2))


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("kind", ["QUInt8", "QInt8"])
def test_a_network_that_onnx_runtime_has_quantised_is_one_region_of_integers(
    tmp_path: Path, form: str, kind: str
) -> None:
    skip_where_onnx_runtime_saturates()

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]  # no types there
        samples = iter([{"x": RNG.normal(0, 1, (1, 3, 32, 32)).astype(np.float32)}] * 2)

        def get_next(self) -> dict[str, Array] | None:
            return next(self.samples, None)

    onnx.save(small_network(), tmp_path / "real.onnx")
    quantization.quantize_static(
        tmp_path / "real.onnx",
        tmp_path / "made.onnx",
        Reader(),
        quant_format=quantization.QuantFormat[form],
        per_channel=True,
        activation_type=quantization.QuantType[kind],
        weight_type=quantization.QuantType.QInt8,
    )
    inputs = {"x": RNG.normal(0, 1, (2, 3, 32, 32)).astype(np.float32)}
    session = ort.InferenceSession(tmp_path / "made.onnx", providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, inputs)
    reference = armpy.load(tmp_path / "made.onnx", backends=["CpuRef"])
    model = armpy.load(tmp_path / "made.onnx", backends=["NumbaAcc", "CpuRef"])
    (got,) = model.run(inputs).values()
    (slow,) = reference.run(inputs).values()
    np.testing.assert_array_equal(got, slow)
    gaps = np.diff(np.unique(expected))
    step = gaps[gaps > gaps.max() * 1e-3].min()
    assert abs(got - expected).max() < 2.5 * step
    assert model.placement is not None
    assert [layer.backend for layer in model.placement.layers] == ["NumbaAcc"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("backends", [["CpuRef"], ["NumbaAcc", "CpuRef"]])
def test_dynamic_quantisation_gives_what_onnx_runtime_gives(
    tmp_path: Path, kind: str, per_channel: bool, backends: list[str]
) -> None:
    if kind == "QInt8":
        skip_where_onnx_runtime_saturates()
    pairs = Pairs()
    pairs.input("x", "batch", 5, 48)
    names = [
        pairs.constant(RNG.normal(0, 0.2, shape).astype(np.float32))
        for shape in ((48, 96), (96, 24))
    ]
    hidden = pairs.add("Relu", pairs.add("MatMul", "x", names[0]))
    content = pairs.file(pairs.add("MatMul", hidden, names[1]), 3)
    (tmp_path / "real.onnx").write_bytes(content)
    quantization.quantize_dynamic(
        tmp_path / "real.onnx",
        tmp_path / "made.onnx",
        weight_type=quantization.QuantType[kind],
        per_channel=per_channel,
    )
    inputs = {"x": RNG.normal(0, 1, (2, 5, 48)).astype(np.float32)}
    session = ort.InferenceSession(tmp_path / "made.onnx", providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, inputs)
    model = armpy.load(tmp_path / "made.onnx", backends=backends)
    (got,) = model.run(inputs).values()
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    assert model.placement is not None
    assert {layer.backend for layer in model.placement.layers} == {backends[0]}
