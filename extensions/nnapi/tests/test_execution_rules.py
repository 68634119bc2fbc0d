"""Rules of executions, bursts, events and fences, each on a device that follows a script."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from armpy.backend import current_timing
from armpy.errors import BackendError
from armpy.ops.operation import Array
from armpy_nnapi import (
    DURATION_UNAVAILABLE,
    Burst,
    Compilation,
    DurationCode,
    Event,
    Execution,
    Memory,
    ModelBuilder,
    NnapiError,
    OperandType,
    ResultCode,
)
from armpy_nnapi.run.fence_watch import FenceWatch
from armpy_testing.backends.scripted_backend import Call, ScriptedBackend, raises, right

from .nnapi_models import (
    BOOL_1,
    compiled,
    devices_of,
    fails,
    floats,
    sum_model,
    truth_loop,
    until,
)
from .nnapi_world import World

DEAD = NnapiError("the device is gone", code=ResultCode.DEAD_OBJECT)


@pytest.fixture
def device() -> Iterator[World]:
    """A device that follows a script, and can be let wait."""
    with contextlib.ExitStack() as stack:
        yield World(stack)


def execution_of(
    compilation: Compilation, *, reusable: bool = False
) -> tuple[Execution, Array, Array]:
    """An execution of the sum with its first input and its output."""
    execution = Execution(compilation)
    execution.set_reusable(reusable)
    values, total = floats(1, 2), np.zeros(2, np.float32)
    execution.set_input(0, values)
    execution.set_input(1, floats(10, 20))
    execution.set_output(0, total)
    return execution, values, total


@contextlib.contextmanager
def pipe() -> Iterator[tuple[Event, Callable[[], object]]]:
    """A fence, and what signals it."""
    reader, writer = os.pipe()
    try:
        yield Event.create_from_sync_fence_fd(reader), lambda: os.write(writer, b"x")
    finally:
        os.close(reader)
        os.close(writer)


WAYS: dict[str, Callable[[Execution], None]] = {
    "compute": lambda execution: execution.compute(),
    "start": lambda execution: execution.start_compute().wait(30),
    "fenced": lambda execution: execution.start_compute_with_dependencies([]).wait(30),
    "burst": lambda execution: Burst(execution.compilation).compute(execution),
}


# What is read is what the buffers hold when it is computed


def negation() -> Compilation:
    """A model that negates one truth value."""
    builder = ModelBuilder()
    return compiled(builder.finish(builder.logical_not(builder.input(BOOL_1))))


@pytest.mark.parametrize("is_in_memory", [False, True])
def test_truth_values_are_read_when_they_are_computed(is_in_memory: bool) -> None:
    execution, value, result = Execution(negation()), np.array([True]), np.zeros(1, np.bool_)
    execution.set_reusable(True)
    if is_in_memory:
        execution.set_input_from_memory(0, Memory(value), 0, 1)
    else:
        execution.set_input(0, value)
    execution.set_output(0, result)
    for is_set in (False, True, False):
        value[:] = is_set
        execution.compute()
        assert result.tolist() == [not is_set]
    value[:] = True
    execution.start_compute().wait()
    assert result.tolist() == [False]


def odd_arrays() -> dict[str, Array]:
    """Arrays of two elements that nothing can read in place."""
    unaligned = np.zeros(9, np.uint8)[1:].view(np.float32)
    return {"strided": np.zeros(4, np.float32)[::2], "unaligned": unaligned}


@pytest.mark.parametrize("kind", odd_arrays())
def test_odd_arrays_are_read_when_they_are_computed(kind: str) -> None:
    values, total = odd_arrays()[kind], np.zeros(2, np.float32)
    execution = Execution(compiled(sum_model()))
    execution.set_reusable(True)
    execution.set_input(0, values)
    execution.set_input(1, floats(10, 20))
    execution.set_output(0, total)
    for first in (1, 2, 3):
        values[:] = first
        execution.compute()
        assert total.tolist() == [first + 10, first + 20]
    values[:] = 4
    execution.start_compute().wait()
    assert total.tolist() == [14, 24]


def test_the_outputs_of_a_reusable_execution_may_have_other_shapes_each_time() -> None:
    builder = ModelBuilder()
    multiples = builder.input(np.int32, (1,))
    tiled = builder.tile(np.full(1, 7, np.float32), multiples)
    execution = Execution(compiled(builder.finish(tiled)))
    execution.set_reusable(True)
    wanted, filled = np.array([2], np.int32), np.zeros(4, np.float32)
    execution.set_input(0, wanted)
    execution.set_output(0, filled)
    for size, code in ((2, None), (3, None), (5, ResultCode.OUTPUT_INSUFFICIENT_SIZE), (4, None)):
        wanted[:], filled[:] = size, 0
        if code is None:
            execution.compute()
            assert filled.tolist() == [7] * size + [0] * (4 - size)
            assert execution.get_output_operand_dimensions(0) == (size,)
        else:
            with fails(code, "does not fit"):
                execution.compute()
            assert not filled.any()


# Deadlines


def test_a_time_that_is_up_before_the_computation_is_persistent(device: World) -> None:
    execution, _, total = execution_of(device.compiled())
    execution.set_timeout(1)
    with fails(ResultCode.MISSED_DEADLINE_PERSISTENT, "deadline"):
        execution.compute()
    assert total.tolist() == [0, 0]
    assert not device.backend.calls_of("execute")


def test_a_time_that_runs_while_fences_are_waited_for(device: World) -> None:
    execution, _, _ = execution_of(device.compiled())
    execution.set_timeout(30_000_000)
    with pipe() as (fence, signal):
        event = execution.start_compute_with_dependencies([fence])
        with fails(ResultCode.MISSED_DEADLINE_PERSISTENT, "deadline"):
            event.wait(30)
        signal()
        fence.wait(30)
    assert not device.backend.calls_of("execute")
    with fails(ResultCode.BAD_STATE, "has been started"):
        execution.compute()


@pytest.mark.parametrize("from_start_s", [0.5, 20.0])
def test_of_two_times_the_shorter_counts(device: World, from_start_s: float) -> None:
    device.block()
    execution, _, _ = execution_of(device.compiled())
    execution.set_timeout(int(from_start_s * 1e9))
    after_fence_s = 20.5 - from_start_s
    started = time.perf_counter()
    event = execution.start_compute_with_dependencies([], int(after_fence_s * 1e9))
    with fails(ResultCode.MISSED_DEADLINE_TRANSIENT, "deadline"):
        event.wait(30)
    assert time.perf_counter() - started < 10


def test_what_depends_on_an_execution_has_times_of_its_own() -> None:
    compilation = compiled(truth_loop(ends=True))
    results = [np.ones(1, np.bool_) for _ in range(2)]
    first, after = Execution(compilation), Execution(compilation)
    for execution, result, value in zip((first, after), results, (False, True), strict=True):
        execution.set_input(0, np.array([value]))
        execution.set_output(0, result)
    first.set_loop_timeout(0)  # enough for no turn
    with pipe() as (fence, signal):
        event = first.start_compute_with_dependencies([fence])
        two = after.start_compute_with_dependencies([event])
        signal()
        two.wait(30)
    assert [result.tolist() for result in results] == [[False], [False]]


# Devices that are gone


def test_a_device_that_is_gone_is_said_by_calls_and_a_failure_to_events(device: World) -> None:
    compilation = device.compiled()
    device.backend.script["execute"] = raises(DEAD)
    with fails(ResultCode.DEAD_OBJECT, "the device is gone"):
        execution_of(compilation)[0].compute()
    # A result code crosses to an event as a status of the HAL, which has none for this.
    for event in (
        execution_of(compilation)[0].start_compute(),
        execution_of(compilation)[0].start_compute_with_dependencies([]),
    ):
        with fails(ResultCode.OP_FAILED, "the device is gone"):
            event.wait(30)


# Closing, and the watchdog


def test_a_closed_burst_keeps_nothing_of_any_execution(device: World) -> None:
    compilation = device.compiled()
    executions = [execution_of(compilation, reusable=True)[0] for _ in range(3)]
    with Burst(compilation) as burst:
        for execution in executions:
            burst.compute(execution)
            assert execution.is_prepared
    assert not any(execution.is_prepared for execution in executions)


def test_a_burst_does_not_keep_what_is_over(device: World) -> None:
    compilation = device.compiled()
    burst = Burst(compilation)
    execution, values, _ = execution_of(compilation)
    burst.compute(execution)
    del execution
    gc.collect()
    alone = np.zeros_like(values)
    assert sys.getrefcount(values) == sys.getrefcount(alone)
    burst.close()


# Fences


def test_fences_that_wait_have_one_thread_between_them(device: World) -> None:
    compilation = device.compiled()
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        pipes = [stack.enter_context(pipe()) for _ in range(20)]
        assert threading.active_count() <= before  # no thread waits for them
        executions = [execution_of(compilation) for _ in pipes]
        events = [
            execution.start_compute_with_dependencies([fence])
            for (execution, _, _), (fence, _) in zip(executions, pipes, strict=True)
        ]
        assert threading.active_count() <= before + 1
        for _, signal in pipes:
            signal()
        for event in events:
            event.wait(30)
        assert all(total.tolist() == [11, 22] for _, _, total in executions)


def test_the_first_failure_fails_what_depends_on_it_after_all_have_ended(device: World) -> None:
    compilation = device.compiled()
    reader, writer = os.pipe()
    broken = Event.create_from_sync_fence_fd(reader)
    with pipe() as (fence, signal):
        execution, _, total = execution_of(compilation)
        event = execution.start_compute_with_dependencies([broken, fence])
        os.close(writer)
        with fails(ResultCode.OP_FAILED, "signalled with an error"):
            broken.wait(30)
        assert not event.is_done  # its inputs may be written yet
        signal()
        with fails(ResultCode.OP_FAILED, "a dependency has failed"):
            event.wait(30)
    os.close(reader)
    assert total.tolist() == [0, 0]
    assert not device.backend.calls_of("execute")


def test_a_failed_event_without_a_fence_fails_what_depends_on_it(device: World) -> None:
    compilation = device.compiled()
    device.backend.script["execute"] = [raises(NnapiError("no", code=ResultCode.OP_FAILED))]
    plain = execution_of(compilation)[0].start_compute()
    execution, _, _ = execution_of(compilation)
    event = execution.start_compute_with_dependencies([plain])
    with fails(ResultCode.OP_FAILED, "a dependency has failed.*no"):
        event.wait(30)


# Bursts


def test_two_bursts_of_a_compilation_compute_side_by_side(device: World) -> None:
    compilation = device.compiled()
    device.block()
    computations = [execution_of(compilation) for _ in range(2)]
    threads = [
        threading.Thread(target=Burst(compilation).compute, args=(execution,))
        for execution, _, _ in computations
    ]
    for thread in threads:
        thread.start()
    until(lambda: len(device.backend.calls_of("execute")) == 2)
    device.gate.set()
    for thread in threads:
        thread.join()
    assert all(total.tolist() == [11, 22] for _, _, total in computations)


# Under way


def test_an_execution_that_waits_for_a_fence_goes_on_without_a_reference(device: World) -> None:
    with pipe() as (fence, signal):
        execution, _, total = execution_of(device.compiled())
        event = execution.start_compute_with_dependencies([fence])
        del execution, fence
        gc.collect()
        signal()
        event.wait(30)
    assert total.tolist() == [11, 22]


def test_the_end_of_an_event_is_reported_once() -> None:
    event = Event()
    results: list[BaseException | None] = []
    event.when_done(results.append)
    event.settle(None)
    event.settle(NnapiError("too late", code=ResultCode.OP_FAILED))
    event.when_done(results.append)
    event.wait(0)
    assert results == [None, None]


# Times


def test_the_time_in_the_driver_includes_that_on_the_device(device: World) -> None:
    def execute(call: Call) -> object:
        timing = current_timing()
        assert timing is not None
        timing.add_device_time(2e6)  # more than it can have taken
        return call.right()

    device.backend.script["execute"] = execute
    compilation = device.compiled()
    for compute in WAYS.values():
        execution, _, _ = execution_of(compilation)
        execution.set_measure_timing(True)
        compute(execution)
        for on_hardware, in_driver in (
            (DurationCode.ON_HARDWARE, DurationCode.IN_DRIVER),
            (DurationCode.FENCED_ON_HARDWARE, DurationCode.FENCED_IN_DRIVER),
        ):
            assert execution.get_duration(on_hardware) == 2_000_000_000
            assert execution.get_duration(in_driver) >= 2_000_000_000


def test_an_execution_that_failed_has_no_times(device: World) -> None:
    compilation = device.compiled()
    execution, _, total = execution_of(compilation, reusable=True)
    execution.set_measure_timing(True)
    execution.compute()
    assert execution.get_duration() > 0
    device.backend.script["execute"] = raises(NnapiError("no", code=ResultCode.OP_FAILED))
    with fails(ResultCode.OP_FAILED, "no"):
        execution.compute()
    with pytest.raises(NnapiError, match="has not ended well") as caught:
        execution.get_duration()
    assert (caught.value.code, caught.value.value) == (ResultCode.BAD_STATE, DURATION_UNAVAILABLE)
    assert total.tolist() == [11, 22]


# Times without end, and systems without room


@pytest.mark.parametrize("duration_ns", [2**63, 2**64 - 1, float("inf")])
def test_times_without_end_are_no_limit(device: World, duration_ns: int) -> None:
    compilation = device.compiled()
    for compute in WAYS.values():
        execution, _, total = execution_of(compilation)
        execution.set_timeout(duration_ns)
        compute(execution)
        assert total.tolist() == [11, 22]
    execution, _, total = execution_of(compilation)
    execution.start_compute_with_dependencies([], duration_ns).wait(30)
    assert total.tolist() == [11, 22]


def test_deadlines_are_watched_after_times_without_end(device: World) -> None:
    compilation = device.compiled()
    execution, _, _ = execution_of(compilation)
    execution.set_timeout(2**63)
    execution.compute()
    later, _, _ = execution_of(compilation)
    later.set_timeout(500_000_000)  # a busy machine takes a while to begin
    device.block()
    with fails(ResultCode.MISSED_DEADLINE_TRANSIENT, "deadline"):
        later.start_compute().wait(30)


@pytest.mark.parametrize("timeout_s", [1e9, 1e12, float("inf")])
def test_an_event_is_waited_for_without_end(device: World, timeout_s: float) -> None:
    with pipe() as (fence, signal):
        event = execution_of(device.compiled())[0].start_compute_with_dependencies([fence])
        threading.Timer(0.02, signal).start()
        fence.wait(timeout_s)
        event.wait(timeout_s)


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="the system has no eventfd")
def test_a_process_without_a_free_descriptor_has_no_fence(
    device: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    with pipe() as (fence, signal):
        event = execution_of(device.compiled())[0].start_compute_with_dependencies([fence])
        for function in ("eventfd", "dup"):
            monkeypatch.setattr(os, function, refuse)
            for fence_closed in (event, fence) if function == "dup" else (event,):
                with pytest.raises(NnapiError, match="too many open files") as caught:
                    fence_closed.get_sync_fence_fd()
                assert (caught.value.code, caught.value.value) == (ResultCode.BAD_DATA, -1)
        with fails(ResultCode.RESOURCE_EXHAUSTED_TRANSIENT, "too many open files"):
            Event.create_from_sync_fence_fd(1)
        monkeypatch.undo()
        signal()
        event.wait(30)


# Devices that fail


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reusable", [False, True])
def test_the_reference_computes_what_a_device_fails_to(way: str, reusable: bool) -> None:
    backend = ScriptedBackend()
    with devices_of(backend) as manager:
        execution, values, total = execution_of(
            compiled(sum_model(manager=manager)), reusable=reusable
        )
        planted = raises(BackendError("planted"))
        steps = [right(), planted, right()] if reusable else [planted]
        for first, step in enumerate(steps):
            values[:], backend.script["execute"] = first, step
            WAYS[way](execution)
            assert total.tolist() == [first + 10, first + 20]
        assert backend.calls_of("execute")


@pytest.mark.parametrize("way", WAYS)
def test_no_other_device_replaces_a_chosen_one_that_fails(device: World, way: str) -> None:
    compilation = device.compiled()
    device.backend.script["execute"] = raises(BackendError("planted"))
    execution, _, _ = execution_of(compilation)
    with fails(ResultCode.OP_FAILED, "planted"):
        WAYS[way](execution)
    assert len(device.backend.calls_of("execute")) == 1


@pytest.mark.parametrize("way", WAYS)
def test_no_other_device_computes_an_output_that_does_not_fit(way: str) -> None:
    backend = ScriptedBackend()
    builder = ModelBuilder()
    multiples = builder.input(np.int32, (1,))
    model = builder.finish(builder.tile(np.full(1, 7, np.float32), multiples))
    with devices_of(backend) as manager:
        compilation = Compilation(model, manager)
        compilation.finish()
        execution = Execution(compilation)
        execution.set_input(0, np.array([4], np.int32))
        filled = np.zeros(3, np.float32)
        if way == "fenced":  # which takes known outputs only, and those fit their buffers
            execution.set_output(0, filled, OperandType.of(filled))
            with fails(ResultCode.OP_FAILED, "other dimensions than were given"):
                WAYS[way](execution)
        else:
            execution.set_output(0, filled)
            with fails(ResultCode.OUTPUT_INSUFFICIENT_SIZE, "does not fit"):
                WAYS[way](execution)
            with pytest.raises(NnapiError) as caught:
                execution.get_output_operand_dimensions(0)
            assert caught.value.value == (4,)
    assert not filled.any()
    assert len(backend.calls_of("execute")) <= 1


def test_any_number_of_fences_is_added_while_their_thread_is_busy() -> None:
    watch, gate, done = FenceWatch(), threading.Event(), threading.Event()
    readers_writers = [os.pipe() for _ in range(2)]
    (first, first_end), (second, second_end) = readers_writers
    watch.begin(first, lambda: gate.wait(30))
    os.write(first_end, b"x")
    for _ in range(70_000):  # more than a pipe holds
        watch.begin(second, done.set)
    gate.set()
    os.write(second_end, b"x")
    assert done.wait(30)
    for fd in (first, first_end, second, second_end):
        os.close(fd)
