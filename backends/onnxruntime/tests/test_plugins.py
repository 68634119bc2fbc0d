"""Plugins that are installed: found, in one part, and as the conformance kit wants them."""

from __future__ import annotations

from collections.abc import Callable
from ctypes.util import find_library
from pathlib import Path

import numpy as np
import pytest

from armpy import DataType, Model, Network, TensorInfo
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph, Value
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


PRINTED = "contract/process/nothing-is-printed-at-any-time"
KNOWN = {"OrtGgml": f"{PRINTED}  # ggml says on standard error that there is no Vulkan\n"}
"""Known failures of plugins on a machine without Vulkan."""


def options_of(plugin: str) -> dict[str, dict[str, object]]:
    return {plugin: {"provider_options": PLUGINS[plugin][1]}}


ADD, MUL = ElementwiseBinary(BinaryOperation.ADD), ElementwiseBinary(BinaryOperation.MUL)
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


def branches(net: Network, a: Value, b: Value) -> None:
    """Three results, of which two are made of the first."""
    trunk = net.add(ADD, a, b)
    net.output("trunk", trunk)
    net.output("left", net.add(MUL, trunk, b))
    net.output("right", net.add(ADD, net.add(ADD, trunk, b), b))


def interrupted(net: Network, a: Value, b: Value) -> None:
    """Three layers, one that ggml does not have, and three layers of another form."""
    x = net.add(ADD, net.add(ADD, net.add(ADD, a, b), b), b)
    x = net.add(ElementwiseBinary(BinaryOperation.MAXIMUM), x, a)
    net.output("y", net.add(ADD, net.add(ADD, x, b), net.add(MUL, x, b)))


@pytest.mark.slow
@pytest.mark.parametrize("build", [branches, interrupted])
def test_each_run_of_a_part_with_branches_is_right(
    plugin: str, build: Callable[[Network, Value, Value], None]
) -> None:
    net = Network("branches")
    a, b = (net.input(name, TensorInfo((2,), DataType.FLOAT32)) for name in "ab")
    build(net, a, b)
    graph = net.build()
    settings = RuntimeOptions(
        backends=[plugin], on_fallback="error", backend_options=options_of(plugin)
    )
    random = np.random.default_rng(3)
    with (
        Model(graph, Runtime(settings)) as model,
        Model(graph, Runtime(RuntimeOptions(backends=["CpuRef"]))) as reference,
    ):
        for _ in range(60):
            feeds = {name: random.integers(1, 9, 2).astype(np.float32) for name in "ab"}
            expected = reference.run(feeds)
            for name, result in model.run(feeds).items():
                np.testing.assert_array_equal(result, expected[name])


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
def test_a_plugin_keeps_to_the_contract_and_agrees_with_the_reference(
    plugin: str, tmp_path: Path
) -> None:
    cases = part_of_kit("contract/graphs", "Concat/", "Softmax/", "FullyConnected/by-hand", PRINTED)
    known = tmp_path / "known_failures.txt"
    has_vulkan = find_library("vulkan") is not None
    known.write_text("" if has_vulkan else KNOWN.get(plugin, ""))
    with np.errstate(all="ignore"):
        result = run_conformance(
            plugin,
            filter=cases,
            known_failures=known,
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
