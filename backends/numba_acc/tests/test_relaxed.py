"""Relaxed float32: products of bfloat16, and tensors that are kept as bfloat16."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from armpy_numba_acc import NumbaBackend
from armpy_numba_acc.lowering import relaxing
from armpy_numba_acc.lowering.tiles import F32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.options import ResolvedOptions
from armpy_numba_acc.packing.weights_real import as_bfloat16
from armpy_numba_acc.passes import bfloat16
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.store.keys import object_key, program_key, region_digest

import armpy
from armpy import DataType, Network, TensorInfo, ops
from armpy.backend import OptionValues
from armpy.graph import SubgraphView, Value
from armpy.ops.operation import Array, Operation
from armpy.ops.shapes import PaddingSpec
from armpy.ops.tolerance import Tolerance
from armpy.plugins import BackendRegistry
from armpy_nnapi import Compilation, DeviceManager, Model, OperandCode, OperandType, OperationCode
from armpy_testing.shared import shared_file

from .networks import convolutions
from .support import (
    ISAS,
    check_against_reference,
    isas_of_this_test,
    run_in_turn,
    run_reference,
)

SAME, VALID = ops.Padding.SAME, ops.Padding.VALID
RELU6 = ops.FusedActivation.RELU6
EXACT = Tolerance(0.0, 0.0)
RELAXED = Tolerance(5 * 2.0**-10, 5 * 2.0**-10)
"""What NNAPI's conformance tests allow."""


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small layers be computed so, too."""
    monkeypatch.setattr(bfloat16, "_LEAST_ELEMENTS", 1)
    monkeypatch.setattr(relaxing, "_LEAST_PRODUCTS", 1)
    monkeypatch.setattr(relaxing, "fastest_ns", lambda _, kind, *rest: float(kind is F32))


needs_bfloat16 = pytest.mark.skipif(
    not ISAS[0].has_bfloat16, reason="the processor has no dot products of bfloat16"
)


BFLOAT16_KERNELS = {"convolution_bf16", "convolution_bf16_paired"}


def integers(shape: tuple[int, ...], seed: int, most: int = 3) -> Array:
    """Small integers: bfloat16 holds them, and float32 their sums, exactly."""
    return np.random.default_rng(seed).integers(-most, most, shape, endpoint=True).astype("f4")


def weighted(
    net: Network, value: Value, operation: Operation, shape: tuple[int, ...], scale: float = 1.0
) -> Value:
    """A layer with weights and, if there is room for it, a bias."""
    weights = net.constant(integers(shape, 1) * np.float32(scale))
    if isinstance(operation, ops.BatchMatMul):
        return net.add(operation, value, weights)
    size = shape[3] if isinstance(operation, ops.DepthwiseConvolution2d) else shape[0]
    return net.add(operation, value, weights, net.constant(integers((size,), 2)))


def kernels_of(network: Network, isa: Isa, num_threads: int = 1) -> tuple[Kernel, ...]:
    """What a network is compiled to."""
    graph = network.build()
    return lower_region(SubgraphView.of(graph, graph.layers), isa, num_threads).kernels


def check_exactly(operation: Operation, shape: tuple[int, ...], weights: tuple[int, ...]) -> None:
    """One layer on integers gives what CpuRef gives, and is computed with bfloat16."""
    net = Network()
    x = net.input("x", TensorInfo(shape, DataType.FLOAT32))
    net.output("y", weighted(net, x, operation, weights))
    names = {kernel.name for kernel in kernels_of(net, ISAS[0].relaxed())}
    assert names & BFLOAT16_KERNELS
    assert "convolution_f32" not in names
    check_against_reference(net, {"x": integers(shape, 3)}, ISAS[0].relaxed(), tolerance=EXACT)


CONVOLUTIONS: Mapping[
    str, tuple[tuple[int, ...], int, tuple[int, int], tuple[int, int], PaddingSpec, int]
] = {
    "a pair": ((1, 4, 5, 2), 3, (1, 1), (1, 1), VALID, 1),
    "odd": ((2, 5, 3, 3), 17, (1, 1), (1, 1), VALID, 1),
    "one channel": ((1, 6, 6, 1), 5, (3, 3), (1, 1), SAME, 1),
    "an image's first layer": ((1, 15, 15, 3), 8, (3, 3), (2, 2), SAME, 1),
    "many columns": ((1, 7, 7, 67), 130, (1, 1), (1, 1), VALID, 1),
    "rows that end within a tile": ((2, 9, 11, 16), 33, (3, 3), (1, 1), SAME, 1),
    "large kernel": ((1, 8, 9, 5), 16, (5, 4), (2, 1), SAME, 1),
    "dilated": ((1, 9, 9, 7), 20, (3, 3), (1, 1), VALID, 2),
    "one pixel": ((1, 1, 1, 63), 200, (1, 1), (1, 1), VALID, 1),
    "many pixels": ((1, 28, 28, 24), 96, (1, 1), (1, 1), VALID, 1),
}


@pytest.mark.usefixtures("always")
@needs_bfloat16
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions_of_what_bfloat16_holds_are_exact(case: str) -> None:
    shape, filters, kernel, stride, padding, dilation = CONVOLUTIONS[case]
    operation = ops.Convolution2d(
        stride=stride, padding=padding, dilation=(dilation,) * 2, activation=RELU6
    )
    check_exactly(operation, shape, (filters, *kernel, shape[3]))


@pytest.mark.usefixtures("always")
@needs_bfloat16
@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 2, 1), (1, 67, 300), (5, 640, 17)])
def test_matrix_products_of_what_bfloat16_holds_are_exact(
    rows: int, depth: int, columns: int
) -> None:
    check_exactly(ops.FullyConnected(), (rows, depth), (columns, depth))
    check_exactly(ops.BatchMatMul(), (2, rows, depth), (depth, columns))


@pytest.mark.usefixtures("always")
@needs_bfloat16
def test_grouped_and_transposed_convolutions_are_exact() -> None:
    check_exactly(ops.Convolution2d(padding=SAME), (2, 6, 5, 15), (6, 3, 3, 5))
    for stride in ((1, 1), (2, 3)):
        operation = ops.TransposeConvolution2d(stride=stride, padding=SAME)
        check_exactly(operation, (1, 5, 6, 7), (9, 3, 3, 7))


@pytest.mark.usefixtures("always")
@needs_bfloat16
@pytest.mark.parametrize("is_transposed", [False, True])
def test_products_of_two_inputs_are_exact(is_transposed: bool) -> None:
    for rows, depth, columns in ((5, 7, 40), (6, 32, 65), (1, 5, 3)):
        shapes = ((2, 1, rows, depth), (3, depth, columns))
        if is_transposed:
            shapes = ((2, 1, depth, rows), (3, columns, depth))
        net = Network()
        x, y = (
            net.input(name, TensorInfo(shape, DataType.FLOAT32))
            for name, shape in zip("xy", shapes, strict=True)
        )
        net.output("z", net.add(ops.BatchMatMul(is_transposed, is_transposed), x, y))
        inputs = {"x": integers(shapes[0], 1), "y": integers(shapes[1], 2)}
        check_against_reference(net, inputs, ISAS[0].relaxed(), tolerance=EXACT)


DEPTHWISE: Mapping[str, tuple[int, int, tuple[int, int], ops.DepthwiseConvolution2d]] = {
    "a tail of channels": (67, 1, (3, 3), ops.DepthwiseConvolution2d(padding=SAME)),
    "few channels": (5, 1, (3, 3), ops.DepthwiseConvolution2d(padding=SAME, stride=(2, 2))),
    "many taps": (18, 1, (7, 5), ops.DepthwiseConvolution2d(padding=SAME)),
    "dilated": (16, 1, (3, 3), ops.DepthwiseConvolution2d(padding=SAME, dilation=(2, 2))),
    "one input channel": (1, 20, (3, 3), ops.DepthwiseConvolution2d(padding=SAME)),
    "several of each channel": (3, 2, (3, 3), ops.DepthwiseConvolution2d(padding=SAME)),
}


@pytest.mark.usefixtures("always")
@needs_bfloat16
@pytest.mark.parametrize("case", DEPTHWISE)
def test_depthwise_layers_of_either_kind_are_exact(case: str) -> None:
    channels, multiplier, kernel, operation = DEPTHWISE[case]
    operation = replace(operation, activation=RELU6)
    out_channels = channels * multiplier
    window = (1, *kernel, out_channels)
    point = ops.Convolution2d(activation=RELU6)
    for is_input, is_output in ((True, False), (False, True), (False, False)):
        net = Network()
        depth = channels if is_input else 2
        value = net.input("x", TensorInfo((2, 9, 10, depth), DataType.FLOAT32))
        if not is_input:
            value = weighted(net, value, point, (channels, 1, 1, depth))
        value = weighted(net, value, operation, window)
        if not is_output:
            value = weighted(net, value, point, (3, 1, 2, out_channels))
        net.output("y", value)
        inputs = {"x": integers((2, 9, 10, depth), 3)}
        check_against_reference(net, inputs, ISAS[0].relaxed(), tolerance=EXACT)


@pytest.mark.usefixtures("always")
@needs_bfloat16
def test_sigmoids_are_as_right_as_bfloat16() -> None:
    net = Network()
    identity = net.constant(np.eye(64, dtype=np.float32))
    value = net.add(
        ops.FullyConnected(), net.input("x", TensorInfo((9, 64), DataType.FLOAT32)), identity
    )
    value = net.add(ops.Activation(ops.ActivationFunction.SIGMOID), value)
    net.output("y", net.add(ops.FullyConnected(), value, identity))
    assert "elementwise_sigmoid_bf16xbf16_v" in {
        kernel.symbol for kernel in kernels_of(net, ISAS[0].relaxed())
    }
    x = np.concatenate([np.arange(-64, 64, 0.25), [-200, 200, -88, 0], np.zeros(60)])
    x = x.reshape(9, 64).astype(np.float32)
    expected = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)
    allowed = Tolerance(1e-30, 2.0**-8 + 2.0**-12)
    check_against_reference(net, {"x": x}, ISAS[0].relaxed(), {"y": expected}, allowed)


def mixed(size: int = 33, channels: int = 10) -> Network:
    """A network with every kind of layer that can keep bfloat16, whose numbers stay small."""
    net = Network()
    convolution = ops.Convolution2d(padding=SAME, activation=RELU6)
    value = net.input("x", TensorInfo((1, size, size, 3), DataType.FLOAT32))
    value = weighted(net, value, convolution, (channels, 3, 3, 3), 0.25)
    first = weighted(net, value, convolution, (2 * channels, 1, 1, channels), 0.125)
    value = weighted(
        net,
        first,
        ops.DepthwiseConvolution2d(padding=SAME, activation=RELU6),
        (1, 3, 3, 2 * channels),
        0.25,
    )
    value = weighted(net, value, convolution, (2 * channels, 1, 1, 2 * channels), 0.125)
    value = net.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), value, first)
    gate = net.add(ops.Reduce(ops.ReduceOperation.MEAN, axes=(1, 2), keep_dims=True), value)
    value = net.add(ops.ElementwiseBinary(ops.BinaryOperation.MUL), value, gate)
    value = net.add(ops.Activation(ops.ActivationFunction.HARD_SWISH), value)
    value = net.add(ops.Pad(((0, 0), (0, 1), (0, 1), (0, 0))), value)
    value = weighted(
        net,
        value,
        ops.DepthwiseConvolution2d(stride=(2, 2), padding=VALID),
        (1, 3, 3, 2 * channels),
        0.0625,
    )
    net.output("y", weighted(net, value, ops.Convolution2d(), (7, 1, 1, 2 * channels), 0.0625))
    return net


@pytest.mark.usefixtures("always")
@needs_bfloat16
def test_what_lies_between_layers_is_kept_as_bfloat16() -> None:
    net = mixed()
    inputs = {"x": np.random.default_rng(0).uniform(-1, 1, (1, 33, 33, 3)).astype(np.float32)}
    kernels = kernels_of(net, ISAS[0].relaxed())
    bfloat16_kernels = {
        kernel.name for kernel in kernels if "bf16" in kernel.symbol.removeprefix(kernel.name)
    }
    assert bfloat16_kernels - BFLOAT16_KERNELS == {"depthwise_f32", "elementwise", "reduce"}
    largest = float(np.abs(run_reference(net, inputs)["y"]).max())
    num_roundings = 4  # of tensors one after the other
    allowed = Tolerance(num_roundings * 2.0**-8 * max(1.0, largest), 0.0)
    check_against_reference(net, inputs, ISAS[0].relaxed(), tolerance=allowed)


@pytest.mark.usefixtures("always")
@needs_bfloat16
@pytest.mark.parametrize("num_threads", [1, 3])
def test_threads_share_the_work_and_nothing_unwritten_is_read(num_threads: int) -> None:
    net = mixed(size=17, channels=5)
    graph = net.build()
    view = SubgraphView.of(graph, graph.layers)
    isa = ISAS[0].relaxed()
    x = integers((1, 17, 17, 3), 4, 1)
    y = np.full(view.outputs[0].info.known_shape, np.nan, np.float32)
    run_in_turn(lower_region(view, isa, num_threads), isa, [x, y], num_threads)
    check_against_reference(net, {"x": x}, isa, {"y": y}, EXACT)


@pytest.mark.usefixtures("always")
@needs_bfloat16
def test_nan_after_the_last_element_of_a_row_is_not_read() -> None:
    net = Network()
    x = net.input("x", TensorInfo((1, 2, 2, 3), DataType.FLOAT32))
    net.output("y", weighted(net, x, ops.Convolution2d(), (4, 1, 1, 3)))
    image = integers((1, 2, 2, 3), 5)
    image[0, 0, 1] = np.nan
    image[0, 1, 1, 0] = np.inf
    check_against_reference(net, {"x": image}, ISAS[0].relaxed(), tolerance=EXACT)


def test_numbers_are_rounded_to_the_nearest_even_bfloat16() -> None:
    numbers = [1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -3.4e38, np.inf, -0.0]
    bits = as_bfloat16(np.array(numbers, np.float32))
    assert [f"{pattern:04x}" for pattern in bits] == [
        "3f80", "3f80", "3f82", "3f81", "ff80", "7f80", "8000"
    ]  # fmt: skip
    nan = np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)
    assert np.isnan((as_bfloat16(nan).astype(np.uint32) << 16).view(np.float32)).all()


@pytest.mark.usefixtures("always")
@needs_bfloat16
def test_layers_with_computed_weights_stay_as_they_are_between_others() -> None:
    net = Network()
    point = ops.Convolution2d(activation=RELU6)
    value = net.input("x", TensorInfo((1, 5, 5, 4), DataType.FLOAT32))
    value = weighted(net, value, point, (6, 1, 1, 4))
    filters = net.input("w", TensorInfo((3, 1, 1, 6), DataType.FLOAT32))
    filters = net.add(ops.Activation(ops.ActivationFunction.RELU), filters)
    value = net.add(point, value, filters, net.constant(integers((3,), 2)))
    net.output("y", weighted(net, value, point, (5, 1, 1, 3)))
    inputs = {"x": integers((1, 5, 5, 4), 3), "w": integers((3, 1, 1, 6), 4)}
    check_against_reference(net, inputs, ISAS[0].relaxed(), tolerance=EXACT)


@needs_bfloat16
def test_few_products_stay_exact() -> None:
    net = Network()
    x = net.input("x", TensorInfo((1, 8, 8, 3), DataType.FLOAT32))
    net.output("y", weighted(net, x, ops.Convolution2d(), (3, 3, 2, 3), 1 / 3))
    assert not BFLOAT16_KERNELS & {k.name for k in kernels_of(net, ISAS[0].relaxed())}
    image = np.random.default_rng(0).normal(size=(1, 8, 8, 3)).astype(np.float32)
    check_against_reference(net, {"x": image}, ISAS[0].relaxed())


def test_it_is_off_unless_asked_for_and_where_the_processor_cannot() -> None:
    assert not ResolvedOptions.of().isa.is_relaxed
    assert not ResolvedOptions.of({"fast_math_enabled": False}).isa.is_relaxed
    for isa in isas_of_this_test():
        options: OptionValues = {"fast_math_enabled": True, "isa": isa.name}
        assert ResolvedOptions.of(options).isa.is_relaxed == isa.has_bfloat16
        assert not BFLOAT16_KERNELS & {k.name for k in kernels_of(convolutions(), isa)}
        if not isa.has_bfloat16:
            assert isa.relaxed() == isa


@needs_bfloat16
def test_programs_are_kept_apart_and_kernels_shared() -> None:
    graph = convolutions(size=8, num_layers=1).build()
    view, isa = SubgraphView.of(graph, graph.layers), ISAS[0]
    assert program_key(region_digest(view), isa, 1) != program_key(
        region_digest(view), isa.relaxed(), 1
    )
    kernel = Kernel("softmax", ("f32", "softmax"))
    assert object_key(kernel, isa) == object_key(kernel, isa.relaxed())


def registry() -> BackendRegistry:
    """NumbaAcc, and CpuRef for what it leaves."""
    backends = BackendRegistry()
    backends.register("NumbaAcc", NumbaBackend)
    return backends


@needs_bfloat16
@pytest.mark.parametrize("is_relaxed", [False, True])
def test_nnapi_models_are_computed_so_only_if_they_allow_it(is_relaxed: bool) -> None:
    with DeviceManager(armpy.RuntimeOptions(registry=registry())) as manager:
        model = Model(manager)
        size = 1 << 13
        tensor = OperandType(OperandCode.TENSOR_FLOAT32, (1, size))
        weights, bias = (
            model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, shape))
            for shape in ((1, size), (1,))
        )
        model.set_operand_value(weights, np.ones((1, size), np.float32))
        model.set_operand_value(bias, np.zeros(1, np.float32))
        fuse = model.add_operand(OperandType(OperandCode.INT32))
        model.set_operand_value(fuse, 0)
        x, y = (
            model.add_operand(tensor),
            model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, (1, 1))),
        )
        model.add_operation(OperationCode.FULLY_CONNECTED, [x, weights, bias, fuse], [y])
        model.identify_inputs_and_outputs([x], [y])
        model.relax_computation_float32_to_float16(is_relaxed)
        model.finish()
        with Compilation(model) as compilation:
            compilation.finish()
            row = np.zeros((1, size), np.float32)
            row[0, :2] = 1 + 2**-10, 1
            (sum_,) = compilation(row)
    assert sum_.item() == (2 if is_relaxed else 2 + 2**-10)


@needs_bfloat16
@pytest.mark.parametrize("name", ["pretrainedResnet", "vww_96_float"])
def test_whole_models_agree_within_the_tolerance_of_relaxed_ones(name: str) -> None:
    path = shared_file("models", "mlperf_tiny", f"{name}.tflite")
    outputs = []
    for backend_options in ({}, {"NumbaAcc": {"fast_math_enabled": True}}):
        chosen = ["NumbaAcc"] if backend_options else ["CpuRef"]
        options = armpy.RuntimeOptions(backends=chosen, backend_options=backend_options)
        with armpy.Runtime(options) as runtime:
            model = armpy.load(path, runtime=runtime)
            image = np.random.default_rng(1).uniform(
                0, 1, [d or 1 for d in model.inputs[0].shape or ()]
            )
            outputs.append(model(image.astype(np.float32)))
    want, actual = (np.asarray(output) for output in outputs)
    assert np.all(np.abs(want - actual) <= RELAXED.absolute + RELAXED.relative * np.abs(want))
    assert np.any(want != actual)
