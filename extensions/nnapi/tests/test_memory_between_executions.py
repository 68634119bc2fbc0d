"""Memory that compilations and executions take from devices, and when they give it back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from armpy.backend import (
    DefaultAllocator,
    ICustomAllocator,
)
from armpy.execution import RuntimeOptions
from armpy.ops.operation import Array
from armpy_nnapi import Compilation, DeviceManager, Execution, Model, ModelBuilder
from armpy_testing.backends.fake_backends import registry_of
from armpy_testing.backends.scripted_backend import ScriptedBackend
from armpy_testing.watchdogs import StillWatchdog, use_still_watchdog

LENGTH = 1024
ARENA_BYTES = 2 * LENGTH * 4
"""What a chain of four additions needs between them."""


class Counting(DefaultAllocator):
    """Has so much, and knows how much is taken."""

    def __init__(self) -> None:
        self.size_bytes = 1 << 30
        self.used_bytes = 0

    def allocate(self, size_bytes: int, alignment_bytes: int = 64) -> Array:
        if self.used_bytes + size_bytes > self.size_bytes:
            raise MemoryError("all is given")
        self.used_bytes += size_bytes
        return super().allocate(size_bytes, alignment_bytes)

    def free(self, memory: Array) -> None:
        self.used_bytes -= memory.nbytes


class Device(ScriptedBackend):
    """Takes its memory from an allocator."""

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        return True


Found = tuple[DeviceManager, Device, Counting]


@pytest.fixture(autouse=True)
def still_watchdog(monkeypatch: pytest.MonkeyPatch) -> StillWatchdog:
    """Nothing is released but by a look of the test's."""
    return use_still_watchdog(monkeypatch)


@pytest.fixture
def found() -> Iterator[Found]:
    backend, allocator = Device("Device"), Counting()
    registry, allocators = registry_of(backend), {"Device": allocator}
    with DeviceManager(RuntimeOptions(registry=registry, custom_allocators=allocators)) as manager:
        yield manager, backend, allocator


def model(manager: DeviceManager) -> Model:
    """``x + y + y + y + y``."""
    builder = ModelBuilder(manager)
    x, y = (builder.input(np.float32, (LENGTH,)) for _ in range(2))
    for _ in range(4):
        x = builder.add(x, y)
    return builder.finish(x)


def compiled(manager: DeviceManager) -> Compilation:
    compilation = Compilation(model(manager))
    compilation.finish()
    return compilation


def execution_of(compilation: Compilation) -> tuple[Execution, Array]:
    execution, total = Execution(compilation), np.zeros(LENGTH, np.float32)
    for index in range(2):
        execution.set_input(index, np.ones(LENGTH, np.float32))
    execution.set_output(0, total)
    return execution, total


def compute(compilation: Compilation) -> None:
    """Run once, and check what comes."""
    execution, total = execution_of(compilation)
    execution.compute()
    assert total.tolist() == [5.0] * LENGTH


def start(compilation: Compilation) -> None:
    """Run once on another thread."""
    execution, total = execution_of(compilation)
    execution.start_compute().wait()
    assert total.tolist() == [5.0] * LENGTH


def side_by_side(compilation: Compilation) -> None:
    """Run several times at the same time."""
    threads = [threading.Thread(target=compute, args=(compilation,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def again(compilation: Compilation) -> Execution:
    """Run what can be run again, and keep it."""
    execution, _ = execution_of(compilation)
    execution.set_reusable(True)
    execution.compute()
    return execution


def test_compilation_takes_no_memory_for_executions(found: Found) -> None:
    manager, _, allocator = found
    compilations = [compiled(manager) for _ in range(3)]
    assert allocator.used_bytes == 0
    for compilation in compilations * 2:
        compute(compilation)
    assert allocator.used_bytes == ARENA_BYTES


def test_models_that_do_not_run_together_all_run_on_a_device_with_room_for_one(
    found: Found,
) -> None:
    manager, _, allocator = found
    allocator.size_bytes = ARENA_BYTES
    compilations = [compiled(manager) for _ in range(3)]
    for compilation in compilations * 2:
        compute(compilation)
        network = compilation.whole
        assert network is not None
        assert network.placement is not None
        assert network.placement.layers_by_backend == {"Device": 4}


def test_the_first_execution_makes_nothing_but_memory(found: Found) -> None:
    manager, backend, _ = found
    compilation = compiled(manager)
    assert len(backend.calls_of("create_workload")) == 4
    network = compilation.whole
    assert network is not None
    programs = [*network.program_cache.programs.values()]
    compute(compilation)
    assert len(backend.calls_of("create_workload")) == 4
    assert [*network.program_cache.programs.values()] == programs


@pytest.mark.parametrize("run", [compute, start, side_by_side, again])
def test_what_idles_gives_its_memory_back_however_it_was_run(
    found: Found, run: Callable[[Compilation], object], still_watchdog: StillWatchdog
) -> None:
    manager, _, allocator = found
    compilation = compiled(manager)
    holder = run(compilation)
    assert allocator.used_bytes >= ARENA_BYTES
    for _ in range(2):
        still_watchdog.look()
    # Free-threaded Pythons free what an idle thread has made when that thread runs or ends.
    until = time.monotonic() + 20
    while allocator.used_bytes and time.monotonic() < until:
        time.sleep(0.01)
    assert allocator.used_bytes == 0
    if isinstance(holder, Execution):
        holder.compute()
    compute(compilation)


def test_idle_memory_is_given_back_on_request(found: Found) -> None:
    manager, _, allocator = found
    compilation = compiled(manager)
    compute(compilation)
    compilation.free_working_memory()
    assert allocator.used_bytes == 0
    compute(compilation)
    compilation.close()
    compilation.free_working_memory()
    assert allocator.used_bytes == 0
