"""Quantising float networks to integers: which layers, which scales, how accurate."""

from typing import Any  # arguments of wrong types

import numpy as np
import pytest

import armpy
from armpy import (
    DataType,
    InvalidArgumentError,
    Model,
    Network,
    Runtime,
    RuntimeOptions,
    TensorInfo,
    ops,
)
from armpy.graph import Graph, Layer
from armpy.ops.operation import Array
from armpy_tools.quantize import QuantizedModel, QuantizeOptions, quantize

from ..float_networks import FLOATS, image_network, images

CPU = ["CpuRef"]


@pytest.fixture(scope="module")
def made() -> QuantizedModel:
    return quantize(image_network(), images(12), backends=CPU)


def cpu() -> Runtime:
    return Runtime(RuntimeOptions(backends=CPU))


def layer(graph: Graph, name: str) -> Layer:
    return next(candidate for candidate in graph.layers if candidate.name == name)


def test_every_layer_becomes_integers_and_the_edges_stay_float(made: QuantizedModel) -> None:
    assert made.report.kept_float == ()
    kinds = [member.operation.name for member in made.graph.layers]
    assert kinds[0] == "Quantize"
    assert kinds[-1] == "Dequantize"
    assert kinds.count("Quantize") == 2  # of the input, and of the gate for the joined tensor
    assert made.graph.inputs[0].info.data_type is FLOATS
    assert made.graph.outputs[0].info.data_type is FLOATS


def test_weights_are_symmetric_by_channel_and_biases_have_the_sums_scale(
    made: QuantizedModel,
) -> None:
    first = layer(made.graph, "second")
    weights, bias, source = first["weights"], first["bias"], first["input"]
    scales = weights.info.quantization
    assert weights.info.data_type is DataType.QSYMM_S8
    assert scales is not None
    assert scales.axis == 0
    original = np.random.default_rng(7)
    original.normal(0, 0.3, (6, 3, 3, 3))
    original.normal(0, 0.2, 6)
    expected = np.abs(original.normal(0, 0.3, (6, 3, 3, 6))).max(axis=(1, 2, 3)) / 127
    np.testing.assert_allclose(scales.scales, expected, rtol=1e-6)
    assert weights.data is not None
    assert np.abs(weights.data.astype(int)).max() == 127
    assert bias.info.data_type is DataType.SIGNED32
    assert bias.info.quantization is not None
    np.testing.assert_allclose(
        bias.info.quantization.scales, np.array(scales.scales) * source.info.scale, rtol=1e-6
    )


def test_functions_of_known_range_have_the_scales_of_the_specification(
    made: QuantizedModel,
) -> None:
    for name in ("gate", "scores"):
        info = layer(made.graph, name).output.info
        assert (info.scale, info.zero_point) == (1 / 256, -128), name


def test_what_is_joined_has_one_scale_and_moving_layers_keep_it(made: QuantizedModel) -> None:
    joined = layer(made.graph, "joined")
    scales = {value.info.quantization for value in (*joined.inputs, joined.output) if value}
    assert len(scales) == 1
    # The convolution writes on the joined scale at once; the gate's scale is fixed.
    assert joined.inputs[0] is layer(made.graph, "third").output
    assert layer(made.graph, "pooled").output.info.quantization in scales


def test_it_is_as_accurate_as_eight_bits_can_be(made: QuantizedModel) -> None:
    (output,) = made.report.outputs
    assert output.num_rows == 12
    assert output.top1_agreement == 1.0
    assert output.max_error < 0.02
    by_layer = {accuracy.layer: accuracy for accuracy in made.report.layers}
    # 8 bits over a range give about 6 * 8 - some for the shape of the distribution.
    assert by_layer["first"].sqnr_db > 30
    assert all(accuracy.sqnr_db > 25 for accuracy in made.report.layers)


def test_the_report_says_what_a_model_run_by_hand_says(made: QuantizedModel) -> None:
    samples = images(12)
    with Model(image_network(), cpu()) as before, made.load(cpu()) as after:
        pairs = [(before(sample["image"]), after(sample["image"])) for sample in samples]
    right, actual = (np.concatenate(list(side)) for side in zip(*pairs, strict=True))
    noise = ((right - actual).astype(np.float64) ** 2).sum()
    expected = 10 * np.log10((right.astype(np.float64) ** 2).sum() / noise)
    assert made.report.outputs[0].sqnr_db == pytest.approx(expected, abs=0.05)


def test_named_layers_stay_float_and_are_reported() -> None:
    options = QuantizeOptions(keep_float=("second",))
    quantized = quantize(image_network(), images(4), options=options, backends=CPU)
    assert [(refused.layer, refused.reason) for refused in quantized.report.kept_float] == [
        ("second", "asked to stay float")
    ]
    second = layer(quantized.graph, "second")
    assert second.output.info.data_type is FLOATS
    assert second["weights"].info.data_type is FLOATS


def test_a_layer_without_an_integer_form_stays_float_between_conversions() -> None:
    net = Network()
    x = net.input("x", TensorInfo((1, 4), FLOATS))
    doubled = net.add(ops.ElementwiseBinary(), x, x, name="doubled")
    wave = net.add(ops.ElementwiseUnary(ops.UnaryOperation.SIN), doubled, name="wave")
    net.output("y", net.add(ops.ElementwiseBinary(), wave, wave, name="again"))
    rows = {"x": np.linspace(-1, 1, 40, dtype=np.float32).reshape(10, 4)}
    quantized = quantize(net, rows, backends=CPU)
    assert [(refused.layer, refused.reason) for refused in quantized.report.kept_float] == [
        ("wave", "has no integer form")
    ]
    assert [member.operation.name for member in quantized.graph.layers] == [
        *("Quantize", "ElementwiseBinary", "Dequantize", "ElementwiseUnary"),
        *("Quantize", "ElementwiseBinary", "Dequantize"),
    ]
    assert quantized.report.num_samples == 10


@pytest.mark.parametrize(
    ("io", "data_type"), [("int8", DataType.QASYMM_S8), ("uint8", DataType.QASYMM_U8)]
)
def test_inputs_and_outputs_can_be_integers(io: str, data_type: DataType) -> None:
    quantized = quantize(image_network(), images(4), options=QuantizeOptions(io=io), backends=CPU)
    assert quantized.graph.inputs[0].info.data_type is data_type
    assert quantized.graph.outputs[0].info.data_type is data_type
    assert quantized.report.outputs[0].max_error < 0.02


def test_sixteen_bits_are_more_accurate_than_eight(made: QuantizedModel) -> None:
    options = QuantizeOptions(scheme="int16x8")
    quantized = quantize(image_network(), images(12), options=options, backends=CPU)
    first = layer(quantized.graph, "first")
    assert first.output.info.data_type is DataType.QSYMM_S16
    assert first["bias"].info.data_type is DataType.SIGNED64
    assert quantized.report.outputs[0].sqnr_db > made.report.outputs[0].sqnr_db


def test_correcting_biases_takes_the_mean_error_off() -> None:
    net = Network()
    x = net.input("x", TensorInfo((1, 64), FLOATS))
    generator = np.random.default_rng(3)
    weights = generator.normal(0, 1, (8, 64)).astype(np.float32)
    weights[:, 0] = 40  # coarse scales, so that rounding moves the sums
    net.output("y", net.add(ops.FullyConnected(), x, net.constant(weights), name="dense"))
    rows = {"x": generator.uniform(0.5, 1.5, (64, 64)).astype(np.float32)}
    errors = {}
    for corrects in (False, True):
        options = QuantizeOptions(correct_bias=corrects)
        quantized = quantize(net, rows, options=options, backends=CPU, judge_limit=64)
        errors[corrects] = quantized.report.outputs[0].mean_error
    assert errors[True] < 0.8 * errors[False]


def test_a_tensor_that_becomes_no_number_is_refused_with_the_sample_that_does_it() -> None:
    net = Network("roots")
    value = net.input("x", TensorInfo((1, 4), FLOATS))
    root = net.add(ops.ElementwiseUnary(ops.UnaryOperation.SQRT), value, name="root")
    weights = net.constant(np.ones((2, 4), np.float32))
    net.output("y", net.add(ops.FullyConnected(), root, weights, name="sum"))
    samples = [{"x": np.full((1, 4), number, np.float32)} for number in (4.0, -1.0, 9.0)]
    with pytest.raises(InvalidArgumentError, match=r"or no number, on sample 2 of 3 of the data"):
        quantize(net, samples, backends=CPU)


def test_integers_without_data_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"ranges of activations need data"):
        quantize(image_network(), backends=CPU)


def test_a_layer_that_is_not_there_cannot_stay_float() -> None:
    options = QuantizeOptions(keep_float=("secnd",))
    with pytest.raises(InvalidArgumentError, match=r"no such layer.*'second'.*'secnd'"):
        quantize(image_network(), images(1), options=options, backends=CPU)


def long_names() -> Network:
    """Two layers whose names are long, as converters make them."""
    net = Network()
    x = net.input("x", TensorInfo((1, 8), FLOATS))
    for number in range(2):
        name = (
            f"model_{number}/conv1_{number}/Relu6;" + f"model/block_{number}/BatchNorm/Fused;" * 4
        )
        x = net.add(ops.Activation(ops.ActivationFunction.RELU), x, name=name)
    net.output("y", x)
    return net


@pytest.mark.parametrize(
    ("data", "actual"),
    [
        (np.zeros((3, 1, 8), np.float32), "ndarray"),
        ([np.zeros((1, 8), np.float32)], "list of ndarray"),
        (3, "int of int"),
    ],
)
def test_data_that_name_no_input_are_refused(data: Any, actual: str) -> None:
    text = (
        r"^data: the data do not name the model's inputs\. Expected a mapping of arrays by input, "
        rf"with samples along their first axis; got {actual}\. Pass {{'x': array}}\.$"
    )
    with pytest.raises(InvalidArgumentError, match=text):
        quantize(long_names(), data, backends=CPU)


@pytest.mark.parametrize(
    ("samples", "text"),
    [
        (np.zeros((20, 1, 8), np.float32), "each array of the data holds one number only, so that"),
        (
            np.tile(np.arange(8, dtype=np.float32), (20, 1, 1)),
            "all 20 samples of the data are equal",
        ),
        (np.arange(24, dtype=np.float32).reshape(3, 1, 8), "ranges are from 3 samples; other"),
        (np.arange(160, dtype=np.float32).reshape(20, 1, 8), ""),
    ],
)
def test_data_that_say_little_are_warned_of(
    samples: Array, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = quantize(long_names(), {"x": samples}, backends=CPU)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == bool(text)
    assert messages == [f"{warning}." for warning in made.report.data_warnings()]
    assert all(text in message and "Give some 100 typical" in message for message in messages)


def test_weights_that_are_stored_small_are_quantised_as_what_they_stand_for() -> None:
    net = Network()
    x = net.input("x", TensorInfo((1, 4), FLOATS))
    scales = armpy.Quantization.per_axis([0.5, 0.25], 0)
    weights = net.constant(
        np.array([[1, -2, 3, 4], [5, 6, -7, 8]], np.int8),
        data_type=DataType.QSYMM_S8,
        quantization=scales,
    )
    net.output("y", net.add(ops.FullyConnected(), x, weights, name="dense"))
    rows = {"x": np.random.default_rng(0).normal(0, 1, (20, 4)).astype(np.float32)}
    quantized = quantize(net, rows, backends=CPU)
    quantization = layer(quantized.graph, "dense")["weights"].info.quantization
    assert quantization is not None
    np.testing.assert_allclose(quantization.scales, [2 / 127, 2 / 127], rtol=1e-6)
    assert quantized.report.outputs[0].sqnr_db > 30


def test_a_lookup_in_a_constant_gives_integers() -> None:
    net = Network()
    x = net.input("x", TensorInfo((3,), DataType.SIGNED32))
    table = net.constant(np.linspace(-1, 1, 20, dtype=np.float32).reshape(10, 2))
    rows = net.add(ops.Gather(0), table, x, name="rows")
    net.output("y", net.add(ops.ElementwiseBinary(), rows, rows, name="doubled"))
    quantized = quantize(net, [{"x": np.array([0, 9, 4], np.int32)}], backends=CPU)
    assert layer(quantized.graph, "rows").output.info.data_type is DataType.QASYMM_S8
    assert quantized.report.outputs[0].max_error < 0.02
