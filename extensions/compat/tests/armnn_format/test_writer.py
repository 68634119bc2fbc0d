"""What is written as .armnn and read again computes the same, bit for bit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import armpy
from armpy import DataType, Network, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.errors import ArmpyError, UnimplementedError
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.plugins.hooks import ParseSettings, open_model_file
from armpy_compat.armnn_format import read_bindings, write
from armpy_compat.armnn_format.parser import parse_file
from armpy_compat.armnn_format.writer import EMITTERS
from armpy_conformance.case import Case
from armpy_conformance.cases import operation_cases
from armpy_testing.effort import IS_FULL
from armpy_testing.shared import shared_file

RUNTIME = Runtime(RuntimeOptions(backends=["CpuRef"]))
WITHOUT_CASES = {"DetectionPostProcess", "Fill", "StandIn"}
"""Operations whose cases have other operands than the format: tests of their own hold these."""


@cache
def emitted_cases() -> tuple[Case, ...]:
    """The kit's cases of operations that the writer takes; making them takes seconds."""
    return tuple(case for case in operation_cases() if case.operation.name in EMITTERS)


def reread(data: bytes) -> Graph:
    """The graph of a file."""
    return parse_file(open_model_file(data), ParseSettings(None, 1 << 32, {})).build()


def outputs_of(graph: Graph, feeds: dict[str, Array]) -> dict[str, Array] | str:
    """What a graph computes on CpuRef; the kind of error if it raises one."""
    try:
        with armpy.Model(armpy.optimize(graph, ["CpuRef"]), RUNTIME) as model:
            return model.run(feeds)
    except ArmpyError as error:
        return type(error).__name__


def assert_round_trip(graph: Graph, feeds: dict[str, Array]) -> None:
    """Hold a graph against what is read of the file that is written of it."""
    again = reread(write(graph))
    assert [value.info.shape for value in again.inputs] == [
        tuple(1 if dim is None else dim for dim in value.info.shape or ()) for value in graph.inputs
    ]
    expected, actual = outputs_of(graph, feeds), outputs_of(again, feeds)
    if isinstance(expected, str) or isinstance(actual, str):
        assert expected == actual
        return
    assert list(expected) == list(actual)
    steps = 0 if _has_float32_scales(graph) else 1
    for name, array in expected.items():
        assert (array.dtype, array.shape) == (actual[name].dtype, actual[name].shape)
        if steps and array.dtype.kind in "iu":
            np.testing.assert_allclose(actual[name], array, rtol=0, atol=steps)
        else:
            np.testing.assert_array_equal(actual[name], array)


def _has_float32_scales(graph: Graph) -> bool:
    """Whether the format, whose scales are float32, holds all scales as they are."""
    infos = [value.info for value in graph.values() if value.info.quantization is not None]
    scales = [scale for info in infos if info.quantization for scale in info.quantization.scales]
    return all(float(np.float32(scale)) == scale for scale in scales)


def _writable(case: Case) -> bool:
    try:
        write(case.graph())
    except UnimplementedError:
        return False
    return True


@pytest.mark.parametrize("number", range(12))
def test_cases_of_operations_survive_a_round_trip(number: int) -> None:
    cases = [case for case in emitted_cases()[number::600] if _writable(case)]
    assert cases
    for case in cases:
        assert_round_trip(case.graph(), case.feeds())


@pytest.mark.slow
@pytest.mark.parametrize("number", range(0, 20, 1 if IS_FULL else 10))
def test_every_case_survives_a_round_trip(number: int) -> None:
    for case in emitted_cases()[number::20]:
        if _writable(case):
            assert_round_trip(case.graph(), case.feeds())


@pytest.mark.slow
def test_every_operation_of_the_writer_has_a_case_that_it_takes() -> None:
    writable = {case.operation.name for case in emitted_cases() if _writable(case)}
    assert set(EMITTERS) - writable == WITHOUT_CASES


def _random_network(seed: int) -> tuple[Graph, dict[str, Array]]:
    """A network of layers that are drawn by chance, with branches that meet again."""
    rng = np.random.default_rng(seed)
    net = Network(f"random {seed}")
    shape = (1, 8, 8, 4)
    values = [net.input("x", TensorInfo(shape, DataType.FLOAT32))]
    for number in range(int(rng.integers(3, 12))):
        value = values[int(rng.integers(len(values)))]
        size = (value.info.shape or ())[1]
        kind = int(rng.integers(7))
        name = f"layer {number}"
        if kind == 0:
            weights = net.constant(rng.normal(size=(4, 3, 3, 4)).astype(np.float32))
            activation = ops.FusedActivation(int(rng.integers(4)))
            operation = ops.Convolution2d(padding=ops.Padding.SAME, activation=activation)
            values.append(net.add(operation, value, weights, name=name))
        elif kind == 1:
            weights = net.constant(rng.normal(size=(1, 3, 3, 4)).astype(np.float32))
            bias = net.constant(rng.normal(size=4).astype(np.float32))
            depthwise = ops.DepthwiseConvolution2d(padding=ops.Padding.SAME)
            values.append(net.add(depthwise, value, weights, bias, name=name))
        elif kind == 2:
            other = values[int(rng.integers(len(values)))]
            function = ops.BinaryOperation(int(rng.integers(2, 7)))
            if other.info.shape == value.info.shape:
                values.append(net.add(ops.ElementwiseBinary(function), value, other, name=name))
        elif kind == 3:
            clamp = ops.ActivationFunction(int(rng.choice([0, 2, 3, 6, 7, 11, 12])))
            values.append(net.add(ops.Activation(clamp, 0.5, 0.25), value, name=name))
        elif kind == 4 and size and size > 2:
            pool = ops.Pooling2d(ops.PoolingAlgorithm(int(rng.integers(3))), (2, 2), (2, 2))
            values.append(net.add(pool, value, name=name))
        elif kind == 5:
            order = ops.Transpose((0, 2, 1, 3))
            values.append(net.add(order, value, name=name))
        else:
            around = ops.Pad(((0, 0), (0, 1), (1, 0), (0, 0)), pad_value=0.5)
            values.append(net.add(around, value, name=name))
    for number, value in enumerate(values[-3:]):
        net.output(f"y{number}", value)
    return net.build(), {"x": rng.normal(size=shape).astype(np.float32)}


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_survive_a_round_trip(seed: int) -> None:
    assert_round_trip(*_random_network(seed))


@pytest.mark.parametrize(
    "model", ["micro/hello_world_int8.tflite", "mlperf_tiny/kws_ref_model.tflite"]
)
def test_a_trained_model_survives_a_round_trip(model: str) -> None:
    with armpy.load(shared_file("models", *model.split("/")), backends=["CpuRef"]) as loaded:
        graph = loaded.graph
        rng = np.random.default_rng(0)
        feeds = {
            value.name: rng.integers(
                -128, 128, [1 if dim is None else dim for dim in value.info.shape or ()]
            ).astype(value.info.data_type.dtype)
            for value in loaded.inputs
        }
    assert_round_trip(graph, feeds)


def test_fill_survives_a_round_trip() -> None:
    net = Network("fill")
    x = net.input("x", TensorInfo((2, 3), DataType.FLOAT32))
    filled = net.add(ops.Fill((2, 3)), net.constant(np.float32(0.5)), name="halves")
    net.output("y", net.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), x, filled))
    assert_round_trip(net.build(), {"x": np.arange(6, dtype=np.float32).reshape(2, 3)})


@pytest.mark.parametrize("use_regular_nms", [False, True])
def test_detection_survives_a_round_trip(use_regular_nms: bool) -> None:
    rng = np.random.default_rng(3)
    net = Network("detection")
    boxes = net.input("boxes", TensorInfo((1, 12, 4), DataType.FLOAT32))
    scores = net.input("scores", TensorInfo((1, 12, 4), DataType.FLOAT32))
    anchors = net.constant(rng.uniform(0.2, 0.8, (12, 4)).astype(np.float32))
    operation = ops.DetectionPostProcess(
        5, 1, 4, 0.25, 0.5, 3, use_regular_nms, scale_y=10, scale_x=10, scale_h=5, scale_w=5
    )
    layer = net.add_layer(operation, (boxes, scores, anchors), name="found")
    for number, value in enumerate(layer.outputs):
        net.output(f"y{number}", value)
    feeds = {
        "boxes": rng.normal(size=(1, 12, 4)).astype(np.float32),
        "scores": rng.uniform(size=(1, 12, 4)).astype(np.float32),
    }
    assert_round_trip(net.build(), feeds)


@pytest.mark.parametrize("operator", ["StandIn", "Merge", "Switch"])
def test_layers_that_no_backend_of_armpy_runs_keep_their_kind(operator: str) -> None:
    net = Network("vendor")
    info = TensorInfo((2, 3), DataType.FLOAT32)
    x = net.input("x", info)
    layer = net.add_layer(ops.StandIn(operator, num_results=2), (x, x), outputs=(info, info))
    net.output("y", layer.outputs[1])
    (again,) = reread(write(net)).layers
    assert again.operation == ops.StandIn(operator, num_results=2)
    assert again.output_infos == (info, info)


def test_open_sizes_are_those_that_the_model_is_prepared_for() -> None:
    net = Network("open")
    x = net.input("x", TensorInfo((None, 3), DataType.FLOAT32), default_shape=(4, 3))
    net.output("y", net.add(ops.Softmax(), x))
    (value,) = reread(write(net)).inputs
    assert value.info.shape == (4, 3)


def test_bindings_are_numbers_in_the_order_of_inputs_and_outputs() -> None:
    net = Network("two")
    a = net.input("a", TensorInfo((2,), DataType.FLOAT32))
    b = net.input("b", TensorInfo((2,), DataType.FLOAT32))
    net.output("sum", net.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), a, b))
    net.output("a again", a)
    bindings = read_bindings(write(net))
    assert [(binding.name, binding.binding_id) for binding in bindings.inputs] == [
        ("a", 0),
        ("b", 1),
    ]
    assert [(binding.name, binding.binding_id) for binding in bindings.outputs] == [
        ("sum", 0),
        ("a again", 1),
    ]
    assert bindings.outputs[0].info.shape == (2,)


def test_what_the_format_lacks_is_refused_with_the_name_of_the_layer() -> None:
    net = Network("gone")
    x = net.input("x", TensorInfo((3,), DataType.FLOAT32))
    net.output("y", net.add(ops.Cumulate(axis=0), x, name="running sum"))
    with pytest.raises(UnimplementedError, match=r"'running sum'.*no layer for it.*armpy.save"):
        write(net)


def test_types_that_the_format_lacks_are_refused() -> None:
    net = Network("wide")
    x = net.input("x", TensorInfo((3,), DataType.FLOAT64))
    net.output("y", x)
    with pytest.raises(UnimplementedError, match=r"tensor 'x'.*no type FLOAT64"):
        write(net)


def test_state_is_refused() -> None:
    net = Network("counter")
    state = net.variable("count", TensorInfo((1,), DataType.FLOAT32))
    net.output("y", state)
    with pytest.raises(UnimplementedError, match=r"'count'.*keeps state"):
        write(net)
