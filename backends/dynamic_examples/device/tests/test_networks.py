"""Networks through armpy: copies, working memory, a full device, imports, stopping, counters."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from armpy_example_device import Device, ExampleDeviceBackend
from armpy_example_device.queue import Command, Completion

from armpy import DataType, Model, Network, TensorInfo
from armpy.errors import (
    ExecutionTimeoutError,
    MemoryLimitError,
)
from armpy.execution import Runtime, RuntimeOptions
from armpy.ops import (
    Activation,
    ActivationFunction,
    ElementwiseUnary,
    UnaryOperation,
)
from armpy.plugins import BackendRegistry

DEVICE = "ExampleDevice"
OTHER = "NumbaAcc"
MIB = 1 << 20
X = np.array([-1, 2, -3, 4], np.float32)
RELU = Activation(ActivationFunction.RELU)
NEG = ElementwiseUnary(UnaryOperation.NEG)


def runtime_on(device: Device, **options: object) -> Runtime:
    """A runtime that prefers a device which the test holds."""
    installed = BackendRegistry.discover()
    registry = BackendRegistry()
    registry.register(DEVICE, lambda: ExampleDeviceBackend(device))
    for name in (OTHER, "CpuRef"):
        registry.register(name, lambda name=name: installed.get(name))  # type: ignore[misc]
    chosen = RuntimeOptions(backends=[DEVICE, OTHER, "CpuRef"], registry=registry)
    return Runtime(replace(chosen, **options))  # type: ignore[arg-type]  # checked at run time


@contextmanager
def held(device: Device) -> Iterator[threading.Event]:
    """Let a device run nothing that is submitted from now on until the event is set."""
    may_go_on = threading.Event()

    def wait() -> Iterator[None]:
        may_go_on.wait(60)
        yield

    device.queue.submit(Command("wait", wait, np.zeros(1, np.float32)))
    try:
        yield may_go_on
    finally:
        may_go_on.set()


def chain(*operations: Activation | ElementwiseUnary, size: int = 4) -> Network:
    """Layers one after the other on float32 vectors."""
    net = Network("chain")
    value = net.input("x", TensorInfo((size,), DataType.FLOAT32))
    for operation in operations:
        value = net.add(operation, value)
    net.output("y", value)
    return net


@contextmanager
def counted(device: Device) -> Iterator[list[int]]:
    """Uploads and downloads of a block, when it has ended."""
    transfers: list[int] = []
    before = replace(device.counters)
    yield transfers
    after = device.counters
    transfers += [after.uploads - before.uploads, after.downloads - before.downloads]


@pytest.fixture
def device() -> Device:
    return Device(16 * MIB)


def test_layers_that_alternate_make_the_copies_of_the_report_and_no_more(device: Device) -> None:
    model = Model(chain(*[RELU, NEG] * 4), runtime_on(device))
    assert model.placement is not None
    assert model.placement.layers_by_backend == {DEVICE: 4, OTHER: 4}
    assert model.placement.num_copies == 8  # to the device and back, for each of its layers
    for _ in range(3):
        with counted(device) as transfers:
            assert model(X).tolist() == [0, 0, 0, 0]
        assert transfers == [4, 4]


def test_who_can_map_the_device_s_memory_reads_it_where_it_lies() -> None:
    device = Device(MIB, is_mappable=True)
    model = Model(chain(*[RELU, NEG] * 4), runtime_on(device))
    assert model.placement is not None
    assert model.placement.num_copies == 4  # to the device alone
    for _ in range(3):
        with counted(device) as transfers:
            assert model(X).tolist() == [0, 0, 0, 0]
        assert transfers == [4, 0]


def test_a_device_alone_gets_the_inputs_and_gives_the_outputs(device: Device) -> None:
    model = Model(chain(RELU, RELU, RELU), runtime_on(device))
    assert model.placement is not None
    assert model.placement.num_copies == 2
    with counted(device) as transfers:
        assert model(X).tolist() == [0, 2, 0, 4]
    assert transfers == [1, 1]


def test_twenty_layers_of_a_megabyte_need_two_on_the_device_and_none_on_the_host() -> None:
    device = Device(2 * MIB)
    model = Model(chain(*[RELU] * 20, size=MIB // 4), runtime_on(device))
    assert model.placement is not None
    assert model.placement.layers_by_backend == {DEVICE: 20}
    assert model.placement.arena_bytes == {DEVICE: 2 * MIB}
    assert device.allocated_bytes == 0  # the first execution takes it
    x = np.linspace(-1, 1, MIB // 4, dtype=np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(model(x), np.maximum(x, 0))
    assert device.counters.most_bytes_allocated == 2 * MIB


def test_a_device_that_lies_is_noticed_by_its_answer(device: Device) -> None:
    model = Model(chain(RELU), runtime_on(device))
    device.faults.add("wrong:1")
    assert model(X).tolist() != [0, 2, 0, 4]
    assert model(X).tolist() == [0, 2, 0, 4]


def test_an_execution_that_hangs_ends_at_its_deadline(device: Device) -> None:
    model = Model(chain(RELU), runtime_on(device))
    device.faults.add("hang:1")
    with pytest.raises(ExecutionTimeoutError):
        model.run({"x": X}, deadline_s=0.05)
    assert model(X).tolist() == [0, 2, 0, 4]


def test_layers_that_follow_each_other_are_under_way_at_once(device: Device) -> None:
    model = Model(chain(*[RELU] * 5), runtime_on(device))
    submit = device.queue.submit
    with held(device) as may_go_on:

        def watched(command: Command) -> Completion:
            completion = submit(command)
            if len(device.queue._waiting) == 5:
                may_go_on.set()
            return completion

        device.queue.submit = watched  # type: ignore[method-assign]
        assert model(X).tolist() == [0, 2, 0, 4]
        assert may_go_on.is_set()  # else the device ran the first layer after its time-out


def test_a_runtime_s_options_make_its_device() -> None:
    registry = BackendRegistry()
    registry.register(DEVICE, ExampleDeviceBackend)
    small, large = (
        Runtime(
            RuntimeOptions(
                backends=[DEVICE],
                registry=registry,
                backend_options={DEVICE: {"memory_bytes": size}},
            )
        )
        for size in (1 << 16, 4 * MIB)
    )
    network = chain(*[RELU] * 4, size=MIB // 4)
    with pytest.raises(MemoryLimitError, match="got 65536 bytes"):
        Model(network, small)(np.zeros(MIB // 4, np.float32))
    assert Model(network, large)(np.zeros(MIB // 4, np.float32)).shape == (MIB // 4,)


def test_the_profile_of_a_network_has_the_device_s_counters(device: Device) -> None:
    runtime = runtime_on(device, profiling=True)
    model = Model(chain(RELU, NEG, RELU), runtime)
    idle = Model(chain(RELU), runtime)
    for _ in range(3):
        model(X)
    values = [counters_of(runtime, m.network_id) for m in (model, idle)]
    assert values[0]["uploads"] == values[0]["downloads"] == 6
    assert values[0]["bytes uploaded"] == 6 * X.nbytes
    assert values[0]["commands"] == 6
    assert values[1]["commands"] == 0


def counters_of(runtime: Runtime, network_id: int) -> dict[str, float]:
    """The device's counters for a network."""
    profiler = runtime.get_profiler(network_id)
    assert profiler is not None
    return {c.name: c.value for c in profiler.counters if c.backend == DEVICE}
