"""Throughput of many callers with and without a batcher, in turns.

python benchmarks/batching.py                      # a network of fully connected layers
python benchmarks/batching.py bert_tiny.tflite     # or a model file
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial

import numpy as np

import armpy
from armpy import DataType, Model, Network, TensorInfo, ops
from armpy.core.turns import take_turns
from armpy.tools.benchmark.bursts import run_burst
from armpy.tools.measure.latency import latency_of


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
    with model, armpy.Batcher(model, given.max_batch, given.max_wait_ms) as batcher:
        for item, wanted in zip(items, expected, strict=True):
            for name, array in batcher.run(item).items():
                np.testing.assert_allclose(array, wanted[name], rtol=1e-3, atol=1e-4)
        calls = {
            way: [partial(run, item) for item in items]
            for way, run in (("plain", model.run), ("batched", batcher.run))
        }
        turns = {way: partial(run_burst, each, given.seconds) for way, each in calls.items()}
        found = take_turns(turns, 0.0, least=given.turns)
        told = batcher.statistics
    plain, batched = ([turn.runs / turn.wall_s for turn in each] for each in found.values())
    ratios = [many / one for many, one in zip(batched, plain, strict=True)]
    latency = latency_of([us for turn in found["batched"] for us in turn.durations_us])
    print(f"{given.callers} callers, without: {statistics.median(plain):9.1f} items/s")
    print(f"{given.callers} callers, batched: {statistics.median(batched):9.1f} items/s")
    low, high = min(ratios), max(ratios)
    print(f"ratio per turn: median {statistics.median(ratios):.2f}, {low:.2f} to {high:.2f}")
    print(
        f"latency through the batcher: median {latency.median_ms:.2f} ms, "
        f"p99 {latency.p99_ms:.2f} ms, largest {latency.max_ms:.2f} ms"
    )
    print(
        f"batches of {told.mean_batch:.1f}; waited {told.wait_ms_median:.2f} ms (p99 "
        f"{told.wait_ms_p99:.2f}), ran {told.execution_ms_median:.2f} ms (p99 "
        f"{told.execution_ms_p99:.2f})"
    )


if __name__ == "__main__":
    main()
