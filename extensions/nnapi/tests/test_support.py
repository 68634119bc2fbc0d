"""Support queries about models that leave dimensions open, and chosen devices that run them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from armpy.backend import ReasonCode, Support
from armpy.execution import RuntimeOptions
from armpy.ops import ElementwiseBinary
from armpy.ops.operation import Array
from armpy_conformance import Outcome
from armpy_nnapi import (
    Compilation,
    Device,
    DeviceManager,
    Model,
    ModelBuilder,
    OperandCode,
    OperandType,
    OperationCode,
)
from armpy_nnapi.conformance.vectors.example import read_file
from armpy_nnapi.conformance.vectors.judge import REFUSED, VectorJudge
from armpy_nnapi.conformance.vectors.runner import variations_of
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.backends.scripted_backend import Call, ScriptedBackend
from armpy_testing.shared import shared_file

from .nnapi_models import BOOL_1, counting_loop, devices_of, doubled, floats

C = OperandCode
ROW = np.array([1, 2, 3, 4], np.float32)


@pytest.fixture(scope="module")
def accelerator() -> Iterator[Device]:
    """The accelerator NumbaAcc."""
    with DeviceManager(RuntimeOptions(backends=["NumbaAcc", "CpuRef"])) as manager:
        yield manager.get_device_of_backend("NumbaAcc")


def run_on(device: Device, model: Model, *inputs: Array) -> list[Array]:
    """Run a model on one chosen device, which must have run all of it."""
    with Compilation.create_for_devices(model, [device]) as compilation:
        compilation.finish()
        outputs = compilation(*inputs)
        placement = compilation.network(()).placement
        assert placement is not None
        assert placement.layers_by_backend[device.backend_id] > 0
        others = {"Host", "host", device.backend_id}
        assert {layer.backend for layer in placement.layers} <= others
        return outputs


def relu_of_sum(shape: tuple[int, ...]) -> Model:
    """ADD of a constant row, then RELU, whose dimensions the builder leaves open."""
    builder = ModelBuilder()
    value = builder.input(np.float32, shape)
    return builder.finish(builder.relu(builder.add(value, ROW)))


@pytest.mark.parametrize("shape", [(2, 4), (0, 4), (0, 0)])
def test_a_chosen_accelerator_runs_what_the_builder_leaves_open(
    accelerator: Device, shape: tuple[int, ...]
) -> None:
    model = relu_of_sum(shape)
    assert accelerator.get_supported_operations(model) == [True, True]
    (output,) = run_on(accelerator, model, np.array([[0, 0, 0, 0], [-9, -9, -9, -2]], np.float32))
    assert output.tolist() == [[1, 2, 3, 4], [0, 0, 0, 2]]


@pytest.mark.parametrize("channels", [3, 5, 6])
def test_open_dimensions_are_asked_about_as_the_model_s_others_need_them(
    accelerator: Device, channels: int
) -> None:
    builder = ModelBuilder()
    rows = builder.input(np.float32, (0, channels))
    weights = builder.input(np.float32, (0, channels))
    output = OperandType(C.TENSOR_FLOAT32, (0, 7))
    model = builder.finish(
        builder.fully_connected(rows, weights, np.zeros(7, np.float32), outputs=[output])
    )
    assert accelerator.get_supported_operations(model) == [True]
    shuffle = ModelBuilder()
    image = shuffle.input(np.float32, (0, 0))
    shuffled = shuffle.finish(shuffle.channel_shuffle(image, num_groups=channels, axis=1))
    assert accelerator.get_supported_operations(shuffled) == [True]


@pytest.mark.parametrize("dimensions", [(2,), (0,), ()])
def test_a_chosen_accelerator_runs_a_loop_with_open_dimensions(
    accelerator: Device, dimensions: tuple[int, ...]
) -> None:
    model = counting_loop(doubled, 3, OperandType(C.TENSOR_FLOAT32, dimensions), tail="relu")
    assert accelerator.get_supported_operations(model) == [True, True]
    (output,) = run_on(accelerator, model, floats(1, -2), np.array([0], np.int32))
    assert output.tolist() == [8, 0]


def if_of_two(manager: DeviceManager) -> Model:
    """IF of a model that adds and one that takes the floor."""
    tensor = OperandType(C.TENSOR_FLOAT32, (0,))
    models = []
    for operation in ("add", "floor"):
        builder = ModelBuilder(manager)
        x = builder.input(tensor)
        result = builder.add(x, x) if operation == "add" else builder.floor(x)
        models.append(builder.finish(result))
    outer = ModelBuilder(manager)
    condition, x = outer.input(BOOL_1), outer.input(tensor)
    return outer.finish(outer.if_(condition, models[0], models[1], [x], [tensor])[0])


def no_sums(call: Call) -> object:
    """Take all but sums and the like."""
    if isinstance(call.arguments["operation"], ElementwiseBinary):
        return Support.no(ReasonCode.OPERATION, "no sums")
    return call.right()


def test_an_if_that_two_devices_cover_together_is_asked_of_both() -> None:
    adder = FakeBackend("Adder", {ElementwiseBinary})
    rest = ScriptedBackend("Rest", {"support": no_sums})
    with devices_of(adder, rest) as manager:
        model = if_of_two(manager)
        first, second, _ = manager.devices
        ask = manager.get_supported_operations_for_devices
        assert [ask(model, [d]) for d in (first, second)] == [[False], [False]]
        assert ask(model, [first, second]) == [True]
        with Compilation.create_for_devices(model, [first, second]) as compilation:
            compilation.finish()
            for condition, expected in ((True, [3, 5]), (False, [1, 2])):
                assert compilation(np.array([condition]), floats(1.5, 2.5))[0].tolist() == expected


def test_an_operation_that_needs_elements_is_left_to_the_execution(accelerator: Device) -> None:
    builder = ModelBuilder()
    x, shape = builder.input(np.float32, (2, 3)), builder.input(np.int32, (2,))
    model = builder.finish(builder.reshape(x, shape))
    assert accelerator.get_supported_operations(model) == [False]
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    (output,) = run_on(accelerator, model, values, np.array([3, 2], np.int32))
    assert output.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_propagation_continues_after_control_flow_and_knows_operations_by_number() -> None:
    model = counting_loop(doubled, 3, OperandType(C.TENSOR_FLOAT32, (0,)), tail="relu")
    codes = [node.type for node in model.description.main.operations]
    assert codes == [OperationCode.WHILE, OperationCode.RELU]
    with devices_of(FakeBackend("Adder", {ElementwiseBinary})) as manager:
        outer = manager.get_supported_operations_for_devices(model, manager.devices[:1])
    assert outer == [False, False]  # LESS is no ElementwiseBinary, RELU neither


@pytest.mark.parametrize(
    ("operation", "backend", "not_passed"),
    [
        ("if", "CpuRef", {REFUSED: 12}),
        ("if", "NumbaAcc", {REFUSED: 12}),
        ("while", "CpuRef", {}),
        # Of unknown dimensions: whether it takes them is known when a compilation runs.
        ("while", "NumbaAcc", {"NumbaAcc does not take WHILE": 440}),
    ],
)
def test_every_published_example_of_control_flow_passes(
    operation: str, backend: str, not_passed: dict[str, int]
) -> None:
    """What a device says it supports runs on it, with all that graphs of graphs hold."""
    judge = VectorJudge(backend)
    results = [
        judge(variation)
        for file in shared_file("nnapi_cts").rglob(f"{operation}_*.json.gz")
        for example in read_file(file)
        for variation in variations_of(example)
    ]
    assert len(results) > 100
    assert Counter(r.text for r in results if r.outcome is not Outcome.PASSED) == not_passed
