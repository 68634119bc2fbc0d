"""Descriptions of models: totals against published figures, and each layer's backend."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import Network, ops
from armpy.errors import UnsupportedOperatorError
from armpy.inspect import (
    LayerFacts,
    LayerStatus,
    ModelFacts,
    describe_file,
    describe_model,
)
from armpy.model import Model, ModelOrigin
from armpy.plugins import BackendRegistry
from armpy.plugins.hooks.model_file import open_model_file
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of
from armpy_testing.models.control_flow import loop
from armpy_testing.models.networks import ADD, RELU, f32
from armpy_testing.shared import shared_file

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def origin_of(path: Path) -> ModelOrigin:
    return ModelOrigin.find(open_model_file(path), path, BackendRegistry.discover())


def described(path: Path, *backends: str) -> ModelFacts:
    outline = origin_of(path).outline()
    with armpy.load(path, backends=backends or ("CpuRef",)) as model:
        return describe_model(model, outline, file_bytes=path.stat().st_size)


def shared_model(name: str) -> Path:
    return shared_file("models", *name.split("/"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "parameters", "million_macs"),
    [
        # MobileNetV2 1.0 224: Keras counts 3,538,984 parameters, of which 68,224 are of batch
        # normalisation, whose 17,056 offsets remain; the paper says 300 million.
        ("micro/mobilenet_v2_quantized_1x3x224x224.tflite", 3_538_984 - 68_224 + 17_056, 300.8),
        # MLPerf Tiny's published multiplications of its reference models.
        ("mlperf_tiny/pretrainedResnet_quant.tflite", 77_706, 12.5),
        ("mlperf_tiny/kws_ref_model.tflite", 22_604, 2.66),
        ("mlperf_tiny/vww_96_int8.tflite", 210_850, 7.49),
        ("mlperf_tiny/ad01_int8.tflite", 265_864, 0.264),
    ],
)
def test_parameters_and_multiplications_are_the_published_ones(
    name: str, parameters: int, million_macs: float
) -> None:
    facts = described(shared_model(name))
    assert facts.parameters == parameters
    assert facts.macs / 1e6 == pytest.approx(million_macs, rel=0.005)
    assert facts.macs == sum(layer.macs for layer in facts.layers)
    assert facts.parameters == sum(layer.parameters for layer in facts.layers)


def test_every_layer_of_a_file_is_described_where_one_program_runs_all() -> None:
    facts = described(DIGITS, "NumbaAcc", "CpuRef")
    assert facts.operators == {
        **{"CONV_2D": 3, "DEPTHWISE_CONV_2D": 1, "MAX_POOL_2D": 2, "ADD": 1},
        **{"RESHAPE": 1, "FULLY_CONNECTED": 1, "SOFTMAX": 1},
    }
    (program,) = facts.programs
    assert (program.operation, program.layers) == ("PreCompiled", tuple(range(10)))
    for layer in facts.layers:
        assert (layer.status, layer.backends, layer.programs) == ("runs", ("NumbaAcc",), (0,))
    assert facts.file_bytes == DIGITS.stat().st_size


def test_a_convolutions_figures_are_those_worked_out_by_hand() -> None:
    net = Network("one")
    x = net.input("x", f32(1, 8, 8, 3))
    weights = net.constant(np.zeros((4, 3, 3, 3), np.float32))
    bias = net.constant(np.zeros(4, np.float32))
    convolution = net.add(
        ops.Convolution2d(padding=((1, 1), (1, 1))), x, weights, bias, name="conv"
    )
    net.output("y", convolution)
    facts = describe_model(Model(net, runtime_of()))
    (layer,) = facts.layers
    assert (layer.operator, layer.name, layer.shape) == ("Convolution2d", "conv", (1, 8, 8, 4))
    assert (layer.parameters, layer.parameter_bytes) == (4 * 27 + 4, 4 * (4 * 27 + 4))
    assert layer.macs == 64 * 4 * 27
    assert layer.bytes_moved == 4 * (192 + 108 + 4 + 256)
    assert [tensor.role for tensor in facts.tensors] == [
        "input",
        "parameter",
        "parameter",
        "output",
    ]
    assert not facts.is_file


def test_open_dimensions_have_the_size_that_was_prepared_for() -> None:
    net = Network("open")
    net.output("y", net.add(RELU, net.input("x", f32(None, 2)), name="relu"))
    model = Model(net, runtime_of())
    (layer,) = describe_model(model).layers
    assert (layer.status, layer.shape, layer.bytes_moved) == ("unplaced", (None, 2), 0)
    model.prepare({"x": (3, 2)})
    (layer,) = describe_model(model).layers
    assert (layer.status, layer.shape, layer.bytes_moved) == ("runs", (3, 2), 48)


def test_layers_in_graphs_of_control_flow_say_where_they_are() -> None:
    facts = describe_model(Model(loop(3), runtime_of()))
    assert [(layer.inside, layer.name) for layer in facts.layers] == [
        ("", "loop"),
        ("loop/condition", "Comparison_0"),
        ("loop/body", "count"),
    ]
    assert {layer.status for layer in facts.layers} == {LayerStatus.RUNS}
    assert [program.layers for program in facts.programs] == [(0,), (1,), (2,)]


def by_name(facts: ModelFacts) -> dict[str, LayerFacts]:
    return {layer.name: layer for layer in facts.layers}


def test_onnx_names_what_was_fused_and_what_was_computed_when_loaded() -> None:
    pytest.importorskip("armpy_onnx")
    pytest.importorskip("onnx")
    layers = by_name(described(shared_model("onnx/mnist.onnx")))
    assert layers["Times212_reshape1"].status is LayerStatus.CONSTANT
    assert layers["Convolution110"].status is LayerStatus.RUNS
    fused = layers["Plus112"]
    assert (fused.status, fused.into, fused.operator) == ("fused", "Convolution110", "Add")
    assert layers["Convolution28"].macs == 28 * 28 * 8 * 25


def test_a_model_that_cannot_run_is_described_all_the_same() -> None:
    path = shared_model("operators/custom_op.tflite")
    outline = origin_of(path).outline()
    assert outline is not None
    with pytest.raises(UnsupportedOperatorError, match="operators that armpy does not have") as e:
        armpy.load(path)
    facts = describe_file(outline, e.value)
    assert facts.unsupported == {"custom 'MyVendorOp'": 1}
    marked = [layer for layer in facts.layers if layer.status is LayerStatus.UNSUPPORTED]
    assert len(marked) == 1


def test_refusals_are_shown_with_the_layer() -> None:
    net = Network("two")
    x = net.input("x", f32(2))
    net.output("y", net.add(ADD, net.add(RELU, x, name="a"), x, name="b"))
    fast = FakeBackend("Fast", {type(RELU)})
    layers = by_name(describe_model(Model(net, runtime_of(fast))))
    assert (layers["a"].backends, layers["a"].refusals) == (("Fast",), ())
    assert layers["b"].backends == ("CpuRef",)
    (refusal,) = layers["b"].refusals
    assert (refusal.backend, refusal.code) == ("Fast", "operation")


def test_operators_between_quantisers_are_described_as_one(tmp_path: Path) -> None:
    pytest.importorskip("armpy_onnx")
    onnx = pytest.importorskip("onnx")
    pairs = "QuantizeLinear(x, s, z)", "DequantizeLinear(q, s, z)"
    text = f"""
    <ir_version: 8, opset_import: ["" : 13]>
    pairs (float[1, 1, 4, 4] x) => (float[1, 1, 3, 3] y)
    <float s = {{0.5}}, int8 z = {{0}}, int8[1, 1, 2, 2] w = {{1, 2, 3, 4}}> {{
        q = {pairs[0]}
        d = {pairs[1]}
        v = DequantizeLinear(w, s, z)
        c = Conv(d, v)
        r = Relu(c)
        p = QuantizeLinear(r, s, z)
        y = DequantizeLinear(p, s, z)
    }}"""
    path = tmp_path / "pairs.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    layers = described(path).layers
    conv = layers[3]
    assert (conv.operator, conv.status, conv.macs) == ("Conv", "runs", 9 * 4)
    assert [layer.status for layer in layers] == [
        *("runs", "fused", "constant", "runs", "fused", "fused", "runs")
    ]
    assert {layer.into for layer in layers if layer.status == "fused"} == {conv.name}
