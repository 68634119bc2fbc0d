"""Callers of batchers of both modes and of a pool of two threads, in turns; memory, start times.

python -m lab.benchmarks.batching                     # the networks below, each in a new process
python -m lab.benchmarks.batching wide MODEL.tflite   # some of them, or model files
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

import armpy
import armpy_serving
from armpy import DataType, Model, Network, TensorInfo, ops
from armpy.core.turns import take_turns
from armpy.graph import Value
from armpy.ops.activations import FusedActivation
from armpy.ops.shapes import Padding
from armpy_tools.benchmark.bursts import SubjectTurn, run_burst
from lab.benchmarks.common import description, run_python

Item = dict[str, np.ndarray]

_random = np.random.default_rng(1)


def _dense(net: Network, value: Value, columns: int, name: str) -> Value:
    """A fully connected layer over the last axis."""
    shape = value.info.shape or ()
    depth = shape[-1] or 0
    weights = (_random.normal(size=(columns, depth)) / np.sqrt(depth)).astype(np.float32)
    flat = net.add(ops.Reshape((-1, depth)), value)
    product = net.add(ops.FullyConnected(), flat, net.constant(weights), name=name)
    return net.add(ops.Reshape((-1, *(size or 1 for size in shape[1:-1]), columns)), product)


def wide() -> Network:
    """Four fully connected layers of 1024: 16 MB of weights, which every execution reads."""
    net = Network("wide")
    value = net.input("x", TensorInfo((None, 1024), DataType.FLOAT32), default_shape=(1, 1024))
    for layer in range(4):
        weights = (_random.normal(size=(1024, 1024)) / 32).astype(np.float32)
        value = net.add(ops.FullyConnected(), value, net.constant(weights), name=f"fc_{layer}")
        value = net.add(ops.Activation(ops.ActivationFunction.RELU), value)
    net.output("y", value)
    return net


def se_cnn() -> Network:
    """Convolutions with squeeze and excitation, over pictures of 64 by 64."""
    net = Network("se_cnn")
    value = net.input("x", TensorInfo((1, 64, 64, 3), DataType.FLOAT32))
    for block, channels in enumerate((16, 32, 64)):
        depth = (value.info.shape or (0,))[-1] or 0
        weights = (_random.normal(size=(channels, 3, 3, depth)) / 9).astype(np.float32)
        value = net.add(
            ops.Convolution2d((2, 2), padding=Padding.SAME, activation=FusedActivation.RELU),
            value,
            net.constant(weights),
            name=f"conv_{block}",
        )
        mean = ops.Reduce(ops.ReduceOperation.MEAN, axes=(1, 2), keep_dims=True)
        squeezed = _pointwise(net, net.add(mean, value), channels // 4, FusedActivation.RELU)
        excited = _pointwise(net, squeezed, channels, FusedActivation.NONE)
        gate = net.add(ops.Activation(ops.ActivationFunction.SIGMOID), excited)
        value = net.add(ops.ElementwiseBinary(ops.BinaryOperation.MUL), value, gate)
    value = net.add(ops.Reduce(ops.ReduceOperation.MEAN, axes=(1, 2)), value)
    weights = _random.normal(size=(10, 64)).astype(np.float32)
    net.output("y", net.add(ops.FullyConnected(), value, net.constant(weights)))
    return net


def _pointwise(net: Network, value: Value, channels: int, activation: FusedActivation) -> Value:
    """A convolution of single pixels."""
    depth = (value.info.shape or (0,))[-1] or 0
    weights = (_random.normal(size=(channels, 1, 1, depth)) / np.sqrt(depth)).astype(np.float32)
    return net.add(ops.Convolution2d(activation=activation), value, net.constant(weights))


def vit() -> Network:
    """Patches by a convolution, then two layers of a transformer of 64 tokens, 96 wide."""
    width, heads, tokens = 96, 4, 64
    net = Network("vit")
    image = net.input("x", TensorInfo((1, 64, 64, 3), DataType.FLOAT32))
    weights = (_random.normal(size=(width, 8, 8, 3)) / 14).astype(np.float32)
    patches = net.add(ops.Convolution2d((8, 8)), image, net.constant(weights))
    value = net.add(ops.Reshape((-1, tokens, width)), patches)
    add, norm = ops.ElementwiseBinary(ops.BinaryOperation.ADD), ops.LayerNormalization(axes=(-1,))
    for layer in range(2):

        def split(kind: str, source: Value, perm: tuple[int, ...], layer: int = layer) -> Value:
            flat = _dense(net, source, width, f"{kind}_{layer}")
            parts = net.add(ops.Reshape((-1, tokens, heads, width // heads)), flat)
            return net.add(ops.Transpose(perm), parts)

        normal = net.add(norm, value)
        scores = net.add(
            ops.BatchMatMul(),
            split("query", normal, (0, 2, 1, 3)),
            split("key", normal, (0, 2, 3, 1)),
        )
        mixed = net.add(
            ops.BatchMatMul(),
            net.add(ops.Softmax(axis=-1), scores),
            split("value", normal, (0, 2, 1, 3)),
        )
        joined = net.add(ops.Transpose((0, 2, 1, 3)), mixed)
        joined = net.add(ops.Reshape((-1, tokens, width)), joined)
        value = net.add(add, value, _dense(net, joined, width, f"out_{layer}"))
        hidden = _dense(net, net.add(norm, value), 4 * width, f"wide_{layer}")
        hidden = net.add(ops.Activation(ops.ActivationFunction.RELU), hidden)
        value = net.add(add, value, _dense(net, hidden, width, f"narrow_{layer}"))
    net.output("y", net.add(ops.Reduce(ops.ReduceOperation.MEAN, axes=(1,)), value))
    return net


BUILT: Mapping[str, Callable[[], Network]] = {"se_cnn": se_cnn, "vit": vit, "wide": wide}

FILES: Mapping[str, Path] = {
    "digits": Path("examples/digits/digits_int8.tflite"),
    "vww": Path("../shared/models/mlperf_tiny/vww_96_int8.tflite"),
}


def opened(name: str) -> Model:
    """A network by name, or a model file."""
    if name in BUILT:
        return Model(BUILT[name]())
    return armpy.load(FILES.get(name, Path(name)))


def item_of(model: Model, seed: int) -> Item:
    """Random inputs of one item."""
    random = np.random.default_rng(seed)
    item = {}
    for spec in model.inputs:
        shape = (1, *(size or 1 for size in (spec.shape or ())[1:]))
        dtype = spec.data_type.dtype
        drawn = random.normal(size=shape) if dtype.kind == "f" else random.integers(0, 100, shape)
        item[spec.name] = drawn.astype(dtype)
    return item


def resident_mib(*models: Model) -> float:
    """Memory of this process, pages of several processes shared among them, without arenas."""
    for model in models:
        model.free_working_memory()
    gc.collect()
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def measure(given: argparse.Namespace) -> dict[str, object]:
    """All figures of one network, in this process."""
    empty = resident_mib()
    began = time.perf_counter()
    model = opened(given.one)
    items = [item_of(model, seed) for seed in range(given.callers)]
    expected = [model.run(item) for item in items]
    loaded_s = time.perf_counter() - began
    alone = resident_mib(model)
    began = time.perf_counter()
    about = given.max_batch, given.max_wait_ms
    direct = armpy_serving.Batcher(model, *about, mode="direct")
    direct.run(items[0])
    direct_ready_s = time.perf_counter() - began
    with direct, armpy_serving.Batcher(model, *about, workers=given.workers) as batches:
        batches_ready_s = time.perf_counter() - began - direct_ready_s
        for item, wanted in zip(items, expected, strict=True):
            for name, array in batches.run(item).items():
                np.testing.assert_array_equal(array, wanted[name])
        futures = [batches.submit(item) for item in items]
        for future in futures:
            future.result()
        several = batches._sizes.model
        together = resident_mib(*dict.fromkeys((model, several)))
        with ThreadPoolExecutor(2) as pool:
            ways: dict[str, Callable[[Item], object]] = {
                "pool": lambda item: pool.submit(model.run, item).result(),
                "direct": direct.run,
                "batch": batches.run,
            }
            calls = {way: [partial(run, item) for item in items] for way, run in ways.items()}
            turns = {way: partial(run_burst, call, given.seconds) for way, call in calls.items()}
            measured = take_turns(turns, 0.0, least=given.turns)
        mean_batch = batches.statistics.mean_batch
    return {
        "network": Path(given.one).stem,
        "callers": given.callers,
        "pool_per_s": statistics.median(_rates(measured["pool"])),
        **_compared("direct", measured),
        **_compared("batch", measured),
        "mean_batch": mean_batch,
        "loaded_s": loaded_s,
        "direct_ready_s": direct_ready_s,
        "batches_ready_s": batches_ready_s,
        "model_mib": alone - empty,
        "with_batches_by_model": (together - empty) / (alone - empty),
    }


def _compared(mode: str, measured: Mapping[str, list[SubjectTurn]]) -> dict[str, object]:
    """Figures of a mode beside the pool's."""
    rates = _rates(measured[mode])
    ratios = [rate / pool for rate, pool in zip(rates, _rates(measured["pool"]), strict=True)]
    return {
        f"{mode}_per_s": statistics.median(rates),
        f"{mode}_ratio": statistics.median(ratios),
        f"{mode}_ratio_from_to": [min(ratios), max(ratios)],
        f"{mode}_processor_ratio": _per_item(measured["pool"]) / _per_item(measured[mode]),
    }


def _rates(turns: list[SubjectTurn]) -> list[float]:
    """Items per second of each turn."""
    return [turn.runs / turn.wall_s for turn in turns]


def _per_item(turns: list[SubjectTurn]) -> float:
    """Processor time of an item."""
    return statistics.median(turn.processors_s / turn.runs for turn in turns)


def main() -> None:
    """Measure each network in a process of its own."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("networks", nargs="*", default=[*FILES, *BUILT])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--max-batch", type=int, default=8)
    parser.add_argument("--max-wait-ms", type=float, default=2.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each turn")
    parser.add_argument("--turns", type=int, default=8)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments)))
        return
    options = ("callers", "max_batch", "max_wait_ms", "workers", "seconds", "turns")
    chosen = [f"--{name.replace('_', '-')}={getattr(arguments, name)}" for name in options]
    for name in arguments.networks:
        done = run_python(["-m", "lab.benchmarks.batching", "--one", name, *chosen])
        if done.returncode:
            print(f"{name}: {done.stderr[-1000:]}")
            continue
        for key, value in json.loads(done.stdout.splitlines()[-1]).items():
            print(f"{key:>22} {value:.2f}" if isinstance(value, float) else f"{key:>22} {value}")
        print(flush=True)


if __name__ == "__main__":
    main()
