"""Measures what a backend in C costs beside its own work: calls, questions, and weights.

The library is that of ``armpy new-backend --style c``, built with the C compiler ``cc``; the
package armpy-native has to be installed.

Usage::

    python -m benchmarks.c_interface [--json FILE]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from armpy_native import NativeBackend, open_library

from armpy import Network, TensorInfo
from armpy.backend import PreparationRequest
from armpy.graph import Graph, SubgraphView
from armpy.ops import BinaryOperation, ElementwiseBinary, FullyConnected
from armpy.types import DataType
from armpy_conformance.cli.new_backend.work import BackendName, write_project
from benchmarks.common import description, keep_to_cores, write_json


def build(folder: Path) -> NativeBackend:
    """The backend of a new project."""
    write_project(BackendName("acme", "npu"), "c", folder)
    (source,) = folder.glob("src/*/library.c")
    library = folder / "library.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return open_library(str(library))()


def addition(size: int) -> Graph:
    """``y = x + x``."""
    net = Network("addition")
    x = net.input("x", TensorInfo((size,), DataType.FLOAT32))
    net.output("y", net.add(ElementwiseBinary(BinaryOperation.ADD), x, x))
    return net.build()


def dense(size: int) -> Graph:
    """A fully connected layer with 4 * size * size bytes of weights."""
    net = Network("dense")
    x = net.input("x", TensorInfo((1, size), DataType.FLOAT32))
    net.output("y", net.add(FullyConnected(), x, net.constant(np.ones((size, size), np.float32))))
    return net.build()


def call_us(backend: NativeBackend) -> float:
    """Microseconds of a bound execution that computes next to nothing."""
    graph = addition(4)
    engine = backend.get_engine()
    program = engine.compile(
        backend.convert(SubgraphView.of(graph, graph.layers)), engine.describe({})
    )
    execute = program.bind([np.ones(4, np.float32)], [np.empty(4, np.float32)])
    times = []
    for _ in range(50):
        began_s = time.perf_counter()
        for _ in range(1000):
            execute()
        times.append((time.perf_counter() - began_s) * 1000)
    return statistics.median(times)


def additions(count: int) -> Graph:
    """A network of additions, each of another size."""
    net = Network("additions")
    for size in range(1, count + 1):
        x = net.input(f"x_{size}", TensorInfo((size,), DataType.FLOAT32))
        net.output(f"y_{size}", net.add(ElementwiseBinary(BinaryOperation.ADD), x, x))
    return net.build()


def questions_ms(backend: NativeBackend, count: int = 1000, rounds: int = 20) -> float:
    """Milliseconds of one question about all layers of a network: the best of some rounds."""
    layers = additions(count).layers
    support = backend.get_layer_support(PreparationRequest())
    times = []
    for _ in range(rounds):
        began_s = time.perf_counter()
        assert all(support.are_layers_supported(layers))
        times.append((time.perf_counter() - began_s) * 1000)
    return min(times)


def single_questions_ms(backend: NativeBackend, count: int = 1000) -> tuple[float, float]:
    """Milliseconds of so many questions about single layers, new ones and known ones."""
    graphs = [addition(size) for size in range(1, count + 1)]
    times = []
    for _ in range(2):
        support = backend.get_layer_support(PreparationRequest())
        began_s = time.perf_counter()
        for graph in graphs:
            (layer,) = graph.layers
            assert support.is_layer_supported(
                layer.operation, layer.input_infos, layer.output_infos
            )
        times.append((time.perf_counter() - began_s) * 1000)
    return times[0], times[1]


def weight_copies(backend: NativeBackend, size: int = 2048) -> float:
    """Most bytes that compiling takes, in multiples of the weights."""
    graph = dense(size)
    view = SubgraphView.of(graph, graph.layers)
    tracemalloc.start()
    views = backend.optimize_subgraph_view(view, PreparationRequest())
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del views
    return peak_bytes / (4 * size * size)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    keep_to_cores(1)
    with tempfile.TemporaryDirectory() as folder:
        backend = build(Path(folder) / "project")
        new_ms, known_ms = single_questions_ms(backend)
        figures = {
            "call_us": call_us(backend),
            "1000_questions_in_a_network_ms": questions_ms(backend),
            "1000_single_new_questions_ms": new_ms,
            "1000_single_known_questions_ms": known_ms,
            "copies_of_weights": weight_copies(backend),
        }
    for name, value in figures.items():
        print(f"{name:32} {value:.4g}")
    write_json(arguments.json, figures)


if __name__ == "__main__":
    main()
