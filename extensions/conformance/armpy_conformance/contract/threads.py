"""Rules about several threads: each has inputs of its own, so that answers differ."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.execution import Runtime
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case
from armpy_conformance.contract.case import NothingToKeepError, ViolationError
from armpy_conformance.contract.demanding import enlarged, enlarged_bytes, is_taken
from armpy_conformance.contract.every_operation import one_of_each, unlike_benches
from armpy_conformance.contract.loops import flow_feeds, taken_cases
from armpy_conformance.contract.networks import (
    Bench,
    chain,
    sample_bench,
    samples,
    with_constants,
)
from armpy_conformance.contract.soak import ticking
from armpy_conformance.differential_run import is_value

_THREADS = 4
_MANY_THREADS = 32
_FEW_RUNS = 4
_RUNS_PER_THREAD = 16
_RUNS_PER_OPERATION = 16
_SWITCH_INTERVAL_S = 1e-6
_MOST_FLOWS = 3
_LAYERS = 4

_LARGE_BYTES = 1 << 20
_LEAST_S = 0.008
"""Executions that are shorter need not let others go on."""

_TICK_S = 0.001
_TRIES = 6
"""Executions during all of which others must have stood still, as they did not right afterwards."""

_STILL_S = 2.0
"""Time after which others count as standing still on a machine that keeps them waiting as well."""


@contextmanager
def hurried() -> Iterator[None]:
    """Let threads take turns as often as the interpreter can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


@dataclass(frozen=True, slots=True)
class _SharedNetwork:
    """A network with inputs and answers for each thread."""

    benches: tuple[Bench, ...]  # all of one graph

    def of(self, thread: int) -> Bench:
        return self.benches[thread % len(self.benches)]


def _shared(
    subject: BackendUnderTest, graph: Graph, feeds: Sequence[Mapping[str, Array]]
) -> _SharedNetwork:
    """A network that each thread executes with inputs of its own, with CpuRef's answers."""
    inputs = [_turned(graph, feeds[k % len(feeds)], k // len(feeds)) for k in range(_THREADS)]
    try:
        expected = subject.expected_each(graph, inputs)
    except ArmpyError:  # other elements mean nothing to the operation
        inputs = [dict(feed) for feed in feeds]
        expected = subject.expected_each(graph, inputs)
    return _SharedNetwork(tuple(Bench(graph, *pair) for pair in zip(inputs, expected, strict=True)))


def _turned(graph: Graph, feeds: Mapping[str, Array], times: int) -> dict[str, Array]:
    """Inputs with their elements moved on, and so in other places; numbers of places stay."""
    infos = {value.name: value.info for value in graph.inputs}
    return {
        name: np.roll(array.reshape(-1), times * max(1, array.size // _THREADS)).reshape(
            array.shape
        )
        if is_value(infos[name].data_type)
        else array
        for name, array in feeds.items()
    }


def _chained(subject: BackendUnderTest, num_layers: int = _LAYERS) -> Bench:
    """A chain of layers, of which a compiler makes one."""
    builder = chain(subject)
    value = builder.source
    for _ in range(num_layers):
        value = builder.layer(value)
    builder.net.output("y", value)
    return builder.bench(subject)


def _flows(subject: BackendUnderTest) -> list[Case]:
    """A few cases of control flow that the backend takes, of If and of While."""
    flows = list(taken_cases(subject))
    kinds = [[c for c in flows if c.operation.name == name] for name in ("If", "While")]
    carrying = [c for kind in kinds for c in kind if c.id.endswith(("nested/float32", _READS))]
    return (carrying or flows)[:_MOST_FLOWS]


_READS = "each-reads-the-other/float32"


def _networks(subject: BackendUnderTest) -> Iterator[_SharedNetwork]:
    """Single layers, a chain, and the control flow that the backend takes."""
    for case in samples(subject):
        single = sample_bench(subject, case)
        yield _shared(subject, single.graph, [single.feeds])
    for pair in with_constants(subject)[:1]:
        for case in pair:
            yield _shared(subject, case.graph(), [case.feeds()])
    if any(_can_be_chained(subject)):
        chained = _chained(subject)
        yield _shared(subject, chained.graph, [chained.feeds])
    for case in _flows(subject):
        yield _shared(subject, case.graph(), flow_feeds(case))


def _can_be_chained(subject: BackendUnderTest) -> Iterator[bool]:
    """Return whether some sample gives what it takes."""
    for case in samples(subject):
        infos = [i.info for i in case.inputs if i is not None and not i.is_constant]
        yield len(case.outputs) == 1 and case.outputs[0] in infos


def threads_share_a_network(subject: BackendUnderTest) -> None:
    """Executions of one network side by side, with different inputs, give each its own answers."""
    runtime = subject.runtime
    for shared in _networks(subject):
        network_id = runtime.load_network(shared.of(0).graph)

        def work(
            thread: int, shared: _SharedNetwork = shared, network_id: int = network_id
        ) -> None:
            for _ in range(_RUNS_PER_THREAD):
                shared.of(thread).run(runtime, network_id, f"run by {_THREADS} threads")

        in_threads(work)
        runtime.unload_network(network_id)


def threads_mix_networks_and_executions(subject: BackendUnderTest) -> None:
    """Several networks, executed by several threads in different orders, do not meet."""
    with Runtime(subject.options) as runtime:
        networks = list(_networks(subject))
        loaded = [(shared, runtime.load_network(shared.of(0).graph)) for shared in networks]

        def work(thread: int) -> None:
            for number in range(_RUNS_PER_THREAD):
                order = itertools.islice(itertools.cycle(loaded), thread, thread + len(loaded))
                for shared, network_id in order:
                    when = f"run by {_THREADS} threads among {len(loaded)} networks"
                    shared.of(thread + number).run(runtime, network_id, when)

        in_threads(work)


def threads_race_every_operation(subject: BackendUnderTest) -> None:
    """Each operation that the backend takes is right in several threads with unlike inputs."""
    runtime = subject.runtime
    for case in one_of_each(subject):
        benches = unlike_benches(subject, case)
        if benches is None:
            continue
        shared = _SharedNetwork(benches)
        network_id = runtime.load_network(benches[0].graph)

        def work(
            thread: int, shared: _SharedNetwork = shared, network_id: int = network_id
        ) -> None:
            for _ in range(_RUNS_PER_OPERATION):
                shared.of(thread).run(runtime, network_id, f"run by {_THREADS} threads")

        in_threads(work)
        runtime.unload_network(network_id)


def threads_load_networks(subject: BackendUnderTest) -> None:
    """Several threads load, run and unload networks of their own: equal ones, and unlike ones."""
    runtime = subject.runtime
    single = sample_bench(subject, samples(subject)[0])
    groups = [[single] * _THREADS]
    if any(_can_be_chained(subject)):
        groups.append([_chained(subject, 1 + number) for number in range(_THREADS)])
    for benches in groups:

        def work(number: int, benches: Sequence[Bench] = benches) -> None:
            own = benches[number]
            network_id = runtime.load_network(own.graph)
            own.run(runtime, network_id, "loaded by several threads")
            runtime.unload_network(network_id)

        in_threads(work)


def many_threads_share_a_network(subject: BackendUnderTest) -> None:
    """Executions of one network by as many threads as servers have, with different inputs."""
    runtime = subject.runtime
    single = sample_bench(subject, samples(subject)[0])
    shared = _shared(subject, single.graph, [single.feeds])
    network_id = runtime.load_network(single.graph)

    def work(thread: int) -> None:
        for _ in range(_FEW_RUNS):
            shared.of(thread).run(runtime, network_id, f"run by {_MANY_THREADS} threads")

    in_threads(work, _MANY_THREADS)
    runtime.unload_network(network_id)


def other_threads_go_on(subject: BackendUnderTest) -> None:
    """An execution that takes milliseconds lets other threads of the interpreter go on."""
    has_any = False
    for case in samples(subject):
        once = enlarged_bytes(case, 1)
        with suppress(ArmpyError):  # the operation or the backend refuses larger inputs
            larger = enlarged(case, -(-_LARGE_BYTES // once)) if once else case
            if is_taken(subject, larger):
                has_any |= _check_others(subject, larger)
    if not has_any:
        raise NothingToKeepError("its executions take less than some milliseconds")


def _check_others(subject: BackendUnderTest, case: Case) -> bool:
    """Check that another thread is awake during executions; whether these take long enough."""
    runtime, feeds = subject.runtime, case.feeds()
    network_id = runtime.load_network(case.graph())
    runtime.enqueue_workload(network_id, feeds)  # the first one may prepare something
    num_still, end_s = 0, time.perf_counter() + _STILL_S
    try:
        while num_still < _TRIES:
            with ticking(_TICK_S) as ticks:
                started = time.perf_counter()
                runtime.enqueue_workload(network_id, feeds)
                ended = time.perf_counter()
                time.sleep(_LEAST_S)
                rested = time.perf_counter()
            if ended - started < _LEAST_S:
                return False
            if _is_awake(ticks, started, ended):
                return True
            # A busy machine keeps other threads waiting during the rest, too.
            num_still += _is_awake(ticks, ended, rested) or ended > end_s
    finally:
        runtime.unload_network(network_id)
    raise ViolationError(
        f"other threads of the interpreter stand still while {case.operation.name} is executed, "
        f"for {(ended - started) * 1e3:.0f} ms. Release its lock in native code"
    )


def _is_awake(ticks: Sequence[float], started: float, ended: float) -> bool:
    """Return whether another thread was awake in the midst of some time."""
    return any(started + _TICK_S < tick < ended - _TICK_S for tick in ticks)


def in_threads(work: Callable[[int], None], num_threads: int = _THREADS) -> None:
    """Run the same in several threads at once; the first thing raised is raised here.

    Parameters
    ----------
    work : callable
        Is given the number of its thread.
    num_threads : int
        Number of threads.
    """
    raised: list[Exception] = []
    barrier = threading.Barrier(num_threads)

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
            raised.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(num_threads)]
    with hurried():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if raised:
        raise raised[0]
