"""Networks built in PyTorch and exported by both of its exporters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from armpy_numba_acc import NumbaBackend
from armpy_reference import ReferenceBackend

import armpy
from armpy import OptimizerOptions
from armpy.compiler.optimize import simplified
from armpy.ops import Transpose
from armpy.ops.operation import Array

torch = pytest.importorskip("torch", reason="PyTorch is not installed (armpy[torch])")
pytest.importorskip("armpy_onnx")
pytest.importorskip("onnx", reason="the onnx package is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

from armpy_testing.models.networks import placement_of  # noqa: E402
from armpy_testing.models.onnx_quantizing import quantized_file  # noqa: E402
from armpy_testing.models.torch_models import MODELS, built  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of exporters, about themselves
EXPORTERS = ("torchscript", "dynamo")
BACKENDS = (("CpuRef",), ("NumbaAcc", "CpuRef"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("torch")


def exported(folder: Path, name: str, exporter: str) -> tuple[Path, Array, Array]:
    """The file of a network, an input, and what PyTorch gives for it."""
    model, values = built(name)
    path = folder / f"{name}_{exporter}.onnx"
    if not path.exists():
        if exporter == "dynamo":
            pytest.importorskip("onnxscript", reason="the exporter needs onnxscript")
            torch.onnx.export(model, (values,), path, dynamo=True, external_data=False)
        else:
            torch.onnx.export(model, (values,), path, dynamo=False, opset_version=17)
    with torch.no_grad():
        return path, values.numpy(), model(values).numpy()


def worst(got: Array, expected: Array) -> float:
    """The largest difference, of the largest element."""
    assert got.shape == expected.shape
    return float(np.abs(got.astype(np.float64) - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("backends", BACKENDS, ids=lambda names: names[0])
@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("name", MODELS)
def test_an_exported_network_agrees_with_pytorch(
    folder: Path, name: str, exporter: str, backends: tuple[str, ...]
) -> None:
    path, values, expected = exported(folder, name, exporter)
    model = armpy.load(path, backends=list(backends))
    assert worst(np.asarray(model(values)), expected) < 1e-4


@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet", "mobilenet_v3", "convnext"])
def test_only_the_image_is_transposed(folder: Path, name: str) -> None:
    path, _, _ = exported(folder, name, "dynamo")
    graph = armpy.load(path, backends=["CpuRef"]).graph
    simple = simplified(graph, (NumbaBackend(), ReferenceBackend()), OptimizerOptions())
    turned = [layer["input"] for layer in simple.layers if isinstance(layer.operation, Transpose)]
    assert turned == list(graph.inputs)


@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet", "mobilenet_v3", "shufflenet", "unet"])
def test_an_image_network_runs_on_the_accelerator_alone(folder: Path, name: str) -> None:
    path, _, _ = exported(folder, name, "torchscript")
    model = armpy.load(path, backends=["NumbaAcc", "CpuRef"])
    assert {str(layer.backend) for layer in placement_of(model).layers} == {"NumbaAcc"}


@pytest.mark.parametrize("backends", BACKENDS, ids=lambda names: names[0])
@pytest.mark.parametrize("kind", ["qdq", "dynamic"])
@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet", "mobilenet_v3", "shufflenet", "vit"])
def test_a_quantised_network_agrees_with_onnx_runtime(
    folder: Path, name: str, kind: str, backends: tuple[str, ...]
) -> None:
    path, values, _ = exported(folder, name, "torchscript")
    quantized = quantized_file(path, values, kind=kind)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(quantized), options)
    (expected,) = session.run(None, {session.get_inputs()[0].name: values})
    model = armpy.load(quantized, backends=list(backends))
    # An element that lies between two steps may be rounded to either.
    assert worst(np.asarray(model(values)), expected) < 0.025
