from __future__ import annotations

import json
import threading

import numpy as np
import pytest
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.cost_model.figures import ZEN4, typical
from armpy_numba_acc.machine.isa import make_isa
from armpy_numba_acc.machine.work import WorkKind
from armpy_numba_acc.program.program import CommandInfo
from armpy_numba_acc.runtime.profiling import NumbaProfilingContext, Recorder, recorder_of
from armpy_numba_acc.runtime.roofline import roofline_us

from armpy.backend import NetworkResources
from armpy.execution import Runtime
from armpy.profiling import Profiler, to_chrome_trace
from armpy_tools.benchmark.layers import layer_costs

from .networks import convolutions, image, runtime_of, small


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


def test_commands_report_operations_bytes_and_the_least_time() -> None:
    with runtime_of(1, profiling=True) as runtime:
        network = runtime.load_network(convolutions(size=16, channels=8, num_layers=1))
        runtime.enqueue_workload(network, image(16, 8))
        events = profiler_of(runtime, network).events
        costs = layer_costs([profiler_of(runtime, network).summary().layers])
    assert {cost.limit for cost in costs} <= {"compute", "memory", "overhead"}
    (product,) = [event for event in events if event.details.get("operations", 0) > 2 * 16**2 * 8]
    assert product.details["operations"] == 2 * 16 * 16 * 8 * 8 * 15
    assert product.details["bytes"] >= 4 * (2 * 16 * 16 * 8 + 8 * 8 * 15)
    limits = product.details["compute_us"], product.details["memory_us"]
    assert product.details["roofline_us"] == max(limits) > 0
    assert min(limits) > 0


def test_profiles_of_several_networks_are_apart() -> None:
    with runtime_of(1, profiling=True) as runtime:
        first = runtime.load_network(convolutions(num_layers=1))
        second = runtime.load_network(small())
        runtime.enqueue_workload(second, {"x": np.ones((1, 8), np.float32)})
        assert profiler_of(runtime, first).events == ()
        assert any(event.details for event in profiler_of(runtime, second).events)


def test_networks_without_a_profile_are_not_measured() -> None:
    assert recorder_of(NetworkResources()) is None
    with runtime_of(1) as runtime:
        network = runtime.load_network(small())
        assert runtime.get_profiler(network) is None


def test_a_network_is_measured_by_what_was_made_for_it_in_whatever_thread() -> None:
    contexts = [NumbaProfilingContext(), NumbaProfilingContext()]
    resources = [NetworkResources(profiling_context=context) for context in contexts]
    recorders: list[Recorder | None] = []
    thread = threading.Thread(target=lambda: recorders.append(recorder_of(resources[0])))
    thread.start()
    thread.join()
    assert recorders == [contexts[0].recorder]
    assert recorder_of(resources[1]) is contexts[1].recorder


def test_commands_report_the_layers_that_they_compute() -> None:
    with runtime_of(1, profiling=True) as runtime:
        graph = convolutions(num_layers=2).build()
        network = runtime.load_network(graph)
        runtime.enqueue_workload(network, image())
        events = profiler_of(runtime, network).events
    commands = [event for event in events if event.details]
    names = {layer.name for layer in graph.layers}
    for event in commands:
        assert event.operation in {layer.operation.name for layer in graph.layers}
        assert set(event.layer.split(" + ")) <= names
        assert event.name.startswith(f"{event.operation} '{event.layer}'")
        assert event.kernel
    assert {name for event in commands for name in event.layer.split(" + ")} == names


def test_a_trace_has_what_is_known_about_commands() -> None:
    with runtime_of(1, profiling=True) as runtime:
        network = runtime.load_network(small())
        runtime.enqueue_workload(network, {"x": np.ones((1, 8), np.float32)})
        trace = json.loads(to_chrome_trace(profiler_of(runtime, network)))["traceEvents"]
    arguments = [event["args"] for event in trace if event.get("cat") == "NumbaAcc"]
    commands = [entry for entry in arguments if "kernel" in entry]
    assert commands
    known = {"operations", "bytes", "roofline_us", "compute_us", "memory_us", "kernel", "phase"}
    assert all(set(command) == known for command in commands)


def test_the_least_time_grows_with_the_work_and_falls_with_threads() -> None:
    for isa in host_isas():
        model = typical(isa)
        for work in (WorkKind.FLOATS, WorkKind.BYTES):
            once = roofline_us(CommandInfo("", "", 0, 10**7, 1, work), isa, 1, model)
            twice = CommandInfo("", "", 0, 2 * 10**7, 1, work)
            assert roofline_us(twice, isa, 1, model) == 2 * once
            assert roofline_us(CommandInfo("", "", 0, 10**7, 1, work), isa, 2, model) == once / 2
        copied = roofline_us(CommandInfo("", "copy", 1 << 20, 0), isa, 1, model)
        assert roofline_us(CommandInfo("", "copy", 1 << 19, 0), isa, 1, model) < 4 * copied


def test_the_least_time_of_16_bit_products_is_half_of_float32() -> None:
    """By hand: Zen 4's pmaddwd takes the time of its float32 product and does two a lane."""
    isa = make_isa("avx2", "x86_64-pc-linux-gnu", "generic", frozenset({"avx2", "fma"}))
    floats, pairs = (
        roofline_us(CommandInfo("", "", 0, 3_200_000, 1, work), isa, 1, ZEN4)
        for work in (WorkKind.FLOATS, WorkKind.PAIRS)
    )
    assert floats == pytest.approx(100_000 / 3.7 / 1000)
    assert pairs == floats / 2


def test_the_least_time_is_that_of_the_machine() -> None:
    """By hand: Zen 4 multiplies and adds 16 numbers in a cycle of 1 / 3.7 ns."""
    isa = next((isa for isa in host_isas() if isa.vector_bytes == 64), None)
    if isa is None:
        pytest.skip("no registers of 64 bytes")
    products = CommandInfo("", "", 0, 3_200_000, 1, WorkKind.FLOATS)
    assert roofline_us(products, isa, 1, ZEN4) == pytest.approx(100_000 / 3.7 / 1000)
    copy = CommandInfo("", "copy", 100 << 20, 0)
    assert roofline_us(copy, isa, 1, ZEN4) == pytest.approx((100 << 20) / 20 / 1000)
