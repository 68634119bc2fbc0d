"""The simulated device itself: memory, transfers, the queue, faults."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from armpy_example_device.device import Device
from armpy_example_device.faults import Faults
from armpy_example_device.queue import Command

from armpy.backend import Cancellation
from armpy.errors import (
    BackendError,
    ExecutionCancelledError,
    InvalidArgumentError,
    MemoryLimitError,
)

OUTPUT = np.zeros(4, np.float32)


def nothing() -> Iterator[None]:
    yield


def test_memory_is_given_until_it_is_full_and_taken_back_with_the_last_reference() -> None:
    device = Device(1024)
    regions = [device.alloc(256) for _ in range(4)]
    with pytest.raises(MemoryLimitError, match="1 bytes in one piece; got 1024 bytes, 0 of them"):
        device.alloc(1)
    part = regions[1].part(64, 64)
    del regions[1:3]
    gc.collect()
    assert device.allocated_bytes == 768  # a part keeps the whole
    del part
    gc.collect()
    assert device.allocated_bytes == 512
    assert device.alloc(512).offset_bytes == 256  # the two gaps are one


def test_transfers_are_counted_with_their_bytes() -> None:
    device = Device(1 << 16)
    region = device.alloc(16)
    device.upload(region, np.arange(4, dtype=np.float32))
    target = np.zeros(4, np.float32)
    device.download(region, target)
    assert target.tolist() == [0, 1, 2, 3]
    counters = device.counters
    assert (counters.uploads, counters.bytes_uploaded) == (1, 16)
    assert (counters.downloads, counters.bytes_downloaded) == (1, 16)


def test_commands_run_in_the_order_in_which_they_came() -> None:
    device = Device()
    seen: list[int] = []

    def note(number: int) -> Iterator[None]:
        time.sleep(0.001)
        seen.append(number)
        yield

    completions = [
        device.queue.submit(Command(str(i), lambda i=i: note(i), OUTPUT))  # type: ignore[misc]
        for i in range(20)
    ]
    assert completions[-1].wait(10)
    assert seen == list(range(20))
    assert all(completion.wait(0) for completion in completions)


def test_a_kernel_that_raises_fails_the_waiting_thread_and_the_queue_goes_on() -> None:
    device = Device()

    def bad() -> Iterator[None]:
        yield
        raise ZeroDivisionError("oops")

    failed = device.queue.submit(Command("bad", bad, OUTPUT))
    good = device.queue.submit(Command("good", nothing, OUTPUT))
    with pytest.raises(BackendError, match=r"ExampleDevice / bad: the kernel raised .*oops"):
        failed.wait()
    assert good.wait(10)


def test_a_hanging_command_is_stopped_and_later_ones_are_left_out() -> None:
    device = Device(faults="hang:1")
    hanging = device.queue.submit(Command("hangs", nothing, OUTPUT))
    seen: list[int] = []
    waiting = device.queue.submit(Command("waits", lambda: iter([seen.append(1)]), OUTPUT))
    assert not hanging.wait(0.01)
    waiting.cancel()
    with pytest.raises(ExecutionCancelledError):
        waiting.wait(10)  # while the other one still hangs
    hanging.cancel()
    with pytest.raises(ExecutionCancelledError):
        hanging.wait(10)
    assert device.queue.submit(Command("next", nothing, OUTPUT)).wait(10)
    assert seen == []


def test_a_cancellation_stops_a_command_after_another_one() -> None:
    device = Device(faults="hang:1")
    cancellation = Cancellation()
    hanging = device.queue.submit(Command("hangs", nothing, OUTPUT))
    waiting = device.queue.submit(Command("waits", nothing, OUTPUT, cancellation))
    threading.Timer(0.02, cancellation.cancel).start()
    with pytest.raises(ExecutionCancelledError):
        waiting.wait(10)
    device.close()
    with pytest.raises(ExecutionCancelledError):
        hanging.wait(10)


def test_faults_come_when_their_turn_is() -> None:
    faults = Faults("fail:2, wrong")
    assert [faults.take("fail") for _ in range(4)] == [False, True, False, False]
    assert [faults.take("wrong") for _ in range(3)] == [True, True, True]
    faults.clear()
    assert not faults.take("wrong")


@pytest.mark.parametrize("text", ["explode", "fail:0", "fail:x", "fail:-1"])
def test_an_unknown_fault_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="the device has no such fault"):
        Faults(text)


def test_the_thread_of_an_unclosed_device_ends() -> None:
    device = Device()
    assert device.queue.submit(Command("one", nothing, OUTPUT)).wait(10)
    until = time.monotonic() + 10
    while any(thread.name == "ExampleDevice" for thread in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.05)
