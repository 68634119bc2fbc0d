"""Working memory: made by the first execution, shared, and given back when it is unused."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest
from armpy_numba_acc.backend import NumbaBackend

from armpy.backend import (
    DefaultAllocator,
    ICustomAllocator,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    Lifetime,
    NetworkResources,
)
from armpy.errors import BackendError, InvalidArgumentError, MemoryLimitError
from armpy.execution import NetworkProperties
from armpy.execution.memory import idle_release as idling
from armpy.execution.programs.program import StepProgram
from armpy.execution.scheduling.daemons import start_daemon
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import FullyConnected, Reshape
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_testing.backends.device_memory import MIB, Arena, DeviceBackend, DeviceFactory, Memory
from armpy_testing.backends.fake_backends import FakeBackend, Handles, Outputs, Step, runtime_of
from armpy_testing.models.networks import (
    ADD,
    RELU,
    chain,
    diamond,
    f32,
    floats,
    i32,
    ints,
    placement_of,
)
from armpy_testing.watchdogs import use_still_watchdog, use_watchdog

X = floats(-1, 0, 2, 5)
NEXT = NetworkProperties(on_failure="next")
MEBI = (MIB // 4,)
"""A shape that takes 1 MiB."""


@pytest.fixture(autouse=True)
def still_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is released but by a look of the test's."""
    use_still_watchdog(monkeypatch)


def test_networks_that_do_not_run_together_fit_a_device_that_has_room_for_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = DeviceBackend(memory=Memory(3 * MIB))
    runtime = runtime_of(backend)
    models = [Model(chain(4, MEBI), runtime) for _ in range(3)]
    assert backend.memory.used_bytes == 0
    x = np.arange(MEBI[0], dtype=np.float32)
    for model in (*models, *models):
        np.testing.assert_array_equal(model(x), x + 4)
        assert placement_of(model).layers_by_backend == {"Npu": 4}
    assert backend.memory.used_bytes == 2 * MIB
    assert not [r for r in caplog.records if r.levelname == "WARNING"]


def test_a_device_that_others_have_filled_is_a_typed_error_or_loses_its_layers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = DeviceBackend(memory=Memory(3 * MIB))
    runtime = runtime_of(backend)
    holding = Model(chain(4, MEBI), runtime).create_working_memory()
    x = np.arange(MEBI[0], dtype=np.float32)
    strict = Model(chain(4, MEBI), runtime)
    with pytest.raises(MemoryLimitError, match=r"^Npu / create_arena: the device is full"):
        strict(x)
    lenient = Model(chain(4, MEBI), runtime, properties=NEXT)
    assert placement_of(lenient).layers_by_backend == {"Npu": 4}
    np.testing.assert_array_equal(lenient(x), x + 4)
    assert placement_of(lenient).layers_by_backend == {"CpuRef": 4}
    assert [r.code for r in placement_of(lenient).refusals] == ["execution"] * 4
    assert "Npu has failed and loses its layers" in caplog.text
    holding.close()
    np.testing.assert_array_equal(strict(x), x + 4)


class Failing(DeviceBackend):
    """Cannot make a handle in its arena."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.raised = error
        this = self

        class Without(Arena):
            def create_tensor_handle(
                self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
            ) -> ITensorHandle:
                if len(self.tensors) == 2:
                    raise this.raised
                return super().create_tensor_handle(info, lifetime, offset_bytes)

        class Factory(DeviceFactory):
            def create_arena(self, size_bytes: int) -> ITensorArena | None:
                arena = Without(self.memory, size_bytes, self._kind)
                self.memory.arenas.append(arena)
                return arena

        self.factory = Factory(self.memory, self.kind)

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return self.factory


@pytest.mark.parametrize("kind", [ValueError, MemoryError, SystemExit])
def test_what_an_arena_raises_costs_the_backend_its_layers_and_the_arena_goes_back(
    kind: type[BaseException],
) -> None:
    backend = Failing(kind("no handle"))
    model = Model(diamond(), runtime_of(backend), properties=NEXT)
    np.testing.assert_array_equal(model(X), [1, 1, 9, 21])
    assert placement_of(model).layers_by_backend == {"CpuRef": 4}
    assert all("no handle" in r.text for r in placement_of(model).refusals)
    assert [arena.is_released for arena in backend.memory.arenas] == [True]


class Gated(DeviceBackend):
    """Executes only when it is let."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory=memory)
        self.gate = threading.Event()
        self.gate.set()
        self.inside = threading.Semaphore(0)

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        self.inside.release()
        assert self.gate.wait(10)
        super().execute(step, inputs, outputs)


def test_a_second_execution_at_a_time_that_finds_the_device_full_gets_a_typed_error() -> None:
    backend = Gated(Memory(3 * MIB))
    model = Model(chain(1, MEBI), runtime_of(backend))
    x = np.arange(MEBI[0], dtype=np.float32)
    backend.gate.clear()
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(model(x)))
    thread.start()
    assert backend.inside.acquire(timeout=10)
    with pytest.raises(MemoryLimitError, match=r"^Npu / create_arena: the device is full"):
        model(x)
    backend.gate.set()
    thread.join()
    np.testing.assert_array_equal(results[0], x + 1)
    np.testing.assert_array_equal(model(x), x + 1)


def test_python_without_memory_is_a_typed_error_of_the_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def allocate(self: object, size_bytes: int, alignment_bytes: int = 64) -> Array:
        raise MemoryError("none left")

    model = Model(chain(), runtime_of(FakeBackend("Poor")))
    with monkeypatch.context() as patch:
        patch.setattr(DefaultAllocator, "allocate", allocate)
        for _ in range(2):
            text = "^Poor's allocator / allocate: .*no memory for one more execution.*none left"
            with pytest.raises(MemoryLimitError, match=text):
                model(X)
    np.testing.assert_array_equal(model(X), X + 3)


# Held by the application


def test_idle_working_memory_is_given_back_on_request_and_made_anew_by_the_next_call() -> None:
    backend = DeviceBackend()
    runtime = runtime_of(backend)
    models = [Model(chain(4, MEBI), runtime) for _ in range(2)]
    for model in models:
        model.warm_up()
    held = models[0].create_working_memory()
    assert backend.memory.used_bytes == 6 * MIB
    models[0].free_working_memory()
    assert backend.memory.used_bytes == 4 * MIB
    runtime.free_working_memory()
    assert backend.memory.used_bytes == 2 * MIB
    x = np.arange(MEBI[0], dtype=np.float32)
    np.testing.assert_array_equal(models[1](x), x + 4)
    assert backend.memory.used_bytes == 4 * MIB
    np.testing.assert_array_equal(models[0].run({"x": x}, memory=held)["y"], x + 4)
    held.close()
    runtime.free_working_memory()
    assert backend.memory.used_bytes == 0


def test_everything_goes_back_with_the_model() -> None:
    backend = DeviceBackend()
    model = Model(chain(4, MEBI), runtime_of(backend))
    memory = model.create_working_memory()
    model.close()
    assert memory.is_closed
    with pytest.raises(InvalidArgumentError, match="the network has been unloaded"):
        memory.run({"x": np.zeros(MEBI, np.float32)})
    del model
    assert backend.memory.used_bytes == 0
    assert all(arena.is_released for arena in backend.memory.arenas)


def test_one_thread_at_a_time_has_it_and_it_goes_when_that_is_done() -> None:
    backend = Gated(Memory())
    model = Model(chain(1, MEBI), runtime_of(backend))
    memory = model.create_working_memory()
    x = np.arange(MEBI[0], dtype=np.float32)
    backend.gate.clear()
    results: list[dict[str, Array]] = []
    thread = threading.Thread(target=lambda: results.append(memory.run({"x": x})))
    thread.start()
    assert backend.inside.acquire(timeout=10)
    with pytest.raises(InvalidArgumentError, match="in use by another thread"):
        memory.run({"x": x})
    memory.close()
    assert backend.memory.used_bytes == 2 * MIB
    backend.gate.set()
    thread.join()
    np.testing.assert_array_equal(results[0]["y"], x + 1)
    assert backend.memory.used_bytes == 0


def test_what_is_for_other_shapes_or_networks_is_refused() -> None:
    model = Model(chain(2, (None,)), runtime_of())
    with pytest.raises(
        InvalidArgumentError, match=r"shapes of the inputs are not known.*x \(\?,\)"
    ):
        model.create_working_memory()
    memory = model.create_working_memory({"x": (4,)})
    np.testing.assert_array_equal(model.run({"x": X}, memory=memory)["y"], X + 2)
    with pytest.raises(InvalidArgumentError, match=r"other input shapes.*\(4,\); got \(2,\)"):
        model.run({"x": X[:2]}, memory=memory)
    other = Model(chain(2, (None,)), runtime_of())
    with pytest.raises(InvalidArgumentError, match="belongs to another network"):
        other.run({"x": X}, memory=memory)
    with pytest.raises(InvalidArgumentError, match=r"memory: .*Expected NetworkMemory; got 3"):
        model.run({"x": X}, memory=3)  # type: ignore[arg-type]


def test_an_execution_that_fails_costs_its_memory_which_is_made_anew() -> None:
    backend = Gated(Memory())
    model = Model(chain(1, MEBI), runtime_of(backend))
    x = np.arange(MEBI[0], dtype=np.float32)
    model.warm_up()
    memory = model.create_working_memory()
    right = backend.gate.wait
    runs: list[Callable[[], dict[str, Array]]] = [
        lambda: memory.run({"x": x}),
        lambda: model.run({"x": x}),
    ]
    for run in runs:
        backend.gate.wait = lambda timeout=None: False  # type: ignore[method-assign]
        with pytest.raises(BackendError, match="AssertionError") as caught:
            run()
        assert backend.memory.used_bytes == 2 * MIB
        backend.gate.wait = right  # type: ignore[method-assign]
        np.testing.assert_array_equal(run()["y"], x + 1)
        assert backend.memory.used_bytes == 4 * MIB
        assert caught.value is not None  # which keeps nothing


def test_variables_live_through_runs_in_memory_that_is_held() -> None:
    net = Network()
    state = net.variable("v", f32(2))
    total = net.add(ADD, net.input("x", f32(2)), state)
    net.assign(state, total)
    net.output("y", total)
    model = Model(net, runtime_of(DeviceBackend()))
    memory = model.create_working_memory()
    x = floats(1, 2)
    for factor in (1, 3):
        np.testing.assert_array_equal(model.run({"x": x}, memory=memory)["y"], factor * x)
        np.testing.assert_array_equal(model(x), (factor + 1) * x)


def test_a_network_of_shapes_that_depend_on_values_has_its_first_part_made() -> None:
    backend = DeviceBackend()
    model = Model(shapes_by_value(), runtime_of(backend))
    with model.create_working_memory() as memory:
        for rows in (2, 3):
            outputs = memory.run({"x": np.arange(6, dtype=np.float32), "shape": ints(rows - 1, -2)})
            assert outputs["y"].shape == (rows, 6 // rows)
            np.testing.assert_array_equal(outputs["y"].reshape(-1), np.arange(6))


def shapes_by_value() -> Graph:
    """``y = relu(reshape(x, shape + 1))``."""
    net = Network()
    x = net.input("x", f32(6))
    shape = net.add(ADD, net.input("shape", i32(2)), net.constant(ints(1, 1)))
    net.output("y", net.add(RELU, net.add(Reshape(), x, shape)))
    return net.build()


class Counting(DefaultAllocator):
    """Counts what it has given and not got back; has so much and no more."""

    def __init__(self, size_bytes: int = 1 << 40) -> None:
        self.size_bytes = size_bytes
        self.num_given = self.used_bytes = self.most_bytes = 0

    def allocate(self, size_bytes: int, alignment_bytes: int = 64) -> Array:
        if self.used_bytes + size_bytes > self.size_bytes:
            raise MemoryError("all is given")
        self.num_given += 1
        self.used_bytes += size_bytes
        self.most_bytes = max(self.most_bytes, self.used_bytes)
        return super().allocate(size_bytes, alignment_bytes)

    def free(self, memory: Array) -> None:
        self.num_given -= 1
        self.used_bytes -= memory.nbytes


# Shared between networks


class Sharing(FakeBackend):
    """Whose arenas the core takes from an application's allocator."""

    def __init__(self) -> None:
        super().__init__("Sharing")
        self.written: list[object] = []  # by its layers, kept so that none is another's successor

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        self.written += outputs
        super().execute(step, inputs, outputs)

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        return True


def models_from(allocator: Counting, *lengths: int) -> list[Model]:
    """Chains over vectors of these lengths, whose memory one allocator gives."""
    runtime = runtime_of(Sharing(), custom_allocators={"Sharing": allocator})
    return [Model(chain(3, (length,)), runtime) for length in lengths]


def length_of(model: Model) -> int:
    """Of the vectors that a chain takes."""
    (spec,) = model.inputs
    (length,) = spec.info.known_shape
    return length


def call(model: Model) -> None:
    """Check an answer."""
    x = np.arange(length_of(model), dtype=np.float32)
    np.testing.assert_array_equal(model(x), x + 3)


def test_threads_with_networks_of_their_own_do_not_write_to_each_others_memory() -> None:
    allocator = Counting()
    models = models_from(allocator, 300, 301, 302, 10)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        random = np.random.default_rng(number)
        try:
            for _ in range(150):
                model = models[random.integers(4)]
                x = random.integers(0, 99, length_of(model)).astype(np.float32)
                np.testing.assert_array_equal(model(x), x + 3)
                if random.integers(20) == 0:
                    model.free_working_memory()
                if random.integers(20) == 0:
                    idling.watchdog.look()
        except BaseException as error:  # noqa: BLE001 - raised in the test
            errors.append(error)

    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    models[0].runtime.free_working_memory()
    assert allocator.used_bytes == 0


def test_a_backends_programs_give_way_to_each_other_where_memory_is_short() -> None:
    """NumbaAcc's programs have arenas of their own."""
    single = Counting()
    (model,) = dense_models(single, 1)
    run_dense(model)
    allocator = Counting(single.most_bytes)
    models = dense_models(allocator, 3)
    for model in models * 2:
        run_dense(model)
    assert all(placement_of(m).layers_by_backend == {"NumbaAcc": 3} for m in models)


def test_an_allocator_without_memory_for_a_program_is_a_typed_error() -> None:
    (model,) = dense_models(Counting(0), 1)
    with pytest.raises(MemoryLimitError, match=r"allocator has no memory for this\. Got all is"):
        run_dense(model)
    (model,) = dense_models(Counting(0), 1, properties=NEXT)
    run_dense(model)
    assert placement_of(model).layers_by_backend == {"CpuRef": 3}


def dense_models(
    allocator: Counting, number: int, properties: NetworkProperties | None = None
) -> list[Model]:
    """Networks that NumbaAcc makes a program of each."""
    runtime = runtime_of(NumbaBackend(), custom_allocators={"NumbaAcc": allocator})
    models = []
    for _ in range(number):
        net = Network()
        value = net.input("x", f32(1, 64))
        for _ in range(3):
            eye = net.constant(np.eye(64, dtype=np.float32))
            value = net.add(FullyConnected(), value, eye, None)
        net.output("y", value)
        models.append(Model(net, runtime, properties=properties))
    return models


def run_dense(model: Model) -> None:
    """Check an answer."""
    x = np.arange(64, dtype=np.float32).reshape(1, 64)
    np.testing.assert_array_equal(model(x), x)


# Given back when it is unused


def test_the_watchdog_comes_again_after_it_could_not_look(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    use_watchdog(monkeypatch, release_after_s=0.02)
    allocator = Counting()
    (model,) = models_from(allocator, 1024)
    failed: list[str] = []
    start, look = start_daemon, StepProgram.release_if_idle

    def start_none(target: Callable[[], object], name: str) -> None:
        if len(failed) == 0:
            failed.append("thread")
            raise RuntimeError("can't start new thread")
        start(target, name)

    def have_no_memory(program: StepProgram) -> bool:
        if len(failed) == 1:
            failed.append("memory")
            raise MemoryError
        return look(program)

    monkeypatch.setattr(idling, "start_daemon", start_none)
    monkeypatch.setattr(StepProgram, "release_if_idle", have_no_memory)
    call(model)
    waiting = threading.Event()
    for _ in range(6000):
        if not allocator.used_bytes:
            break
        waiting.wait(0.01)
    assert failed == ["thread", "memory"]
    assert "idle memory could not be released" in caplog.text
    assert allocator.used_bytes == 0


def test_a_large_arena_goes_when_only_small_networks_use_it_still() -> None:
    allocator = Counting()
    large, small = models_from(allocator, 4096, 16)
    call(large)
    for _ in range(4):
        call(small)
        idling.watchdog.look()
    call(small)
    assert allocator.used_bytes <= 256
