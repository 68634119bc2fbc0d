"""armpy's conformance kit on the backend, and tests of its own parts."""

from __future__ import annotations

import numpy as np

from armpy import DataType, Model, Network, TensorInfo
from armpy.execution import Runtime, RuntimeOptions
from armpy.ops import Activation, ActivationFunction
from armpy_conformance import run_conformance

BACKEND_ID = "ExampleWorkloads"


def load(function: ActivationFunction, options: dict[str, int]) -> Model:
    net = Network("one layer")
    x = net.input("x", TensorInfo((4,), DataType.FLOAT32))
    net.output("y", net.add(Activation(function), x))
    return Model(net, Runtime(RuntimeOptions(backend_options={BACKEND_ID: options})))


def refusals(model: Model) -> set[str]:
    assert model.placement is not None
    return {refusal.text for refusal in model.placement.refusals if refusal.backend == BACKEND_ID}


def test_a_layer_with_a_kernel_runs_on_the_backend() -> None:
    model = load(ActivationFunction.RELU, {})
    assert model.placement is not None
    assert model.placement.layers_by_backend == {BACKEND_ID: 1}
    np.testing.assert_array_equal(model(np.array([-1, 0, 2, 3], np.float32)), [0, 0, 2, 3])


def test_a_layer_without_a_kernel_is_refused_with_what_there_is() -> None:
    model = load(ActivationFunction.SIGMOID, {})
    assert refusals(model) == {"SIGMOID is not supported, only RELU, BOUNDED_RELU, LEAKY_RELU"}


def test_a_tensor_above_the_option_s_limit_is_refused() -> None:
    model = load(ActivationFunction.RELU, {"max_elements": 3})
    assert refusals(model) == {"FLOAT32 (4,) has more than 3 elements"}


def test_the_backend_keeps_to_the_contract_and_agrees_with_the_reference() -> None:
    with np.errstate(all="ignore"):
        result = run_conformance(BACKEND_ID)
    assert result.is_passed, (result.shortcomings, result.problems)
