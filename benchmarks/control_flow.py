"""Measures control flow of the core: microseconds per turn of loops and per choice.

The turns run on CpuRef, where the core executes control flow, and on NumbaAcc, whose programs have
the loops in them. `benchmarks.loops` compares loops of model files with other engines.

Usage::

    python -m benchmarks.control_flow [--turns N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    Concat,
    ElementwiseBinary,
    If,
    While,
)
from armpy.tensor import TensorInfo
from armpy.types import DataType
from benchmarks.common import description, keep_to_cores

COUNTER = TensorInfo((1,), DataType.SIGNED32)
VECTOR = TensorInfo((None,), DataType.FLOAT32)
ADD = ElementwiseBinary(BinaryOperation.ADD)
LESS = Comparison(ComparisonOperation.LESS)


def _graph(infos: list[TensorInfo], build: Callable[..., list[Value]]) -> Graph:
    """A graph whose inputs a function takes and whose outputs it returns."""
    net = Network()
    values = [net.input(f"in{i}", info) for i, info in enumerate(infos)]
    for index, value in enumerate(build(net, *values)):
        net.output(f"out{index}", value)
    return net.build()


def _counting(net: Network, counter: Value, *others: Value) -> list[Value]:
    """The counter and one."""
    return [net.add(ADD, counter, net.constant(np.array([1], np.int32)))]


def _growing(net: Network, counter: Value, vector: Value) -> list[Value]:
    """The counter and one; the vector with one element more."""
    element = net.constant(np.array([1], np.float32))
    return [*_counting(net, counter), net.add(Concat(0), vector, element)]


def _choosing(net: Network, counter: Value) -> list[Value]:
    """The counter and one, by a choice between two graphs that do the same."""
    branch = _graph([COUNTER], _counting)
    return [net.add(If(branch, branch), net.constant(np.array([True])), counter)]


def microseconds_per_turn(
    backends: Sequence[str],
    body: Callable[..., list[Value]],
    infos: list[TensorInfo],
    num_turns: int,
) -> float:
    """Time of one turn of ``while in0 < num_turns``."""

    def is_below(net: Network, counter: Value, *others: Value) -> list[Value]:
        return [net.add(LESS, counter, net.constant(np.array([num_turns], np.int32)))]

    loop = While(_graph(infos, is_below), _graph(infos, body))
    graph = _graph(infos, lambda net, *values: list(net.add_layer(loop, values).outputs))
    runtime = Runtime(RuntimeOptions(backends=backends, loop_timeout_s=None))
    with Model(graph, runtime) as model:
        inputs = [np.zeros(1, info.data_type.dtype) for info in infos]
        started = time.perf_counter()
        model(*inputs)
        return 1e6 * (time.perf_counter() - started) / num_turns


def main() -> None:
    """Print one line per kind of loop and backend."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("--turns", type=int, default=100_000)
    turns = parser.parse_args().turns
    keep_to_cores(1)
    for name, body, infos, num_turns in (
        ("counting", _counting, [COUNTER], turns),
        ("with a choice", _choosing, [COUNTER], turns),
        ("growing (a program per turn)", _growing, [COUNTER, VECTOR], max(1, turns // 100)),
    ):
        for backends in (["CpuRef"], ["NumbaAcc", "CpuRef"]):
            duration_us = microseconds_per_turn(backends, body, infos, num_turns)
            print(f"{name}, {backends[0]}: {duration_us:.2f} us per turn over {num_turns} turns")


if __name__ == "__main__":
    main()
