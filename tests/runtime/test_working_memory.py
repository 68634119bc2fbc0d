"""Working memory is made when a network is loaded, by the backends' own factories."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import pytest
from armpy_numba_acc.backend import NumbaBackend

from armpy.backend import (
    DefaultAllocator,
    IMemoryManager,
    ITensorArena,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    Lifetime,
)
from armpy.errors import BackendError, InvalidArgumentError, MemoryLimitError
from armpy.graph import Graph
from armpy.network import Network
from armpy.ops import Activation, FullyConnected, Reshape
from armpy.ops.operation import Array
from armpy.optimizer import Placement
from armpy.runtime import Model
from armpy.tensor import TensorInfo
from tests.support.device_memory import MIB, Arena, DeviceBackend, DeviceFactory, Memory
from tests.support.fake_backends import FakeBackend, runtime_of
from tests.support.networks import ADD, RELU, chain, diamond, f32, floats, i32, ints

X = floats(-1, 0, 2, 5)
MEBI = (MIB // 4,)
"""A shape that takes 1 MiB."""


def placement_of(model: Model) -> Placement:
    assert model.placement is not None
    return model.placement


@pytest.fixture
def host_arenas(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the arenas that the core takes from the process's memory."""
    taken: list[int] = []
    right = DefaultAllocator.allocate

    def allocate(self: DefaultAllocator, size_bytes: int, alignment_bytes: int = 64) -> Array:
        taken.append(size_bytes)
        return right(self, size_bytes, alignment_bytes)

    monkeypatch.setattr(DefaultAllocator, "allocate", allocate)
    return taken


def test_a_chain_of_twenty_needs_two_buffers_on_the_device_and_none_besides(
    host_arenas: list[int],
) -> None:
    backend = DeviceBackend()
    model = Model(chain(20, MEBI), runtime_of(backend))
    assert backend.memory.most_bytes == 2 * MIB
    assert placement_of(model).arena_bytes == {"Npu": 2 * MIB}
    assert host_arenas == []
    x = np.arange(MEBI[0], dtype=np.float32)
    np.testing.assert_array_equal(model(x), x + 20)
    assert backend.memory.most_bytes == 2 * MIB
    assert host_arenas == []


def test_an_arena_is_told_when_each_tensor_lives_and_where_it_lies() -> None:
    backend = DeviceBackend()
    Model(diamond(), runtime_of(backend))
    (arena,) = backend.memory.arenas
    # Steps: copy of x, top, left, right, bottom, copy to the host.
    lifetimes = [lifetime for _, lifetime, _ in arena.tensors]
    assert lifetimes == [(0, 1), (1, 3), (2, 4), (3, 4), (4, 5)]
    assert all(offset % 64 == 0 for _, _, offset in arena.tensors)
    for (a, (a_first, a_last), a_at), (b, (b_first, b_last), b_at) in combinations(
        arena.tensors, 2
    ):
        if a_first <= b_last and b_first <= a_last:
            assert a_at + a.size_bytes <= b_at or b_at + b.size_bytes <= a_at


def test_a_factory_without_arenas_of_its_own_is_given_the_cores(host_arenas: list[int]) -> None:
    Model(chain(), runtime_of(FakeBackend()))
    assert host_arenas == [128]


def test_a_device_that_is_full_when_a_network_is_loaded_loses_its_layers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = DeviceBackend(memory=Memory(3 * MIB))
    runtime = runtime_of(backend)
    first = Model(chain(4, MEBI), runtime)
    second = Model(chain(4, MEBI), runtime)
    assert placement_of(first).layers_by_backend == {"Npu": 4}
    assert placement_of(second).layers_by_backend == {"CpuRef": 4}
    assert [r.code for r in placement_of(second).refusals] == ["preparation"] * 4
    assert all(
        "Npu / create_arena: the device is full. Got 2097152 of 3145728 bytes taken" in r.text
        for r in placement_of(second).refusals
    )
    (warning,) = [r.message for r in caplog.records if r.levelname == "WARNING"]
    assert "'add_0' and 3 more layers" in warning
    assert "the device is full" in warning
    x = np.arange(MEBI[0], dtype=np.float32)
    for model in (first, second, first):
        np.testing.assert_array_equal(model(x), x + 4)


def test_only_the_layers_of_the_full_device_move() -> None:
    roomy = DeviceBackend("Roomy", {Activation})
    full = DeviceBackend("Full", memory=Memory(0))
    model = Model(diamond(), runtime_of(roomy, full))
    assert placement_of(model).layers_by_backend == {"Roomy": 1, "CpuRef": 3}
    moved = [(r.backend, r.layer) for r in placement_of(model).refusals if r.code == "preparation"]
    assert moved == [("Full", "left"), ("Full", "right"), ("Full", "bottom")]
    # What was made for the attempt with both has gone back.
    assert [arena.is_released for arena in roomy.memory.arenas] == [True, False]
    np.testing.assert_array_equal(model(X), [1, 1, 9, 21])


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

    def register_tensor_handle_factories(self, registry: object) -> None:
        registry.register_factory(self.factory)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [ValueError, MemoryError, SystemExit])
def test_what_an_arena_raises_costs_the_backend_its_layers_and_the_arena_goes_back(
    kind: type[BaseException],
) -> None:
    backend = Failing(kind("no handle"))
    model = Model(diamond(), runtime_of(backend))
    assert placement_of(model).layers_by_backend == {"CpuRef": 4}
    assert all("no handle" in r.text for r in placement_of(model).refusals)
    assert [arena.is_released for arena in backend.memory.arenas] == [True]
    np.testing.assert_array_equal(model(X), [1, 1, 9, 21])


def test_the_last_backends_own_error_comes_out_of_the_load() -> None:
    backend = DeviceBackend(memory=Memory(0))
    runtime = runtime_of(backend, backends=["Npu"])
    with pytest.raises(MemoryLimitError, match=r"^Npu / .*create_arena: the device is full"):
        Model(chain(), runtime)


class Gated(DeviceBackend):
    """Executes only when it is let."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory=memory)
        self.gate = threading.Event()
        self.gate.set()
        self.inside = threading.Semaphore(0)

    def create_workload_factory(self, memory_manager: IMemoryManager | None) -> IWorkloadFactory:
        right = super().create_workload_factory(memory_manager)
        this = self

        class Waiting(IWorkload):
            def __init__(self, inner: IWorkload) -> None:
                self.inner = inner

            def execute(
                self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
            ) -> None:
                this.inside.release()
                assert this.gate.wait(10)
                self.inner.execute(inputs, outputs)

        class Factory(IWorkloadFactory):
            def create_workload(self, operation: object, info: object) -> IWorkload:
                return Waiting(right.create_workload(operation, info))  # type: ignore[arg-type]

        return Factory()


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

    model = Model(chain(), runtime_of(FakeBackend()))
    model.free_working_memory()
    with monkeypatch.context() as patch:
        patch.setattr(DefaultAllocator, "allocate", allocate)
        for _ in range(2):
            text = "^Fake's allocator / allocate: .*no memory for one more execution.*none left"
            with pytest.raises(MemoryLimitError, match=text):
                model(X)
        with pytest.raises(MemoryLimitError, match="the backend has no memory for one more"):
            Model(chain(), runtime_of(FakeBackend(), backends=["Fake"]))
    np.testing.assert_array_equal(model(X), X + 3)


# Held by the application


def test_an_application_holds_working_memory_and_plain_calls_use_their_own() -> None:
    backend = DeviceBackend()
    model = Model(chain(4, MEBI), runtime_of(backend))
    assert backend.memory.used_bytes == 2 * MIB
    x = np.arange(MEBI[0], dtype=np.float32)
    with model.create_working_memory() as memory:
        assert (memory.size_bytes, memory.bytes_by_backend) == (2 * MIB, {"Npu": 2 * MIB})
        assert memory.shapes == (MEBI,)
        assert backend.memory.used_bytes == 4 * MIB
        for _ in range(3):
            np.testing.assert_array_equal(model.run({"x": x}, memory=memory)["y"], x + 4)
            np.testing.assert_array_equal(memory.run({"x": x})["y"], x + 4)
            np.testing.assert_array_equal(model(x), x + 4)
        assert backend.memory.most_bytes == 4 * MIB
    assert memory.is_closed
    assert backend.memory.used_bytes == 2 * MIB
    with pytest.raises(InvalidArgumentError, match="the working memory was closed"):
        model.run({"x": x}, memory=memory)


def test_idle_working_memory_is_given_back_on_request_and_made_anew_by_the_next_call() -> None:
    backend = DeviceBackend()
    runtime = runtime_of(backend)
    models = [Model(chain(4, MEBI), runtime) for _ in range(2)]
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


def test_working_memory_goes_with_the_last_reference() -> None:
    backend = DeviceBackend()
    model = Model(chain(4, MEBI), runtime_of(backend))
    gc.disable()
    try:
        memory = model.create_working_memory()
        del memory
        assert backend.memory.used_bytes == 2 * MIB
        del model
        assert backend.memory.used_bytes == 0
    finally:
        gc.enable()


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
    assert backend.memory.used_bytes == 4 * MIB
    backend.gate.set()
    thread.join()
    np.testing.assert_array_equal(results[0]["y"], x + 1)
    assert backend.memory.used_bytes == 2 * MIB


def test_what_is_for_other_shapes_or_networks_is_refused() -> None:
    model = Model(chain(2, (None,)), runtime_of())
    with pytest.raises(InvalidArgumentError, match=r"shapes of the inputs are not known.*x\(\?,\)"):
        model.create_working_memory()
    memory = model.create_working_memory({"x": (4,)})
    np.testing.assert_array_equal(model.run({"x": X}, memory=memory)["y"], X + 2)
    with pytest.raises(InvalidArgumentError, match=r"other input shapes.*\(4,\); got \(2,\)"):
        model.run({"x": X[:2]}, memory=memory)
    other = Model(chain(2, (None,)), runtime_of())
    with pytest.raises(InvalidArgumentError, match="belongs to another network"):
        other.run({"x": X}, memory=memory)


def test_an_execution_that_fails_costs_its_memory_which_is_made_anew() -> None:
    backend = Gated(Memory())
    model = Model(chain(1, MEBI), runtime_of(backend))
    x = np.arange(MEBI[0], dtype=np.float32)
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
            made = memory.run({"x": np.arange(6, dtype=np.float32), "shape": ints(rows - 1, -2)})
            assert made["y"].shape == (rows, 6 // rows)
            np.testing.assert_array_equal(made["y"].reshape(-1), np.arange(6))


def shapes_by_value() -> Graph:
    """``y = relu(reshape(x, shape + 1))``."""
    net = Network()
    x = net.input("x", f32(6))
    shape = net.add(ADD, net.input("shape", i32(2)), net.constant(ints(1, 1)))
    net.output("y", net.add(RELU, net.add(Reshape(), x, shape)))
    return net.build()


class Counting(DefaultAllocator):
    """Counts what it has given and not got back."""

    def __init__(self) -> None:
        self.num_given = 0

    def allocate(self, size_bytes: int, alignment_bytes: int = 64) -> Array:
        self.num_given += 1
        return super().allocate(size_bytes, alignment_bytes)

    def free(self, memory: Array) -> None:
        self.num_given -= 1


def test_workloads_give_back_what_they_keep_between_executions_on_request() -> None:
    """NumbaAcc's programs have arenas of their own."""
    net = Network()
    value = net.input("x", f32(1, 64))
    for _ in range(3):
        value = net.add(FullyConnected(), value, net.constant(np.eye(64, dtype=np.float32)), None)
    net.output("y", value)
    allocator = Counting()
    backends = {"custom_allocators": {"NumbaAcc": allocator}}
    model = Model(net, runtime_of(NumbaBackend(), **backends))
    assert placement_of(model).layers_by_backend == {"NumbaAcc": 3}
    x = np.arange(64, dtype=np.float32).reshape(1, 64)
    num_given = allocator.num_given
    assert num_given > 0
    for _ in range(2):
        model.free_working_memory()
        assert allocator.num_given < num_given
        np.testing.assert_array_equal(model(x), x)
        assert allocator.num_given == num_given
