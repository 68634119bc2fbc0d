"""Files that `quantize` writes give the same results in armpy and in LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import armpy
from armpy import Model, Network, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.frontends.tflite_writer.tflite import Extras, read_extras, tflite_bytes, write_tflite
from armpy_testing.litert_oracle import run_litert
from armpy_tools.quantize import QuantizeOptions, quantize

from ..float_networks import FLOATS, image_network, images

CPU = ["CpuRef"]


IMAGE: npt.NDArray[np.float32] = np.asarray(images(1, seed=9)[0]["image"], np.float32)


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_litert_computes_a_quantised_file_to_the_bit_as_armpy(scheme: str) -> None:
    options = QuantizeOptions(scheme=scheme)
    quantized = quantize(image_network(), images(4), options=options, backends=CPU, judge_limit=0)
    content = tflite_bytes(quantized.graph)
    with Model(quantized.graph, Runtime(RuntimeOptions(backends=CPU))) as model:
        expected = model(IMAGE)
    with armpy.load(content, backends=CPU) as model:
        np.testing.assert_array_equal(model(IMAGE), expected)
    np.testing.assert_array_equal(run_litert(content, [IMAGE])[0], expected)


@pytest.mark.parametrize("name", ["with.tflite", "with.onnx", "with"])
def test_metadata_and_labels_of_the_original_go_along(tmp_path: Path, name: str) -> None:
    net = Network()
    x = net.input("x", TensorInfo((None, 2), FLOATS))
    net.output("y", net.add(ops.ElementwiseBinary(), x, x))
    extras = Extras({"TFLITE_METADATA": b"described"}, {"labels.txt": b"cat\ndog\n"})
    write_tflite(net.build(), tmp_path / name, extras=extras)
    assert read_extras(tmp_path / name) == extras
    quantized = quantize(tmp_path / name, {"x": np.ones((2, 2), np.float32)}, backends=CPU)
    assert quantized.graph.inputs[0].info.shape == (None, 2)
    quantized.save(tmp_path / "small.tflite")
    assert read_extras(tmp_path / "small.tflite") == extras
