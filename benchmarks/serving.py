"""What a server makes of armpy's models: overhead of a request, and throughput beside peers.

``python -m benchmarks.serving triton overhead`` serves a product of 64 by 10 numbers by armpy and
by NumPy in the same server, asked by one client in turns: what counts is the processor time of all
of the server's processes per request.

``python -m benchmarks.serving triton throughput MODEL... [--callers 32]`` serves model files by
armpy and, in the same server, by ONNX Runtime, each with as many instances of one thread as there
are cores. The clients take processor time as well, and as much for either: ratios of requests per
second are nearer to 1 than those of processor time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import armpy
from armpy import DataType, Model, Network, TensorInfo, ops
from armpy.core.turns import take_turns
from benchmarks import serving_triton
from benchmarks.serving_encoder import write_encoder
from extensions.serving.tests.triton.triton_server import TritonServer

ENCODER = "encoder.onnx"
"""Stands for a text encoder with random weights, which is written if there is no such file."""

SERVERS = {"triton": serving_triton}
"""Modules that know a server; each has what `serving_triton` has."""


class Turn(NamedTuple):
    """Figures of one turn."""

    requests: int
    cpu_ms: float
    """Of the server, per request."""

    per_s: float
    p50_ms: float
    p99_ms: float


def product() -> Model:
    """A product of 64 numbers by a matrix."""
    net = Network()
    value = net.input("x", TensorInfo((1, 64), DataType.FLOAT32))
    weights = net.constant(np.full((10, 64), 0.01, np.float32))
    net.output("y", net.add(ops.FullyConnected(), value, weights))
    return Model(net)


def cpu_ms(server: TritonServer) -> float:
    """Processor time of a server's processes so far."""
    ticks = 0
    for process in (server.process.pid, *server.instances()):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks * 1e3 / os.sysconf("SC_CLK_TCK")


def turn(server: TritonServer, seconds: float, ask: Callable[[], list[float]]) -> Turn:
    """One turn of a model."""
    before = cpu_ms(server)
    took = ask()
    spent = cpu_ms(server) - before
    ordered = sorted(took)
    return Turn(
        len(took),
        spent / (len(took) + 1),
        len(took) / seconds,
        statistics.median(ordered),
        ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
    )


def compared(found: Mapping[str, Sequence[Turn]], ours: str, theirs: str) -> None:
    """Print the medians of both, and the medians of their ratios in a round."""
    for name in (ours, theirs):
        turns = found[name]
        medians = [
            statistics.median(getattr(turn, field) for turn in turns) for field in Turn._fields
        ]
        print(
            f"  {name:12} {medians[2]:8.1f}/s  server {medians[1]:7.3f} ms  "
            f"p50 {medians[3]:7.2f} ms  p99 {medians[4]:7.2f} ms"
        )
    pairs = list(zip(found[ours], found[theirs], strict=True))
    per_s = statistics.median(a.per_s / b.per_s for a, b in pairs)
    cpu = statistics.median(a.cpu_ms / b.cpu_ms for a, b in pairs)
    more = statistics.median(a.cpu_ms - b.cpu_ms for a, b in pairs)
    p99 = statistics.median(a.p99_ms / b.p99_ms for a, b in pairs)
    print(
        f"  {ours}/{theirs}: requests {per_s:.2f}, processor time {cpu:.2f} ({more:+.3f} ms), "
        f"p99 {p99:.2f}",
        flush=True,
    )


def random_inputs(model: Model) -> dict[str, Any]:
    """Random inputs."""
    random = np.random.default_rng(3)
    arrays = {}
    for spec in model.inputs:
        dims = [n or 1 for n in spec.shape or ()]
        dtype = spec.data_type.dtype
        drawn = random.normal(size=dims) if dtype.kind == "f" else random.integers(0, 100, dims)
        arrays[spec.name] = np.asarray(drawn).astype(dtype)
    return arrays


def measure(
    kind: Any, model: Model, peer: str, given: argparse.Namespace, file: Path | None = None
) -> None:
    """Serve a model by armpy and by a peer, and let them take turns."""
    inputs = random_inputs(model)
    with tempfile.TemporaryDirectory() as work:
        repository = Path(work) / "repository"
        kind.add_armpy(repository, "armpy", model, given.instances)
        if peer == "numpy":
            kind.add_module(repository, peer, model, given.instances, kind.NUMPY)
        else:
            kind.add_onnx_runtime(repository, peer, model, given.instances, file)
        with TritonServer(repository, Path(work)) as server:
            asking = {
                name: partial(kind.ask, server, name, model, inputs, given.callers, given.seconds)
                for name in ("armpy", peer)
            }
            turns = {
                name: partial(turn, server, given.seconds, ask) for name, ask in asking.items()
            }
            for take_turn in turns.values():
                take_turn()
            compared(take_turns(turns, 0.0, least=given.turns), "armpy", peer)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", choices=SERVERS)
    parser.add_argument("what", choices=("overhead", "throughput"))
    parser.add_argument("models", nargs="*")
    parser.add_argument("--callers", type=int)
    parser.add_argument("--instances", type=int)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each turn")
    parser.add_argument("--turns", type=int, default=7)
    parsed = parser.parse_args()
    is_overhead = parsed.what == "overhead"
    parsed.callers = parsed.callers or (1 if is_overhead else 32)
    cores = len(os.sched_getaffinity(0))
    parsed.instances = parsed.instances or (1 if is_overhead else cores)
    kind = SERVERS[parsed.server]
    print(f"{parsed.server}, {parsed.what}: {parsed.callers} callers, {parsed.instances} instances")
    if is_overhead:
        with product() as model:
            measure(kind, model, "numpy", parsed)
        return
    for path in parsed.models:
        if Path(path).name == ENCODER and not Path(path).exists():
            write_encoder(Path(path))
        with armpy.load(path, num_threads=1) as model:
            print(Path(path).name, flush=True)
            # One item a request: what peers are given has no open dimensions.
            shapes = {s.name: [n or 1 for n in s.shape or ()] for s in model.inputs}
            fixed = model.reshape(shapes)
            file = Path(path) if path.endswith(".onnx") else None
            measure(kind, fixed, "onnxruntime", parsed, file)


if __name__ == "__main__":
    main()
