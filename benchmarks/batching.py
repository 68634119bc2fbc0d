"""Throughput of many callers with and without a batcher, in turns.

python benchmarks/batching.py                      # a network of fully connected layers
python benchmarks/batching.py bert_tiny.tflite     # or a model file
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable

import numpy as np

import armpy
from armpy import DataType, Model, Network, TensorInfo, ops


def fully_connected(width: int, depth: int) -> Model:
    """A model whose weights are read once per execution, however many rows there are."""
    random = np.random.default_rng(1)
    net = Network("fully connected")
    value = net.input("x", TensorInfo((None, width), DataType.FLOAT32), default_shape=(1, width))
    for layer in range(depth):
        weights = (random.normal(size=(width, width)) / np.sqrt(width)).astype(np.float32)
        value = net.add(ops.FullyConnected(), value, net.constant(weights), name=f"fc_{layer}")
        value = net.add(ops.Activation(ops.ActivationFunction.RELU), value)
    net.output("y", value)
    return Model(net)


def item_of(model: Model, seed: int) -> dict[str, np.ndarray]:
    """Random inputs of one item."""
    random = np.random.default_rng(seed)
    item = {}
    for spec in model.inputs:
        shape = (1, *(size or 1 for size in (spec.shape or ())[1:]))
        dtype = spec.data_type.dtype
        if dtype.kind == "f":
            item[spec.name] = random.normal(size=shape).astype(dtype)
        else:
            item[spec.name] = random.integers(0, 100, shape).astype(dtype)
    return item


def throughput(
    call: Callable[[dict[str, np.ndarray]], object],
    items: list[dict[str, np.ndarray]],
    seconds: float,
) -> tuple[float, list[float]]:
    """Items per second of one caller per item, and how long each took, in milliseconds."""
    latencies: list[list[float]] = [[] for _ in items]
    begin = threading.Barrier(len(items) + 1)
    until = [0.0]

    def caller(index: int) -> None:
        begin.wait()
        while (start := time.perf_counter()) < until[0]:
            call(items[index])
            latencies[index].append(1e3 * (time.perf_counter() - start))

    threads = [threading.Thread(target=caller, args=(i,)) for i in range(len(items))]
    for thread in threads:
        thread.start()
    start = time.perf_counter()
    until[0] = start + seconds
    begin.wait()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - start
    every = [one for own in latencies for one in own]
    return len(every) / took, every


def main() -> None:
    """Compare in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", help="a model file")
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--max-batch", type=int, default=8)
    parser.add_argument("--max-wait-ms", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of the backends that have any")
    given = parser.parse_args()
    model = fully_connected(1024, 4)
    if given.model:
        model.close()
        model = armpy.load(given.model, num_threads=given.threads)
    items = [item_of(model, seed) for seed in range(given.callers)]
    expected = [model.run(item) for item in items]
    ratios, plain, batched, latencies = [], [], [], []
    with model, armpy.Batcher(model, given.max_batch, given.max_wait_ms) as batcher:
        for item, wanted in zip(items, expected, strict=True):
            for name, array in batcher.run(item).items():
                np.testing.assert_allclose(array, wanted[name], rtol=1e-3, atol=1e-4)
        for _ in range(given.turns):
            rate, _ = throughput(model.run, items, given.seconds)
            plain.append(rate)
            rate, took = throughput(batcher.run, items, given.seconds)
            batched.append(rate)
            latencies += took
            ratios.append(batched[-1] / plain[-1])
        told = batcher.statistics
    latencies.sort()
    print(f"{given.callers} callers, without: {statistics.median(plain):9.1f} items/s")
    print(f"{given.callers} callers, batched: {statistics.median(batched):9.1f} items/s")
    low, high = min(ratios), max(ratios)
    print(f"ratio per turn: median {statistics.median(ratios):.2f}, {low:.2f} to {high:.2f}")
    print(
        f"latency through the batcher: median {statistics.median(latencies):.2f} ms, "
        f"p99 {latencies[int(0.99 * len(latencies))]:.2f} ms, largest {latencies[-1]:.2f} ms"
    )
    print(
        f"batches of {told.mean_batch:.1f}; waited {told.wait_ms_median:.2f} ms (p99 "
        f"{told.wait_ms_p99:.2f}), ran {told.execution_ms_median:.2f} ms (p99 "
        f"{told.execution_ms_p99:.2f})"
    )


if __name__ == "__main__":
    main()
