"""Programs' memory comes from the application's allocator, and goes back to it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from armpy_numba_acc import NumbaBackend
from armpy_numba_acc.runtime.instance import Instance

from armpy import Model, Runtime, RuntimeOptions
from armpy.backend import ICustomAllocator, MemorySource
from armpy.errors import BackendCapabilityError, MemoryLimitError
from armpy.ops.operation import Array
from armpy.plugins import BackendRegistry
from armpy_testing.watchdogs import use_still_watchdog
from armpy_testing.watched_allocator import WatchedAllocator

from .networks import convolutions, image

X = image(size=8, channels=4)


@pytest.fixture
def registry() -> BackendRegistry:
    registry = BackendRegistry()
    registry.register("NumbaAcc", NumbaBackend)
    return registry


def runtime_with(registry: BackendRegistry, allocator: ICustomAllocator | None) -> Runtime:
    allocators = {} if allocator is None else {"NumbaAcc": allocator}
    return Runtime(RuntimeOptions(registry=registry, custom_allocators=allocators))


def arenas() -> Iterator[Array]:
    """The memory of every program that is ready to run."""
    gc.collect()
    return (
        instance._arena for instance in gc.get_objects() if type(instance) is Instance
    )  # proxies may be dead


@pytest.mark.slow
def test_three_runtimes_on_one_registry_each_have_their_own_memory(
    registry: BackendRegistry,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine the first one would idle for so long that it has no memory any more.
    use_still_watchdog(monkeypatch)
    first, other = WatchedAllocator(), WatchedAllocator()
    existing = {id(arena) for arena in arenas()}
    models = [
        Model(convolutions(8, 4), runtime_with(registry, allocator), closes_runtime=True)
        for allocator in (first, None, other)
    ]
    results = [model.run(X)["y"] for model in models]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[2], results[1])
    arenas_found = [arena for arena in arenas() if id(arena) not in existing]
    assert sorted((first.has(arena), other.has(arena)) for arena in arenas_found) == [
        (False, False),
        (False, True),
        (True, False),
    ]
    for model, allocator in zip(models, (first, None, other), strict=True):
        assert model.placement is not None
        assert model.placement.layers_by_backend == {"NumbaAcc": 8}
        if allocator is not None:
            assert sum(allocator.held.values()) == model.placement.peak_bytes > 0
    assert caplog.text == ""
    arenas_found.clear()
    while models:
        models.pop().close()
    del model
    gc.collect()
    assert first.held == other.held == {}


@pytest.mark.slow
def test_executions_side_by_side_take_more_and_keep_to_it(registry: BackendRegistry) -> None:
    allocator = WatchedAllocator()
    with Model(convolutions(8, 4), runtime_with(registry, allocator)) as model:
        expected = model.run(X)["y"]
        threads = [threading.Thread(target=model.run, args=[X]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(model.run(X)["y"], expected)
        assert model.placement is not None
        assert sum(allocator.held.values()) % model.placement.peak_bytes == 0
        assert len(allocator.held) <= 4  # as many as are kept


def test_an_allocator_that_has_no_more_is_named(registry: BackendRegistry) -> None:
    class Empty(WatchedAllocator):
        def allocate(self, size_bytes: int, alignment_bytes: int = 64) -> Array:
            raise MemoryError("nothing is left")

    model = Model(convolutions(8, 4), runtime_with(registry, Empty()))
    text = r"NumbaAcc's allocator / allocate: .*nothing is left"
    with pytest.raises(MemoryLimitError, match=text):
        model.warm_up()


def test_protected_memory_is_refused(registry: BackendRegistry) -> None:
    allocator = WatchedAllocator(MemorySource.DMA_BUF_PROTECTED)
    options = RuntimeOptions(
        backends=["NumbaAcc"], registry=registry, custom_allocators={"NumbaAcc": allocator}
    )
    with pytest.raises(BackendCapabilityError, match="does not map protected memory"):
        Runtime(options)
