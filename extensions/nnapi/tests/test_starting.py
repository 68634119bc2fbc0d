"""Executions that are started: events, fences, dependencies, time limits."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest

from armpy.backend import current_timing
from armpy.ops.operation import Array
from armpy_nnapi import (
    Compilation,
    DurationCode,
    Event,
    Execution,
    Priority,
    ResultCode,
)
from armpy_nnapi.run.fences import Fence
from armpy_testing.backends.scripted_backend import Call, in_order, raises, waits

from .nnapi_models import (
    FLOAT_2,
    FLOAT_ANY,
    compiled,
    fails,
    floats,
    sum_model,
)
from .nnapi_world import World

needs_eventfd = pytest.mark.skipif(not hasattr(os, "eventfd"), reason="the system has no eventfd")


# Of a deadline that comes while the device computes: a busy machine takes a while to begin.
BEGINS_WITHIN_NS = 500_000_000


@pytest.fixture
def device() -> Iterator[World]:
    """A device that follows a script, and can be let wait."""
    with ExitStack() as stack:
        yield World(stack)


@pytest.fixture
def compilation(device: World) -> Compilation:
    """The sum of two tensors of 2 elements on the device."""
    return device.compiled()


def execution_of(compilation: Compilation) -> tuple[Execution, Array]:
    """An execution with its output."""
    execution, total = Execution(compilation), np.zeros(2, np.float32)
    execution.set_input(0, floats(1, 2))
    execution.set_input(1, floats(10, 20))
    execution.set_output(0, total)
    return execution, total


def _note(order: list[str], name: str, failed: BaseException | None) -> None:
    """Note who has come to an end."""
    order.append(name)


def readable(fd: int, timeout_s: float = 0.0) -> bool:
    """Whether a descriptor can be read."""
    return bool(select.select([fd], [], [], timeout_s)[0])


# Events


def test_urgent_executions_come_first(device: World) -> None:
    device.block()
    order: list[str] = []
    events = []
    blocker, _ = execution_of(compiled(sum_model(manager=device.manager)))
    events.append(blocker.start_compute())
    device.wait_until_busy()
    for priority in (Priority.LOW, Priority.MEDIUM, Priority.HIGH):
        compilation = Compilation(sum_model(manager=device.manager))
        compilation.set_priority(priority)
        compilation.finish()
        event = execution_of(compilation)[0].start_compute()
        event.when_done(partial(_note, order, priority.name))
        events.append(event)
    device.gate.set()
    for event in events:
        event.wait()
    assert order == ["HIGH", "MEDIUM", "LOW"]


# Time


@pytest.mark.parametrize("duration", [-1, float("nan"), True, "1"])
def test_durations_are_numbers(compilation: Compilation, duration: object) -> None:
    execution, _ = execution_of(compilation)
    for call in (execution.set_timeout, execution.set_loop_timeout):
        with fails(ResultCode.BAD_DATA, "the time is below 0, or no number"):
            call(duration)  # type: ignore[arg-type]  # that is tested
    with fails(ResultCode.BAD_DATA, "the time is below 0, or no number"):
        execution.start_compute_with_dependencies([], duration)  # type: ignore[arg-type]


def test_a_deadline_stops_a_computation(device: World, compilation: Compilation) -> None:
    device.block()
    execution, total = execution_of(compilation)
    execution.set_timeout(BEGINS_WITHIN_NS)
    started = time.perf_counter()
    with fails(ResultCode.MISSED_DEADLINE_TRANSIENT, "stopped at its deadline"):
        execution.compute()
    assert time.perf_counter() - started < 10
    device.gate.set()
    assert total.tolist() == [0, 0]


def test_a_deadline_that_passed_before_the_beginning_is_persistent(
    device: World, compilation: Compilation
) -> None:
    device.block()
    blocker, _ = execution_of(compilation)
    first = blocker.start_compute()
    device.wait_until_busy()
    execution, _ = execution_of(compilation)
    execution.set_timeout(20_000_000)
    with fails(ResultCode.MISSED_DEADLINE_PERSISTENT, "stopped at its deadline"):
        execution.start_compute().wait()
    device.gate.set()
    first.wait()


def test_a_time_of_0_is_no_limit(device: World, compilation: Compilation) -> None:
    execution, total = execution_of(compilation)
    execution.set_timeout(1)
    execution.set_timeout(0)
    execution.compute()
    assert total.tolist() == [11, 22]


def test_unwanted_times_are_not_requested(device: World, compilation: Compilation) -> None:
    timings: list[object] = []

    def execute(call: Call) -> object:
        timings.append(current_timing())
        return call.right()

    device.backend.script["execute"] = execute
    execution, _ = execution_of(compilation)
    execution.compute()
    assert current_timing() is None
    assert timings == [None]


# Fences


def test_a_fenced_execution_waits_for_its_dependencies(
    device: World, compilation: Compilation
) -> None:
    device.block()
    first, total = execution_of(compilation)
    after, doubled = Execution(compilation), np.zeros(2, np.float32)
    for index in (0, 1):
        after.set_input(index, total)
    after.set_output(0, doubled)
    event = first.start_compute_with_dependencies([])
    two = after.start_compute_with_dependencies([event])
    device.wait_until_busy()
    assert not event.is_done
    assert not two.is_done
    device.gate.set()
    two.wait()
    assert event.is_done
    assert doubled.tolist() == [22, 44]


def test_both_fenced_times_are_counted_from_the_last_fence(
    device: World, compilation: Compilation
) -> None:
    reader, writer = os.pipe()
    execution, _ = execution_of(compilation)
    execution.set_measure_timing(True)
    event = execution.start_compute_with_dependencies([Event.create_from_sync_fence_fd(reader)])
    time.sleep(0.05)
    os.write(writer, b"x")
    event.wait()
    os.close(reader)
    os.close(writer)
    in_driver = execution.get_duration(DurationCode.IN_DRIVER)
    fenced = execution.get_duration(DurationCode.FENCED_IN_DRIVER)
    assert in_driver - fenced >= 40_000_000
    assert fenced > 0


def test_times_of_what_was_not_fenced_are_the_same(device: World, compilation: Compilation) -> None:
    execution, _ = execution_of(compilation)
    execution.set_measure_timing(True)
    execution.compute()
    fenced = execution.get_duration(DurationCode.FENCED_IN_DRIVER)
    assert execution.get_duration(DurationCode.IN_DRIVER) == fenced


def test_events_without_a_fence_are_waited_for_before(
    device: World, compilation: Compilation
) -> None:
    device.block()
    first, _ = execution_of(compilation)
    after, total = execution_of(compilation)
    plain = first.start_compute()
    threading.Timer(0.02, device.gate.set).start()
    event = after.start_compute_with_dependencies([plain])
    assert plain.is_done
    event.wait()
    assert total.tolist() == [11, 22]


def test_outputs_of_a_fenced_execution_are_known_beforehand(device: World) -> None:
    compilation = compiled(sum_model(FLOAT_2, FLOAT_2, FLOAT_ANY, manager=device.manager))
    for output_type in (None, FLOAT_2):
        execution = Execution(compilation)
        for index in (0, 1):
            execution.set_input(index, floats(1, 2))
        execution.set_output(0, floats(7, 7), output_type)
        if output_type is None:
            with fails(ResultCode.BAD_DATA, "an output's dimensions are not all known"):
                execution.start_compute_with_dependencies([])
        else:
            execution.start_compute_with_dependencies([]).wait()


def test_a_time_after_the_fence_begins_with_the_fence(
    device: World, compilation: Compilation
) -> None:
    device.block()
    reader, writer = os.pipe()
    execution, _ = execution_of(compilation)
    fence = Event.create_from_sync_fence_fd(reader)
    event = execution.start_compute_with_dependencies([fence], 50_000_000)
    time.sleep(0.1)
    assert not event.is_done  # its time has not begun
    os.write(writer, b"x")
    with fails(ResultCode.MISSED_DEADLINE_TRANSIENT, "stopped at its deadline"):
        event.wait()
    os.close(reader)
    os.close(writer)


def test_what_waits_for_a_fence_fails_where_its_compilation_is_closed(
    compilation: Compilation,
) -> None:
    reader, writer = os.pipe()
    execution, _ = execution_of(compilation)
    fence = Event.create_from_sync_fence_fd(reader)
    event = execution.start_compute_with_dependencies([fence])
    compilation.close()
    os.write(writer, b"x")
    with fails(ResultCode.OP_FAILED, "the compilation is closed"):
        event.wait(10)
    os.close(reader)
    os.close(writer)


@needs_eventfd
@pytest.mark.parametrize("is_asked_before", [False, True])
def test_a_fence_is_a_descriptor_that_others_can_wait_for(
    device: World, compilation: Compilation, is_asked_before: bool
) -> None:
    device.block()
    execution, _ = execution_of(compilation)
    event = execution.start_compute_with_dependencies([])
    fds = [event.get_sync_fence_fd() for _ in range(2 * is_asked_before)]
    assert not any(readable(fd) for fd in fds)
    device.gate.set()
    event.wait()
    fds += [event.get_sync_fence_fd()]
    assert len(set(fds)) == len(fds)
    assert all(readable(fd) for fd in fds)
    again = Event.create_from_sync_fence_fd(fds[0])
    for fd in fds:
        os.close(fd)  # the event has one of its own
    again.wait()


@needs_eventfd
def test_the_descriptor_is_signalled_after_waiting(
    compilation: Compilation, device: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.block()
    right = Fence.signal

    def signal_late(fence: Fence, *, is_failed: bool) -> None:
        threading.Event().wait(0.05)
        right(fence, is_failed=is_failed)

    monkeypatch.setattr(Fence, "signal", signal_late)
    execution, _ = execution_of(compilation)
    event = execution.start_compute_with_dependencies([])
    fd = event.get_sync_fence_fd()
    device.gate.set()
    event.wait()
    assert readable(fd)
    os.close(fd)


@needs_eventfd
def test_a_fence_of_a_failed_execution_shows_it_also_through_its_descriptor(
    device: World, compilation: Compilation
) -> None:
    error = raises(RuntimeError("planted"))
    device.backend.script["execute"] = in_order(waits(device.gate), error)
    execution, _ = execution_of(compilation)
    event = execution.start_compute_with_dependencies([])
    fd = event.get_sync_fence_fd()
    waiting = Event.create_from_sync_fence_fd(fd)
    os.close(fd)
    device.gate.set()
    with fails(ResultCode.OP_FAILED, "the fence was signalled with an error"):
        waiting.wait()


@pytest.mark.parametrize("fd", [0, -1])
def test_a_fence_has_a_descriptor(fd: int) -> None:
    with fails(ResultCode.BAD_DATA, "the fence has no descriptor"):
        Event.create_from_sync_fence_fd(fd)


def test_a_fences_descriptor_is_open() -> None:
    reader, writer = os.pipe()
    os.close(writer)
    os.close(reader)
    with fails(ResultCode.BAD_DATA, f"descriptor {reader} is not open"):
        Event.create_from_sync_fence_fd(reader)


@needs_eventfd
def test_fences_leave_no_descriptors(device: World, compilation: Compilation) -> None:

    def work() -> None:
        event = execution_of(compilation)[0].start_compute_with_dependencies([])
        fd = event.get_sync_fence_fd()
        again = Event.create_from_sync_fence_fd(fd)
        os.close(fd)
        again.wait()

    work()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        work()
    assert len(os.listdir("/proc/self/fd")) <= before + 2
