"""Many callers of several networks for a long time: same results, and no memory that grows.

``-s`` shows the memory.
"""

from __future__ import annotations

import gc
import math
import os
import random
import statistics
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from armpy import Network, Runtime
from armpy.graph import Value
from armpy.ops import Convolution2d, DepthwiseConvolution2d, FullyConnected, Padding
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.effort import effort

from .networks import convolutions, image, runtime_of, small
from .support import run_apart

SECONDS = effort(5.0)
NUM_CALLERS = 8
NUM_INPUTS = 4
NUM_PARTS, MOST_PARTS = 5, 40
"""Parts of the duration: memory is looked at after each. There are more while it grows."""
MOST_GROWTH_BYTES = 1 << 19
"""In the median of the last parts, in which every caller has been everywhere: what allocators keep
comes now and then, the later the busier the machine. What leaks does so in all."""
NUM_LAST = 4
"""Parts whose growth counts."""

PAGES = Path("/proc/self/statm")


@dataclass
class Case:
    """A network in a runtime, with inputs and what must come out."""

    runtime: Runtime
    network: int
    inputs: list[dict[str, Array]]
    outputs: list[dict[str, Array]] = field(default_factory=list)

    def check(self, number: int) -> None:
        inputs, expected = self.inputs[number], self.outputs[number]
        for name, array in self.runtime.enqueue_workload(self.network, inputs).items():
            np.testing.assert_array_equal(array, expected[name])


def quantized_convolutions() -> Network:
    """A stride, a depthwise layer and a matrix product on bytes; worth several threads."""
    chance = np.random.default_rng(0)
    net = Network()

    def info(shape: tuple[int, ...], scale: float) -> TensorInfo:
        return TensorInfo(shape, DataType.QASYMM_S8, Quantization.per_tensor(scale, 3))

    def weights(shape: tuple[int, ...]) -> Value:
        return net.constant(
            chance.integers(-127, 128, shape).astype(np.int8),
            data_type=DataType.QSYMM_S8,
            quantization=Quantization.per_tensor(0.01, 0),
        )

    value = net.input("x", info((1, 64, 64, 16), 0.05))
    value = net.add(
        Convolution2d(stride=(2, 2), padding=Padding.SAME),
        value,
        weights((64, 3, 3, 16)),
        output=info((1, 32, 32, 64), 0.3),
    )
    value = net.add(
        DepthwiseConvolution2d(padding=Padding.SAME),
        value,
        weights((1, 3, 3, 64)),
        output=info((1, 32, 32, 64), 0.4),
    )
    value = net.add(FullyConnected(), value, weights((10, 64)), output=info((32 * 32, 10), 0.5))
    net.output("y", value)
    return net


def cases() -> list[Case]:
    """Every network with one thread and with two; all share the workers."""
    bytes_ = np.random.default_rng(1).integers(-128, 128, (NUM_INPUTS, 1, 64, 64, 16))
    kinds = [
        (convolutions(), [image(seed=seed) for seed in range(NUM_INPUTS)]),
        (convolutions(17, 33, 2), [image(17, 33, seed) for seed in range(NUM_INPUTS)]),
        (quantized_convolutions(), [{"x": pixels.astype(np.int8)} for pixels in bytes_]),
        (small(), [{"x": np.full((1, 8), seed, np.float32)} for seed in range(NUM_INPUTS)]),
    ]
    all_cases = []
    for num_threads in (1, 2):
        runtime = runtime_of(num_threads)
        all_cases += [Case(runtime, runtime.load_network(net), inputs) for net, inputs in kinds]
    for case in all_cases:
        run = case.runtime.enqueue_workload
        case.outputs = [dict(run(case.network, inputs)) for inputs in case.inputs]
    for alone, two in zip(all_cases[:4], all_cases[4:], strict=True):
        for first, second in zip(alone.outputs, two.outputs, strict=True):
            np.testing.assert_array_equal(first["y"], second["y"])
    return all_cases


def resident_bytes() -> int:
    """Memory of the process that is in use."""
    if not PAGES.exists():
        return 0
    gc.collect()
    return int(PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def soak(seconds: float) -> None:
    """Let callers run networks, and check results and memory."""
    all_cases = cases()
    errors: list[BaseException] = []
    counts = [0] * NUM_CALLERS
    is_over = threading.Event()

    def call(caller: int) -> None:
        chance = random.Random(caller)
        try:
            while not (is_over.is_set() or errors):
                chance.choice(all_cases).check(chance.randrange(NUM_INPUTS))
                counts[caller] += 1
        except BaseException as error:  # noqa: BLE001  # raised below, in the main thread
            errors.append(error)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(NUM_CALLERS)]
    for caller in callers:
        caller.start()
    memory: list[int] = []
    growth = math.inf
    while len(memory) < NUM_PARTS or (growth >= MOST_GROWTH_BYTES and len(memory) < MOST_PARTS):
        time.sleep(seconds / NUM_PARTS)
        memory.append(resident_bytes())
        if len(memory) >= NUM_PARTS:
            last = pairwise(memory[-NUM_LAST - 1 :])
            growth = statistics.median([after - before for before, after in last])
    is_over.set()
    for caller in callers:
        caller.join()
    shown = ", ".join(f"{size / 2**20:.1f}" for size in memory)
    print(f"{sum(counts)} runs; MiB after every {seconds / NUM_PARTS:g} s: {shown}")
    assert errors == []
    assert min(counts) > 0
    for case in all_cases:
        case.runtime.unload_network(case.network)
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("NumbaAcc")]
    assert growth < MOST_GROWTH_BYTES, shown


@pytest.mark.slow
def test_results_stay_the_same_and_memory_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a process of its own, whose memory is not that of all tests before it, and in which
    # the C library does not keep memory for each thread.
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    done = run_apart(f"from {__name__} import soak; soak({SECONDS})", 8 * SECONDS + 120)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
