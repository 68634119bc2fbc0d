"""armpy's conformance kit on the backend, and how it divides subgraphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy import DataType, Model, Network, TensorInfo, load
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Value
from armpy.ops import Activation, ActivationFunction, FullyConnected
from armpy_conformance import run_conformance

BACKEND_ID = "ExampleCompiler"
RELU = Activation(ActivationFunction.RELU)


def dense(net: Network, x: Value, units: int, depth: int, name: str) -> Value:
    weights = np.linspace(-1, 1, units * depth, dtype=np.float32).reshape(units, depth)
    return net.add(FullyConnected(), x, net.constant(weights), name=name)


def placed(model: Model) -> dict[str, tuple[str, ...]]:
    """By name of each prepared layer, its source and where it runs."""
    assert model.placement is not None
    return {layer.layer: (layer.backend, *layer.origins) for layer in model.placement.layers}


def test_a_weighted_layer_and_its_activation_become_one_program() -> None:
    net = Network("pair")
    x = net.input("x", TensorInfo((1, 2), DataType.FLOAT32))
    net.output("y", net.add(RELU, dense(net, x, 2, 2, "dense"), name="relu"))
    model = Model(net)
    assert placed(model) == {"dense+relu": (BACKEND_ID, "dense", "relu")}
    # The weights are ((-1, -1/3), (1/3, 1)).
    np.testing.assert_allclose(model(np.array([[3, 3]], np.float32)), [[0, 4]], rtol=1e-6)


def test_a_result_that_others_read_is_not_fused_away() -> None:
    net = Network("read twice")
    x = net.input("x", TensorInfo((1, 2), DataType.FLOAT32))
    middle = dense(net, x, 2, 2, "dense")
    net.output("middle", middle)
    net.output("y", net.add(RELU, middle, name="relu"))
    assert set(placed(Model(net))) == {"dense", "relu"}


def test_a_program_that_is_too_large_goes_to_the_next_backend() -> None:
    net = Network("large")
    x = net.input("x", TensorInfo((1, 1024), DataType.FLOAT32))
    net.output("y", dense(net, dense(net, x, 2048, 1024, "large"), 2, 2048, "small"))
    runtime = Runtime(RuntimeOptions(backends=[BACKEND_ID, "CpuRef"]))
    placement = placed(Model(net, runtime))
    assert placement["large"][0] == "CpuRef"
    assert placement["small"][0] == BACKEND_ID


def test_the_backend_keeps_to_the_contract_and_agrees_with_the_reference() -> None:
    with np.errstate(all="ignore"):
        result = run_conformance(BACKEND_ID)
    assert result.is_passed, (result.shortcomings, result.problems)


def test_a_program_of_another_version_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Network("one")
    x = net.input("x", TensorInfo((1, 2), DataType.FLOAT32))
    net.output("y", dense(net, x, 2, 2, "dense"))
    saved = Model(net)
    saved.save(tmp_path / "one.armpy")
    monkeypatch.setattr("armpy_example_compiler.files._FORMAT", 2)
    loaded = load(tmp_path / "one.armpy")
    row = np.array([[3, -3]], np.float32)
    np.testing.assert_array_equal(loaded(row), saved(row))
    placement = loaded.placement
    assert placement is not None
    assert placement.cache_uses  # the file's, and the core's entry of the same layers
    for use in placement.cache_uses:
        assert not use.is_hit
        assert "needs rebuild: another version of the compiler has made it" in use.reason
