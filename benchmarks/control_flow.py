"""Measures control flow: microseconds per turn of loops and per choice, and recurrent models.

The turns run on CpuRef, where the core executes control flow, and on NumbaAcc, whose programs have
the loops in them. Models (LSTMs written as loops, and files given) run on NumbaAcc and on LiteRT,
one thread each, in turns; the ratio is the median of the pairs'.

Usage::

    python -m benchmarks.control_flow [--turns N] [MODEL.tflite...] [--pairs N]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from armpy.core.turns import take_turns
from armpy.errors import BackendUnavailableError
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
from benchmarks.peers import ENGINES, example_inputs
from tests.support.tflite_recurrent import Lstm

LSTMS = {
    "LSTM, last step of 40": Lstm(40, 32, 48, gives_sequences=False),
    "LSTM, all of 40 steps": Lstm(40, 32, 48, gives_sequences=True),
    "LSTM, all of 1000 steps": Lstm(1000, 64, 128, gives_sequences=True),
}

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


def compare(name: str, path: Path, num_pairs: int) -> None:
    """Print the time of a model and its ratio to LiteRT's."""
    inputs = example_inputs(path)
    try:
        turns = {each: ENGINES[each](path, inputs, 1).turn() for each in ("armpy", "LiteRT")}
    except BackendUnavailableError as error:
        print(f"{name}: {error}")
        return
    take_turns(turns, 0.0, least=3)
    ours, theirs = take_turns(turns, 0.0, least=num_pairs).values()
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    ours_us, theirs_us = (1e6 * statistics.median(times) for times in (ours, theirs))
    print(f"{name}: {ours_us:.1f} us, LiteRT {theirs_us:.1f} us, ratio {ratio:.2f}")


def main() -> None:
    """Print one line per kind of loop, and per model."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--pairs", type=int, default=100)
    arguments = parser.parse_args()
    keep_to_cores(1)
    print_turns(arguments.turns)
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, lstm) in enumerate(LSTMS.items()):
            path = Path(folder, f"{number}.tflite")
            path.write_bytes(lstm.model())
            compare(name, path, arguments.pairs)
    for path in arguments.models:
        compare(path.stem, path, arguments.pairs)


def print_turns(turns: int) -> None:
    """Print one line per kind of loop and backend."""
    for name, body, infos, num_turns in (
        ("counting", _counting, [COUNTER], turns),
        ("with a choice", _choosing, [COUNTER], turns),
        ("growing (a plan per turn)", _growing, [COUNTER, VECTOR], max(1, turns // 100)),
    ):
        for backends in (["CpuRef"], ["NumbaAcc", "CpuRef"]):
            duration_us = microseconds_per_turn(backends, body, infos, num_turns)
            print(f"{name}, {backends[0]}: {duration_us:.2f} us per turn over {num_turns} turns")


if __name__ == "__main__":
    main()
