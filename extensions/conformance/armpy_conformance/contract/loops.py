"""Rules about backends that take control flow themselves: state, and how long loops may take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np

from armpy.compiler import specialize
from armpy.errors import ExecutionTimeoutError
from armpy.execution import Runtime
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case
from armpy_conformance.cases.control_flow import (
    COUNT,
    FLAG,
    add_all,
    binary,
    choice,
    control_flow_cases,
    loop,
)
from armpy_conformance.contract.case import NothingToKeepError, ViolationError
from armpy_conformance.contract.networks import Bench

_STATE = TensorInfo((2, 3), DataType.FLOAT32)
_LONG_S, _LIMIT_S, _LATE_S = 1.0, 0.1, 0.6
"""What a loop takes that is to be stopped, after how long, and when that is too late."""

_FEW_TURNS, _MOST_TURNS = 200, 2**30
_TRIES = 3
"""Executions of a loop, of which one has to end, or to be stopped, in time."""


def is_taken(subject: BackendUnderTest, graph: Graph) -> bool:
    """Return whether the backend supports every layer of a network and of its graphs."""
    return subject.takes(specialize(graph))


def taken_cases(subject: BackendUnderTest) -> Iterator[Case]:
    """Cases of control flow in floats that the backend takes."""
    for case in control_flow_cases():
        if case.id.endswith("/float32") and is_taken(subject, case.graph()):
            yield case


@cache
def _with_state() -> tuple[Graph, ...]:
    """Networks whose variables go through a loop, and through a choice."""
    graphs = []
    turns = loop((COUNT, _STATE), lambda net, _, x: (binary(net, x, x),), 2)
    net = Network("state-in-a-loop")
    state = net.variable("state", _STATE, np.ones((2, 3), np.float32))
    count = net.input("count", COUNT)
    _, grown = add_all(net, turns, count, state)
    net.assign(state, grown)
    net.output("y", binary(net, grown, net.input("x", _STATE)))
    graphs.append(net.build())
    either = choice((_STATE, _STATE), lambda net, x, y: (binary(net, x, y),), lambda _, x, __: (x,))
    net = Network("state-in-a-choice")
    state = net.variable("state", _STATE, np.ones((2, 3), np.float32))
    (next_state,) = add_all(net, either, net.input("flag", FLAG), state, net.input("x", _STATE))
    net.assign(state, next_state)
    net.output("y", binary(net, next_state, next_state))
    graphs.append(net.build())
    return tuple(graphs)


def state_goes_through_loops_and_choices(subject: BackendUnderTest) -> None:
    """A variable changed by a loop or a choice keeps its value for the next execution."""
    graphs = [graph for graph in _with_state() if is_taken(subject, graph)]
    if not graphs:
        raise NothingToKeepError("it takes no control flow")
    for graph in graphs:
        feeds = [_feeds(graph, turn) for turn in (0, 1, 1, 0)]
        network_id = subject.runtime.load_network(graph)
        expected = subject.expected_each(graph, feeds)
        for number, (inputs, right) in enumerate(zip(feeds, expected, strict=True)):
            when = f"in execution {number + 1} of a network with state"
            Bench(graph, inputs, right).run(subject.runtime, network_id, when)
        subject.runtime.unload_network(network_id)


def _feeds(graph: Graph, turn: int) -> Mapping[str, Array]:
    """Inputs of a network with state, by which it takes the one way or the other."""
    feeds: dict[str, Array] = {}
    for value in graph.inputs:
        shape, dtype = value.info.known_shape, value.info.data_type.dtype
        feeds[value.name] = np.full(shape, turn, dtype)
    return feeds


def loops_stop_at_their_time_out(subject: BackendUnderTest) -> None:
    """A loop that goes on when its time is up raises an ExecutionTimeoutError, and soon."""
    number = TensorInfo((1,), DataType.SIGNED32)
    turns = loop((COUNT, number, COUNT), lambda net, i, x, _: (binary(net, x, i),))
    net = Network("long")
    operands = [net.input(name, COUNT) for name in ("count", "x", "end")]
    net.output("y", add_all(net, turns, *operands)[1])
    graph = net.build()
    if not is_taken(subject, graph):
        raise NothingToKeepError("it takes no loops")
    patient = Runtime(replace(subject.options, loop_timeout_s=None))
    network_id = patient.load_network(graph)
    long = _turns_of(patient, network_id)
    patient.unload_network(network_id)
    strict = Runtime(replace(subject.options, loop_timeout_s=_LIMIT_S))
    network_id = strict.load_network(graph)
    for number_of_run in range(2):
        _check_stop(strict, network_id, long)
        feeds = _of_turns(_FEW_TURNS)
        right = subject.expected(graph, feeds)
        when = f"after a loop was stopped {number_of_run + 1} times"
        _run_short(Bench(graph, feeds, right), strict, network_id, when)
    strict.unload_network(network_id)


def _run_short(bench: Bench, runtime: Runtime, network_id: int, when: str) -> None:
    """Execute a loop that ends in time, unless other programs keep the processor for long."""
    for _ in range(_TRIES - 1):
        with suppress(ExecutionTimeoutError):
            bench.run(runtime, network_id, when)
            return
    bench.run(runtime, network_id, when)


def _of_turns(count: int) -> dict[str, Array]:
    """Inputs for so many turns."""
    return {n: np.array([v], np.int32) for n, v in (("count", 0), ("x", 3), ("end", count))}


def _turns_of(runtime: Runtime, network_id: int) -> int:
    """Return how many turns take longer than a loop is given."""
    count = _FEW_TURNS
    while True:
        # The shorter of two runs, as a machine with other things to do delays one.
        duration_s = min(_timed(runtime, network_id, count) for _ in range(2))
        if duration_s >= _LIMIT_S / 2 or count >= _MOST_TURNS:
            return min(int(count * _LONG_S / duration_s), 2**31 - 2)
        count = min(count * int(min(max(_LIMIT_S / max(duration_s, 1e-6), 2), 64)), _MOST_TURNS)


def _timed(runtime: Runtime, network_id: int, count: int) -> float:
    """Seconds of a loop of so many turns."""
    started = time.perf_counter()
    runtime.enqueue_workload(network_id, _of_turns(count))
    return time.perf_counter() - started


def _check_stop(runtime: Runtime, network_id: int, count: int) -> None:
    """Check that a loop of many turns is stopped, once in time: other load can only delay it."""
    for _ in range(_TRIES):
        started = time.perf_counter()
        try:
            duration_s = _timed(runtime, network_id, count)
        except ExecutionTimeoutError:
            duration_s = time.perf_counter() - started
            if duration_s <= _LATE_S:
                return
        else:
            raise ViolationError(
                f"a loop with a time-out of {_LIMIT_S} s ran for {duration_s:.2f} s to its end. "
                "Ask control_flow_time_left_s while it runs"
            )
    raise ViolationError(
        f"a loop with a time-out of {_LIMIT_S} s is stopped after {duration_s:.2f} s"
    )


def flow_feeds(case: Case) -> Sequence[Mapping[str, Array]]:
    """The inputs of both executions of a case of control flow."""
    again = case.feeds_again()
    return [case.feeds(), *([] if again is None else [again])]
