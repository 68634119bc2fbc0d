"""armpy's conformance kit on the backend, and tests of its own parts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from armpy import DataType, Model, Network, TensorInfo, check, load
from armpy.errors import BackendUnavailableError, DeviceNotFoundError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph, SubgraphView, Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Concat,
    Convolution2d,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    FullyConnected,
    FusedActivation,
    Pad,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Reduce,
    ReduceOperation,
    Reshape,
    Softmax,
)
from armpy_conformance import run_conformance
from armpy_testing.effort import part_of_kit

BACKEND_ID = "OrtCpu"

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
pytest.importorskip("armpy_onnxruntime")


def weights(net: Network, *shape: int) -> Value:
    random = np.random.default_rng(sum(shape))
    return net.constant(random.normal(0, 0.5, shape).astype(np.float32))


def image_network() -> Graph:
    """What mobile networks are made of: residuals, gates, pooling, a classifier."""
    net = Network("image")
    image = net.input("image", TensorInfo((1, 9, 8, 3), DataType.FLOAT32))
    add, mul = (ElementwiseBinary(BinaryOperation[name]) for name in ("ADD", "MUL"))
    padded = net.add(Pad(((0, 0), (0, 1), (1, 0), (0, 0))), image)
    stem = Convolution2d(stride=(2, 2), padding=Padding.SAME, activation=FusedActivation.RELU6)
    x = net.add(stem, padded, weights(net, 8, 3, 3, 3), weights(net, 8))
    deep = DepthwiseConvolution2d(padding=Padding.SAME)
    branch = net.add(deep, x, weights(net, 1, 3, 3, 8), weights(net, 8))
    branch = net.add(Activation(ActivationFunction.HARD_SWISH), branch)
    gate = net.add(Reshape((1, 1, 1, 8)), net.add(Reduce(ReduceOperation.MEAN, (1, 2)), branch))
    gate = net.add(Convolution2d(), gate, weights(net, 8, 1, 1, 8))
    branch = net.add(mul, branch, net.add(Activation(ActivationFunction.SIGMOID), gate))
    x = net.add(add, x, net.add(mul, branch, weights(net, 8)))
    pool = Pooling2d(PoolingAlgorithm.AVERAGE, (3, 3), (1, 1), Padding.SAME)
    x = net.add(Concat(3), x, net.add(pool, x))
    x = net.add(Reduce(ReduceOperation.MEAN, (1, 2), keep_dims=True), x)
    x = net.add(FullyConnected(), x, weights(net, 5, 16), weights(net, 5))
    net.output("y", net.add(Softmax(), x))
    return net.build()


def test_images_are_transposed_at_the_edges_of_a_region_only() -> None:
    from armpy_onnxruntime.export import export_model

    graph = image_network()
    model = onnx.load_from_string(export_model(SubgraphView.of(graph, graph.layers)))
    kinds = [node.op_type for node in model.graph.node]
    # In front of the first convolution, around the Reshape of the gate, before the classifier.
    assert kinds.count("Transpose") == 3


def test_a_compiled_file_starts_its_session_without_the_onnx_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = image_network()
    image = np.random.default_rng(1).normal(0, 1, (1, 9, 8, 3)).astype(np.float32)
    with Model(graph, Runtime(RuntimeOptions(backends=[BACKEND_ID]))) as saved:
        expected = saved(image)
        saved.save(tmp_path / "image.armpy")
    monkeypatch.setitem(sys.modules, "onnx", None)
    loaded = load(tmp_path / "image.armpy")
    np.testing.assert_array_equal(loaded(image), expected)
    assert loaded.is_light


def test_an_unknown_option_is_an_error() -> None:
    options = RuntimeOptions(backend_options={BACKEND_ID: {"num_thread": 1}})
    with pytest.raises(ValueError, match="Did you mean 'num_threads'"):
        Runtime(options)


def test_without_the_engine_the_backend_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from armpy_onnxruntime import OrtCpu

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    backend = OrtCpu()
    options = {option.name: option.default for option in backend.options}
    with pytest.raises(BackendUnavailableError, match=r"Run: pip install onnxruntime$"):
        backend.create_backend_context(options)


@pytest.mark.parametrize(
    ("name", "text"), [("OrtCuda", "built without CUDA"), ("OrtCoreMl", "built without CoreML")]
)
def test_a_provider_that_is_not_there_is_named(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import armpy_onnxruntime
    from armpy_onnxruntime import engine

    monkeypatch.setattr(engine, "missing_nvidia", lambda: "")
    monkeypatch.setattr(engine, "_library", lambda _: object())
    backend = getattr(armpy_onnxruntime, name)()
    options = {option.name: option.default for option in backend.options}
    with pytest.raises(BackendUnavailableError, match=text) as caught:
        backend.create_backend_context(options)
    assert caught.value.where == name


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
@pytest.mark.parametrize("name", ["OrtCuda", "OrtTensorRt", "OrtCoreMl", "OrtDirectMl"])
def test_without_the_device_no_package_is_asked_for(
    package: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import armpy_onnxruntime
    from armpy_onnxruntime import engine

    monkeypatch.setattr(engine, "missing_nvidia", lambda: "NVIDIA's driver finds no GPU")
    monkeypatch.setattr(engine, "_library", lambda _: None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        DeviceNotFoundError, match=r"finds no GPU|this system has no .*(CoreML|d3d)"
    ):
        getattr(armpy_onnxruntime, name)().create_backend_context({"num_threads": 0})


def test_cuda_of_python_packages_is_loaded_before_the_provider_is_used(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import onnxruntime
    from armpy_onnxruntime import OrtCuda, engine

    calls: list[str] = []

    class NoSession:
        def __init__(self, *arguments: object, **options: object) -> None:
            calls.append("session")
            raise RuntimeError("libcudnn.so.9 is missing")

    def preload() -> None:
        calls.append("preload")
        print("Failed to load libcudnn.so.9")

    engine.preload_nvidia.cache_clear()
    monkeypatch.setattr(engine, "missing_nvidia", lambda: "")
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "preload_dlls", preload, raising=False)
    monkeypatch.setattr(onnxruntime, "InferenceSession", NoSession)
    with pytest.raises(BackendUnavailableError, match=r"libcudnn\.so\.9 is missing"):
        OrtCuda().create_backend_context({"num_threads": 0})
    engine.preload_nvidia.cache_clear()
    assert calls == ["preload", "session"]
    assert capfd.readouterr().out == ""


@pytest.mark.slow
def test_the_backend_keeps_to_the_contract_and_agrees_with_the_reference() -> None:
    cases = part_of_kit("contract/graphs", "Concat/", "pattern/residual", "pattern/separable")
    with np.errstate(all="ignore"):
        result = run_conformance(BACKEND_ID, filter=cases)
    assert result.is_passed, (result.shortcomings, result.problems)


@pytest.mark.slow
def test_the_engine_sends_nothing_and_leaves_no_files(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "from armpy_onnxruntime.backend import OrtCpu\n"
        "OrtCpu().create_backend_context({'num_threads': 1})\n"
        "OrtCpu()._refusal_of_relu()\n"
        "print('ORT_DISABLE_TELEMETRY' in os.environ)\n"
    )
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    variables.pop("ORT_DISABLE_TELEMETRY", None)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_another_module_in_place_of_the_engine_is_named() -> None:
    pytest.importorskip("armpy_compat")
    program = (
        "import armpy_compat\n"
        "armpy_compat.install_as_onnxruntime()\n"
        "from armpy_onnxruntime.engine import require\n"
        "require('onnxruntime', 'OrtCpu')\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "OrtCpu: armpy_compat stands in for the engine in this process" in done.stderr


def test_a_compiled_model_is_checked_as_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "image.armpy"
    with Model(image_network(), Runtime(RuntimeOptions([BACKEND_ID, "CpuRef"]))) as model:
        model.save(path)
    for device in (None, BACKEND_ID):
        assert check(path, device=device).fit == "fits"
    monkeypatch.setattr("onnxruntime.get_available_providers", list)
    answer = check(path)
    assert answer.fit == "fits slower"
    assert "this ONNX Runtime has no CPUExecutionProvider" in answer.reason
    with load(path) as loaded:
        assert not loaded.is_light
