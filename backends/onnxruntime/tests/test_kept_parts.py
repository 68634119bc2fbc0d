"""A layer that the engine computes wrong is found from the file of the part that it got."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import DataType, Model, Network, OptimizerOptions, TensorInfo
from armpy.execution import NetworkProperties, Runtime, RuntimeOptions
from armpy.graph import Graph, Layer
from armpy.ops import Activation, ActivationFunction, FullyConnected, Softmax

pytest.importorskip("onnxruntime")
pytest.importorskip("armpy_onnxruntime")


SIGMOID = Activation(ActivationFunction.SIGMOID)


def network() -> Graph:
    net = Network("digits")
    x = net.input("x", TensorInfo((2, 6), DataType.FLOAT32))
    weights = net.constant(np.linspace(-1, 1, 36, dtype=np.float32).reshape(6, 6))
    x = net.add(FullyConnected(), x, weights, name="dense")
    x = net.add(SIGMOID, x, name="squash")
    net.output("y", net.add(Softmax(), x, name="classes"))
    return net.build()


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the engine compute the hyperbolic tangent in the place of the sigmoid function."""
    from armpy_onnxruntime.converters import CONVERTERS
    from armpy_onnxruntime.writer import ModelWriter

    right = CONVERTERS[Activation]

    def wrong(writer: ModelWriter, layer: Layer) -> None:
        if layer.operation == SIGMOID:
            value = layer.inputs[0]
            assert value is not None
            name = writer.add("Tanh", [writer.native(value)])
            writer.write(
                layer.outputs[0], name, channel_first=False, activation=FullyConnected().activation
            )
        else:
            right(writer, layer)

    converters: dict[type, object] = CONVERTERS  # type: ignore[assignment]
    monkeypatch.setitem(converters, Activation, wrong)


def keep(folder: Path, backend: str = "OrtCpu") -> Path:
    """Load the network with its parts kept; the only one's path without an ending."""
    options = OptimizerOptions(dump_graphs=str(folder))
    runtime = Runtime(RuntimeOptions(backends=[backend], on_fallback="error"))
    properties = NetworkProperties(optimizer=options)
    with Model(network(), runtime, properties=properties) as model:
        assert model.outputs[0].shape == (2, 6)
    (kept,) = folder.glob(f"*-part_{backend}.tflite")
    return kept.with_suffix("")


def difference_in_engine(kept: Path) -> float:
    """How far ONNX Runtime itself is from the kept answer, with the kept model."""
    import onnxruntime

    answers = dict(np.load(kept.with_suffix(".npz")))
    session = onnxruntime.InferenceSession(kept.with_suffix(".onnx"))
    (result,) = session.run(None, {"in_0": answers["input_0"]})
    assert result.shape == answers["output_0"].shape == (2, 6)
    return float(np.abs(result - answers["output_0"]).max())


@pytest.mark.usefixtures("fault")
@pytest.mark.parametrize("backend", ["OrtCpu", pytest.param("OrtCpuEp", marks=pytest.mark.slow)])
def test_a_planted_fault_is_found_from_the_kept_file_alone(tmp_path: Path, backend: str) -> None:
    if backend == "OrtCpuEp":
        pytest.importorskip("nxrt_ep_cpu")
    kept = keep(tmp_path, backend)
    answers = dict(np.load(kept.with_suffix(".npz")))
    with armpy.load(kept.with_suffix(".tflite"), backends=[backend, "CpuRef"]) as model:
        result = model(answers["input_0"])
    assert np.abs(result - answers["output_0"]).max() > 0.01


@pytest.mark.usefixtures("fault")
def test_a_planted_fault_is_in_the_engines_own_model(tmp_path: Path) -> None:
    assert difference_in_engine(keep(tmp_path)) > 0.01


def test_the_engines_own_model_gives_the_kept_answer(tmp_path: Path) -> None:
    assert difference_in_engine(keep(tmp_path)) < 1e-6


CRASHING = """
import os, sys
import armpy
from armpy_onnxruntime.programs import OnnxPrograms

OnnxPrograms.compile = lambda *arguments: os.abort()
runtime = armpy.Runtime(armpy.RuntimeOptions(backends=["OrtCpu"]))
armpy.load(sys.argv[1], runtime=runtime)
"""


@pytest.mark.slow
def test_the_model_is_kept_that_ends_the_process(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    kept = keep(tmp_path)
    folder = tmp_path / "crashed"
    variables = {**os.environ, "ARMPY_DUMP_GRAPHS": str(folder), "ARMPY_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", CRASHING, str(kept.with_suffix(".tflite"))]
    done = subprocess.run(command, env=variables, capture_output=True, check=False)
    assert done.returncode == -signal.SIGABRT, done.stderr
    (asked,) = folder.glob("*-asked_OrtCpu.onnx")
    nodes = [node.op_type for node in onnx.load(asked).graph.node]
    assert nodes == ["Gemm", "Sigmoid", "Softmax", "Identity"]
