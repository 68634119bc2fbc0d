"""Working memory is made when a network is loaded, by the backends' own factories."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from armpy.backend import (
    DefaultAllocator,
    IMemoryManager,
    ITensorArena,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    Lifetime,
)
from armpy.errors import MemoryLimitError
from armpy.ops import Activation
from armpy.ops.operation import Array
from armpy.optimizer import Placement
from armpy.runtime import Model
from armpy.tensor import TensorInfo
from tests.support.device_memory import MIB, Arena, DeviceBackend, DeviceFactory, Memory
from tests.support.fake_backends import FakeBackend, runtime_of
from tests.support.networks import chain, diamond, floats

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
