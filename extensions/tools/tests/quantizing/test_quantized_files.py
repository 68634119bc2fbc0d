"""Files that `quantize` writes give the same results in armpy and in LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import armpy
from armpy import Model, Network, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.frontends.tflite_writer.tflite import Extras, read_extras, tflite_bytes, write_tflite
from armpy.graph import Graph
from armpy_tools.quantize import QuantizeOptions, quantize

from ..float_networks import FLOATS, image_network, images

CPU = ["CpuRef"]
Floats = npt.NDArray[np.float32]


def run(graph: Graph, array: Floats) -> Floats:
    with Model(graph, Runtime(RuntimeOptions(backends=CPU))) as model:
        (output,) = model.run({model.inputs[0].name: array}).values()
        return output


def read_back(graph: Graph, array: Floats) -> Floats:
    with armpy.load(tflite_bytes(graph), backends=CPU) as model:
        (output,) = model.run({model.inputs[0].name: array}).values()
        return output


def run_by_litert(content: bytes, array: Floats) -> Floats:
    """What LiteRT's reference kernels make of a file."""
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], array)
    interpreter.invoke()
    output: Floats = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return output


IMAGE: Floats = np.asarray(images(1, seed=9)[0]["image"], np.float32)


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_litert_computes_a_quantised_file_to_the_bit_as_armpy(scheme: str) -> None:
    options = QuantizeOptions(scheme=scheme)
    quantized = quantize(image_network(), images(4), options=options, backends=CPU, judge_limit=0)
    expected = run(quantized.graph, IMAGE)
    np.testing.assert_array_equal(read_back(quantized.graph, IMAGE), expected)
    np.testing.assert_array_equal(run_by_litert(tflite_bytes(quantized.graph), IMAGE), expected)


def test_float_graphs_are_written_too() -> None:
    graph = image_network()
    expected = run(graph, IMAGE)
    np.testing.assert_array_equal(read_back(graph, IMAGE), expected)
    np.testing.assert_allclose(run_by_litert(tflite_bytes(graph), IMAGE), expected, rtol=1e-5)


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
