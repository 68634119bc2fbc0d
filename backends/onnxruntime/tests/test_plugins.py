# SPDX-License-Identifier: Apache-2.0
"""Plugins that are installed: found, in one part, and as the conformance kit wants them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy import DataType, Model, Network, TensorInfo
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    ElementwiseBinary,
    FullyConnected,
    Softmax,
)
from armpy.plugins import BackendRegistry
from armpy_conformance import run_conformance
from armpy_testing.effort import part_of_kit

pytest.importorskip("onnxruntime")
pytest.importorskip("armpy_onnxruntime")

PLUGINS = {"OrtCpuEp": ("nxrt_ep_cpu", ""), "OrtGgml": ("onnxruntime_ggml", "weights=f32")}
"""Module of each plugin, and the provider's options with which weights stay as they are."""


@pytest.fixture(params=PLUGINS)
def plugin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of the backend of a plugin that is installed."""
    pytest.importorskip(PLUGINS[request.param][0])
    monkeypatch.setenv("ORT_GGML_LOG", "error")
    return str(request.param)


def options_of(plugin: str) -> dict[str, dict[str, object]]:
    return {plugin: {"provider_options": PLUGINS[plugin][1]}}


LARGE = 70_000
"""Floats of an input that onnxruntime-ggml keeps from run to run unless it must not."""


def classifier() -> Graph:
    random = np.random.default_rng(1)
    net = Network("classifier")
    x = net.input("x", TensorInfo((4, 16), DataType.FLOAT32))
    for size in (32, 8):
        weights = net.constant(random.normal(0, 0.5, (size, x.info.known_shape[1])).astype("f4"))
        x = net.add(FullyConnected(), x, weights)
        x = net.add(Activation(ActivationFunction.RELU), x)
    net.output("y", net.add(Softmax(), net.add(ElementwiseBinary(), x, x)))
    return net.build()


@pytest.mark.slow
def test_a_network_is_one_part_and_agrees_with_the_reference(plugin: str) -> None:
    x = np.random.default_rng(2).normal(0, 1, (4, 16)).astype(np.float32)
    settings = RuntimeOptions(
        backends=[plugin], on_fallback="error", backend_options=options_of(plugin)
    )
    with Model(classifier(), Runtime(settings)) as model:
        result = model(x)
        placement = model.placement
    with Model(classifier(), Runtime(RuntimeOptions(backends=["CpuRef"]))) as reference:
        np.testing.assert_allclose(result, reference(x), 1e-5)
    assert placement is not None
    assert [layer.backend for layer in placement.layers] == [plugin]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ADD", "MAXIMUM", "MINIMUM", "POWER"])
def test_each_element_of_a_large_input_counts_in_each_run(plugin: str, name: str) -> None:
    net = Network("large")
    a, b = (net.input(name, TensorInfo((LARGE,), DataType.FLOAT32)) for name in "ab")
    net.output("y", net.add(ElementwiseBinary(BinaryOperation[name]), a, b))
    settings = RuntimeOptions(
        backends=[plugin],
        on_fallback="error",
        backend_options=options_of(plugin),
        isolation="process",  # so that a crash ends another process than the test's
    )
    x, three = np.zeros(LARGE, np.float32), np.full(LARGE, 3, np.float32)
    with Model(net.build(), Runtime(settings)) as model:
        first = model(x, three)
        x[101] = 4.0
        second = model(x, three)
    assert np.flatnonzero(first != second).tolist() == [101]


def test_an_option_that_makes_results_depend_on_earlier_inputs_is_refused() -> None:
    from armpy_onnxruntime.plugin_backend import PluginPrograms
    from armpy_onnxruntime.plugins import PluginDevice

    from armpy.errors import InvalidArgumentError
    from armpy.types import DeviceType

    device = PluginDevice("OrtGgml", "ggml", DeviceType.OTHER, "", "0.2.0", "CPU", "", None)
    engine = PluginPrograms(device)
    assert engine.describe({})["provider_options"] == "sticky=0"
    own = {"provider_options": "weights=f32,sticky=0"}
    assert engine.describe(own)["provider_options"] == "weights=f32,sticky=0"
    with pytest.raises(InvalidArgumentError, match=r"OrtGgml\.provider_options: with sticky=1 res"):
        engine.describe({"provider_options": "sticky=1"})


@pytest.mark.slow
def test_weights_that_a_provider_rounds_are_refused_unless_float32_is_relaxed() -> None:
    pytest.importorskip("onnxruntime_ggml")
    from armpy.backend import PreparationRequest

    backend = BackendRegistry.discover().get("OrtGgml")
    info = TensorInfo((1, 8), DataType.FLOAT32)
    weights = TensorInfo((8, 8), DataType.FLOAT32, is_constant=True)

    def answer(**request: object) -> str:
        support = backend.get_layer_support(PreparationRequest(**request))  # type: ignore[arg-type]
        return support.is_layer_supported(FullyConnected(), [info, weights], [info]).text

    assert "rounds weights of float32 to 16 bits" in answer()
    assert answer(relaxed=True) == ""
    assert answer(model_options={"num_threads": 0, "provider_options": "weights=f32"}) == ""


@pytest.mark.slow
def test_a_plugin_keeps_to_the_contract_and_agrees_with_the_reference(plugin: str) -> None:
    cases = part_of_kit("contract/graphs", "Concat/", "Softmax/", "FullyConnected/by-hand")
    with np.errstate(all="ignore"):
        result = run_conformance(
            plugin,
            filter=cases,
            runtime_options=RuntimeOptions(backend_options=options_of(plugin)),
        )
    assert result.is_passed, (result.shortcomings, result.problems)


@pytest.mark.parametrize(
    ("file", "package", "name"),
    [
        ("libonnxruntime_ggml.so", 'EP_NAME = "ggml"\nraise RuntimeError', "ggml"),
        ("libonnx_runtime_ep_cpu_plugin.so", 'REGISTRATION_NAME = "nxrt_ep_cpu"', "nxrt_ep_cpu"),
        ("onnxruntime_providers_webgpu.dll", "def get_ep_name(): ...", "webgpu"),
        ("libplugin.so", "not Python", "plugin"),
    ],
)
def test_a_library_is_registered_under_its_packages_name(
    tmp_path: Path, file: str, package: str, name: str
) -> None:
    from armpy_onnxruntime.plugins import registration_name

    (tmp_path / "package" / "lib").mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text(package)
    assert registration_name(str(tmp_path / "package" / "lib" / file)) == name


def test_ids_are_made_of_the_words_of_providers_names() -> None:
    from armpy_onnxruntime.plugins import backend_id_of

    names = {"WebGpuExecutionProvider": "OrtWebGpu", "cpu_ep": "OrtCpuEp", "ggml": "OrtGgml"}
    names |= {"QNNExecutionProvider": "OrtQnn", "OpenVINOExecutionProvider": "OrtOpenVino"}
    assert {name: backend_id_of(name) for name in names} == names


def test_an_option_of_a_provider_without_a_value_is_an_error() -> None:
    from armpy_onnxruntime.plugin_backend import read_provider_options

    from armpy.errors import InvalidArgumentError

    assert read_provider_options("a=1, b = x=y", "OrtToy") == {"a": "1", "b": "x=y"}
    with pytest.raises(InvalidArgumentError, match=r"NAME=VALUE; got 'weights'"):
        read_provider_options("weights", "OrtToy")
