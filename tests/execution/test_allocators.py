"""Working memory of one runtime's networks comes from its allocator, and of no other's."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import (
    ALIGNMENT_BYTES,
    ExternalMemory,
    HostTensorHandle,
    ICustomAllocator,
    IWorkloadFactory,
    MemorySource,
    NetworkResources,
)
from armpy.errors import BackendCapabilityError, BackendError
from armpy.execution import Runtime, RuntimeOptions
from armpy.execution.memory.allocators import CheckedAllocator
from armpy.model import Model
from armpy.ops.operation import Array
from armpy.plugins import BackendRegistry
from armpy_testing.backends.fake_backends import (
    FakeBackend,
    Handles,
    Outputs,
    Step,
    runtime_of,
)
from armpy_testing.models.networks import chain, floats, placement_of
from armpy_testing.watched_allocator import WatchedAllocator

X = floats(-1, 0, 2, 5)


class Watching(FakeBackend):
    """A backend that takes scratch memory beside the core's arenas, and shows all of it."""

    def __init__(self, refusal: str = "") -> None:
        super().__init__("Watching")
        self.refusal = refusal
        self.resources: list[NetworkResources] = []
        self.seen: list[Array] = []

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        if self.refusal:
            raise BackendCapabilityError(self.refusal)
        return True

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.resources.append(network)
        return super().create_workload_factory(network)

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        self.seen += [h.array for h in outputs if isinstance(h, HostTensorHandle)]


def registry_with(backend: Watching) -> BackendRegistry:
    registry = BackendRegistry()
    registry.register("Watching", lambda: backend)
    registry.register("CpuRef", ReferenceBackend)
    return registry


def runtime_with(
    registry: BackendRegistry, backend_id: str, allocator: ICustomAllocator | None
) -> Runtime:
    allocators = {} if allocator is None else {backend_id: allocator}
    return Runtime(
        RuntimeOptions(backends=[backend_id], registry=registry, custom_allocators=allocators)
    )


@pytest.mark.slow
def test_three_runtimes_on_one_registry_each_have_their_own_memory() -> None:
    backend = Watching()
    registry = registry_with(backend)
    first, other = WatchedAllocator(), WatchedAllocator()
    for allocator in (first, None, other, None):
        allocators = [first, other]
        before = [a.num_bytes for a in allocators]
        with Model(chain(3), runtime_with(registry, "Watching", allocator)) as model:
            backend.seen.clear()
            for _ in range(2):
                np.testing.assert_array_equal(model(X), X + 3)
            assert len(backend.seen) == 2 * 3
            # The last layer writes the caller's memory, all others the arena.
            arenas = [array for index, array in enumerate(backend.seen) if index % 3 < 2]
            for candidate in allocators:
                inside = [candidate.has(array) for array in arenas]
                assert inside == [candidate is allocator] * 4
            allocated = [a.num_bytes - b for a, b in zip(allocators, before, strict=True)]
            assert allocated == [128 if a is allocator else 0 for a in allocators]
            assert placement_of(model).peak_bytes == 128
        del model
        backend.seen.clear()
        gc.collect()
        assert first.held == other.held == {}


def test_a_refusal_leaves_the_backend_out_with_its_reason() -> None:
    backend = Watching("only memory of its own")
    options = {"custom_allocators": {"Watching": WatchedAllocator()}}
    text = "^Watching / use_custom_memory_allocator: only memory of its own"
    with pytest.raises(BackendCapabilityError, match=text):
        runtime_of(backend, **options)
    spec = runtime_of(backend, backends=None, **options).get_device_spec()
    assert spec.supported_backends == ("CpuRef",)


def test_a_backend_gets_the_allocator_of_its_network() -> None:
    backend, allocator = Watching(), WatchedAllocator(MemorySource.DMA_BUF)
    Model(chain(3), runtime_of(backend, custom_allocators={"Watching": allocator}))
    (resources,) = backend.resources
    assert resources.allocator is not None
    assert resources.allocator.memory_source is MemorySource.DMA_BUF
    scratch = resources.allocator.allocate(100, ALIGNMENT_BYTES)
    assert allocator.has(scratch)
    resources.allocator.free(scratch)
    assert not allocator.has(scratch)


# What an allocator gives is checked


class Giving(ICustomAllocator):
    """Returns the memory that a test sets."""

    memory: object = None
    external: object = None

    def __init__(self) -> None:
        self.freed: list[object] = []

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Array:
        return self.memory  # type: ignore[return-value]  # wrong on purpose

    def free(self, memory: Array) -> None:
        self.freed.append(memory)

    def allocate_external(self, size_bytes: int, alignment_bytes: int) -> ExternalMemory:
        return self.external  # type: ignore[return-value]  # wrong on purpose

    def free_external(self, memory: ExternalMemory) -> None:
        self.freed.append(memory)


ALIGNED = WatchedAllocator().allocate(4096)
READ_ONLY = WatchedAllocator().allocate(100)
READ_ONLY.setflags(write=False)


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        (None, "wrong type. Expected ndarray; got None"),
        (ALIGNED[1:101], r"Expected writable uint8 \(100,\) aligned to 64 bytes"),
        (ALIGNED[:99], r"got uint8 \(99,\)"),
        (ALIGNED[:200:2], "the allocator's memory cannot be used"),
        (ALIGNED[:100].view(np.int8), "got int8"),
        (ALIGNED[:100].reshape(2, 50), r"got uint8 \(2, 50\)"),
        (READ_ONLY, "Expected writable"),
    ],
)
def test_an_array_that_cannot_be_used_goes_back(memory: object, text: str) -> None:
    giving = Giving()
    giving.memory = memory
    with pytest.raises(BackendError, match=f"^Npu's allocator / allocate: .*{text}"):
        CheckedAllocator("Npu's allocator", giving).allocate(100, 64)
    assert [m is memory for m in giving.freed] == [True] * (memory is not None)


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        (None, "wrong type. Expected ExternalMemory; got None"),
        (ExternalMemory.of_array(ALIGNED[:99]), "Expected 100 bytes of .*got 99 bytes"),
        (ExternalMemory.of_array(ALIGNED[1:101]), "aligned to 64"),
        (ExternalMemory(MemorySource.DMA_BUF, 100, None, 5, 0), "got 100 bytes of MemorySource.D"),
    ],
)
def test_external_memory_that_cannot_be_used_goes_back(memory: object, text: str) -> None:
    giving = Giving()
    giving.external = memory
    with pytest.raises(BackendError, match=f"^Npu's allocator / allocate_external: .*{text}"):
        CheckedAllocator("Npu's allocator", giving).allocate_external(100, 64)
    assert [m is memory for m in giving.freed] == [True] * (memory is not None)


def test_what_goes_wrong_when_memory_goes_back_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Clinging(WatchedAllocator):
        def free(self, memory: Array) -> None:
            raise ValueError("mine")

    checked = CheckedAllocator("Npu's allocator", Clinging())
    checked.free(checked.allocate(100, 64))
    assert "Npu's allocator / free: the backend raised ValueError('mine')" in caplog.text
