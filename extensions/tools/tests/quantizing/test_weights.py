"""Schemes that make weights small and compute with floats."""

from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import DataType, Network, TensorInfo, ops
from armpy.frontends.tflite_writer.tflite import tflite_bytes
from armpy.graph import Graph
from armpy_tools.quantize import QuantizeOptions, quantize

from ..float_networks import FLOATS

CPU = ["CpuRef"]
GENERATOR = np.random.default_rng(8)
WEIGHTS = GENERATOR.normal(0, 1, (64, 32)).astype(np.float32)


def dense() -> Graph:
    net = Network()
    x = net.input("x", TensorInfo((1, 32), FLOATS))
    y = net.add(ops.FullyConnected(), x, net.constant(WEIGHTS, name="w"), name="dense")
    few = net.constant(WEIGHTS[:4, :4].repeat(16, axis=1), name="few")
    net.output("y", net.add(ops.FullyConnected(), y, few, name="small"))
    return net.build()


def test_dynamic_weights_are_integers_beside_floats() -> None:
    options = QuantizeOptions(scheme="dynamic")
    samples = {"x": GENERATOR.normal(0, 1, (8, 32)).astype(np.float32)}
    quantized = quantize(dense(), samples, options=options, backends=CPU)
    weights = quantized.graph.layers[0]["weights"]
    assert weights.info.data_type is DataType.QSYMM_S8
    assert weights.info.scale == pytest.approx(np.abs(WEIGHTS).max() / 127)
    assert quantized.graph.layers[0].output.info.data_type is FLOATS
    assert [(refused.layer, refused.reason) for refused in quantized.report.kept_float] == [
        ("small", "has fewer than 1024 weights")
    ]
    assert 25 < quantized.report.outputs[0].sqnr_db < 60


def test_schemes_of_weights_alone_need_no_data() -> None:
    for scheme in ("dynamic", "float16"):
        quantized = quantize(dense(), options=QuantizeOptions(scheme=scheme), backends=CPU)
        assert quantized.report.layers == ()
        assert quantized.report.quantized_bytes < quantized.report.float_bytes


def test_half_weights_are_those_of_numpy_and_halve_a_tflite_file(tmp_path: Path) -> None:
    quantized = quantize(dense(), options=QuantizeOptions(scheme="float16"), backends=CPU)
    halved = [
        value for value in quantized.graph.values() if value.info.data_type is DataType.FLOAT16
    ]
    assert len(halved) == 1
    assert halved[0].data is not None
    np.testing.assert_array_equal(halved[0].data, WEIGHTS.astype(np.float16))
    size = quantized.save(tmp_path / "half.tflite")
    assert size < len(tflite_bytes(dense())) - WEIGHTS.nbytes // 2 + 512
    x = np.ones((1, 32), np.float32)
    with armpy.load(tmp_path / "half.tflite", backends=CPU) as model:
        (output,) = model.run({"x": x}).values()
    expected = WEIGHTS.astype(np.float16).astype(np.float32).sum(axis=1)
    few = WEIGHTS[:4, :4].repeat(16, axis=1)
    np.testing.assert_allclose(output[0], few @ expected, rtol=1e-4)


def test_a_named_layer_keeps_its_weights() -> None:
    options = QuantizeOptions(scheme="dynamic", keep_float=("dense",))
    quantized = quantize(dense(), options=options, backends=CPU)
    assert quantized.graph.layers[0]["weights"].info.data_type is FLOATS
