from __future__ import annotations

import json
import threading

import numpy as np
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.call import Work
from armpy_numba_acc.program.program import CommandInfo
from armpy_numba_acc.runtime.profiling import NumbaProfilingContext, recorder_of_network
from armpy_numba_acc.runtime.roofline import roofline_us

from armpy.profiling import Profiler
from armpy.runtime import Runtime
from backends.numba_acc.tests.networks import convolutions, image, runtime_of, small


def profiler_of(runtime: Runtime, network: int) -> Profiler:
    profiler = runtime.get_profiler(network)
    assert profiler is not None
    return profiler


def test_every_command_is_an_event_within_its_execution() -> None:
    with runtime_of(2, profiling=True) as runtime:
        network = runtime.load_network(convolutions(num_layers=2))
        for _ in range(3):
            runtime.enqueue_workload(network, image())
        events = profiler_of(runtime, network).events
    whole = [event for event in events if event.name == "Execute"]
    commands = [event for event in events if event.details]
    assert len(whole) == 3
    assert len(commands) % 3 == 0
    assert len(commands) >= 6
    for event in commands:
        assert event.thread == threading.get_ident()
        inside = [w for w in whole if w.start_us <= event.start_us <= w.start_us + w.duration_us]
        assert len(inside) == 1
        assert event.duration_us >= 0
    assert sum(e.duration_us for e in commands) <= sum(w.duration_us for w in whole)


def test_commands_tell_operations_bytes_and_the_least_time() -> None:
    with runtime_of(1, profiling=True) as runtime:
        network = runtime.load_network(convolutions(size=16, channels=8, num_layers=1))
        runtime.enqueue_workload(network, image(16, 8))
        events = profiler_of(runtime, network).events
    (product,) = [event for event in events if event.details.get("operations", 0) > 2 * 16**2 * 8]
    assert product.details["operations"] == 2 * 16 * 16 * 8 * 8 * 9
    assert product.details["bytes"] >= 4 * (2 * 16 * 16 * 8 + 8 * 8 * 9)
    assert product.details["roofline_us"] > 0


def test_profiles_of_several_networks_are_apart() -> None:
    with runtime_of(1, profiling=True) as runtime:
        first = runtime.load_network(convolutions(num_layers=1))
        second = runtime.load_network(small())
        runtime.enqueue_workload(second, {"x": np.ones((1, 8), np.float32)})
        assert profiler_of(runtime, first).events == ()
        assert any(event.details for event in profiler_of(runtime, second).events)


def test_networks_without_a_profile_are_not_measured() -> None:
    context = NumbaProfilingContext()
    context.enable_profiling(True)
    assert recorder_of_network() is context.recorder
    assert recorder_of_network() is None
    context.enable_profiling(True)
    context.enable_profiling(False)
    assert recorder_of_network() is None


def test_a_load_that_failed_leaves_nothing_to_measure_with() -> None:
    NumbaProfilingContext().enable_profiling(True)
    assert recorder_of_network() is None


def test_a_trace_has_what_is_known_about_commands() -> None:
    with runtime_of(1, profiling=True) as runtime:
        network = runtime.load_network(small())
        runtime.enqueue_workload(network, {"x": np.ones((1, 8), np.float32)})
        trace = json.loads(profiler_of(runtime, network).to_chrome_trace())["traceEvents"]
    commands = [event for event in trace if "args" in event]
    assert commands
    assert all(set(c["args"]) == {"operations", "bytes", "roofline_us"} for c in commands)


def test_the_least_time_grows_with_the_work_and_falls_with_threads() -> None:
    for isa in host_isas():
        for work in (Work.FLOATS, Work.BYTES):
            once = roofline_us(CommandInfo("", "", 0, 10**7, 1, work), isa, 1)
            assert roofline_us(CommandInfo("", "", 0, 2 * 10**7, 1, work), isa, 1) == 2 * once
            assert roofline_us(CommandInfo("", "", 0, 10**7, 1, work), isa, 2) == once / 2
        copied = roofline_us(CommandInfo("", "copy", 1 << 20, 0), isa, 1)
        assert roofline_us(CommandInfo("", "copy", 1 << 19, 0), isa, 1) < 4 * copied
