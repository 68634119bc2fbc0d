"""Rules about a backend's identity and the objects that it makes."""

from __future__ import annotations

import time

from armpy.backend import NO_OPTIONS, NetworkResources, PreparationRequest
from armpy.execution import Runtime
from armpy.execution.steps.backend_profiling import BackendProfiling
from armpy.profiling import Profiler
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract.case import check
from armpy_conformance.contract.networks import sample_bench, samples

_REPEATS = 20

_MANY = 40
"""Networks that are loaded together."""

_TIMED = 20
"""Executions of which the shortest counts, as others are delayed by the machine."""

_MOST_ROUNDS = 40
_BUSY_S = 0.5
_SLOWER_S = 0.0005
_DELAYED_S = 2.0
"""Time in which some execution is not delayed by the machine."""


_REST_S = 1.1
"""Time without executions, after which devices go to sleep."""


def id_is_constant(subject: BackendUnderTest) -> None:
    """Every instance calls itself the same at any time."""
    backend = subject.raw_backend
    ids = [backend.get_id() for _ in range(3)]
    check(
        ids == [subject.backend_id] * 3,
        f"get_id is not constant. Expected {subject.backend_id!r}; got {ids}",
    )
    another = subject.another_instance()
    if another is not None:
        check(
            another.get_id() == subject.backend_id,
            f"another instance calls itself {another.get_id()!r}",
        )


def properties_are_constant(subject: BackendUnderTest) -> None:
    """Properties that the core reads once do not change."""
    backend = subject.raw_backend
    for name in (
        "version",
        "extensions",
        "supported_extensions",
        "options",
    ):
        first, second = getattr(backend, name), getattr(backend, name)
        check(first == second, f"{name} is not constant: {first!r}, then {second!r}")
    for name in ("get_api_version", "get_devices"):
        first, second = getattr(backend, name)(), getattr(backend, name)()
        check(first == second, f"{name} is not constant: {first!r}, then {second!r}")
    first_capabilities, second_capabilities = backend.get_capabilities(), backend.get_capabilities()
    check(
        dict(first_capabilities) == dict(second_capabilities),
        f"capabilities are not constant: {first_capabilities}, then {second_capabilities}",
    )


def objects_can_be_made_again(subject: BackendUnderTest) -> None:
    """A backend is a factory: each call makes a new object, the second one too."""
    backend = subject.backend  # checks the types of what comes back
    for _ in range(2):
        manager = backend.create_memory_manager()
        backend.create_workload_factory(NetworkResources(manager))
        backend.get_layer_support(PreparationRequest())
        profiling = BackendProfiling(Profiler(), backend.get_id())
        backend.create_backend_profiling_context(NO_OPTIONS, profiling)


def load_and_unload_again_and_again(subject: BackendUnderTest) -> None:
    """Loading for the twentieth time is like the first time."""
    for case in samples(subject):
        bench = sample_bench(subject, case)
        for number in range(_REPEATS):
            network_id = subject.runtime.load_network(bench.graph)
            bench.run(subject.runtime, network_id, f"loaded {number + 1} times")
            subject.runtime.unload_network(network_id)


def several_networks_at_once(subject: BackendUnderTest) -> None:
    """Networks do not know of each other; one goes, the others stay."""
    runtime = subject.runtime
    benches = [sample_bench(subject, case) for case in samples(subject)] * 2
    loaded = [(bench, runtime.load_network(bench.graph)) for bench in benches]
    for bench, network_id in loaded:
        bench.run(runtime, network_id, "with several networks loaded")
    while loaded:
        _, gone = loaded.pop(0)
        runtime.unload_network(gone)
        for bench, network_id in loaded:
            bench.run(runtime, network_id, "after another network was unloaded")


def many_networks_at_once(subject: BackendUnderTest) -> None:
    """More networks than a small table has places for are right as long as they are loaded."""
    bench = sample_bench(subject, samples(subject)[0])
    network_ids = [subject.runtime.load_network(bench.graph) for _ in range(_MANY)]
    for network_id in network_ids:
        bench.run(subject.runtime, network_id, f"with {_MANY} networks loaded")
    for network_id in network_ids:
        subject.runtime.unload_network(network_id)


def executions_after_a_rest_are_right(subject: BackendUnderTest) -> None:
    """A loaded network gives the same answers after a second without executions."""
    loaded = []
    for case in samples(subject):
        bench = sample_bench(subject, case)
        loaded.append((bench, subject.runtime.load_network(bench.graph)))
    for rest_s in (0.0, _REST_S):
        time.sleep(rest_s)
        for bench, network_id in loaded:
            bench.run(subject.runtime, network_id, f"after a rest of {rest_s} s")
    for _, network_id in loaded:
        subject.runtime.unload_network(network_id)


def several_runtimes(subject: BackendUnderTest) -> None:
    """A backend serves several runtimes, and still does when one has gone."""
    bench = sample_bench(subject, samples(subject)[0])
    first, second = Runtime(subject.options), Runtime(subject.options)
    first_id, second_id = first.load_network(bench.graph), second.load_network(bench.graph)
    bench.run(first, first_id, "with two runtimes")
    first.unload_network(first_id)
    del first
    bench.run(second, second_id, "after another runtime has gone")
    second.unload_network(second_id)


def executions_stay_as_fast(subject: BackendUnderTest) -> None:
    """After hundreds of executions one takes as long as before them."""
    bench = sample_bench(subject, samples(subject)[0])
    runtime, feeds = subject.runtime, dict(bench.feeds)
    network_id = runtime.load_network(bench.graph)

    def least_s() -> float:
        """The shortest of some executions."""
        durations = []
        for _ in range(_TIMED):
            started = time.perf_counter()
            runtime.enqueue_workload(network_id, feeds)
            durations.append(time.perf_counter() - started)
        return min(durations)

    least_s()
    first_s = last_s = least_s()
    end_s = time.perf_counter() + _BUSY_S
    for _ in range(_MOST_ROUNDS):
        last_s = least_s()
        if time.perf_counter() > end_s:
            break
    most_s = 2 * first_s + _SLOWER_S
    end_s = time.perf_counter() + _DELAYED_S
    last_s = min(last_s, least_s())
    while last_s > most_s and time.perf_counter() < end_s:
        last_s = min(last_s, least_s())
    runtime.unload_network(network_id)
    check(
        last_s <= most_s,
        f"executions of {bench.operations} take {last_s * 1e6:.0f} us in the end, and "
        f"{first_s * 1e6:.0f} us at first: each looks at all before it",
    )
