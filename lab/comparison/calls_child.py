"""Times calls in one source tree, in a process that `times.py` starts.

Reads one line of JSON after the other: ``["load", MODEL, BACKEND]`` makes a model ready, where an
empty name stands for one layer of no work, and answers with armpy's file and the processor time
until the first result; ``["time", WAY, NUM_CALLS]`` answers with the seconds that so many calls
took.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import armpy
from armpy import DataType, Network, TensorInfo, ops

_OPEN_SIZE = 224
"""For dimensions other than the batch that a model leaves to its caller."""


def load(path: str, backend: str) -> armpy.Model:
    """A model on one backend and one thread."""
    options = armpy.RuntimeOptions(backends=list(dict.fromkeys([backend, "CpuRef"])), num_threads=1)
    runtime = armpy.Runtime(options)
    if path:
        return armpy.load(path, runtime=runtime)
    network = Network()
    x = network.input("x", TensorInfo((8,), DataType.FLOAT32))
    network.output("y", network.add(ops.Reshape((2, 4)), x))
    return armpy.Model(network, runtime)


def zeros(model: armpy.Model) -> dict[str, Any]:  # Any: arrays of every type
    """Inputs that take no time to make."""
    return {spec.name: np.zeros(shape_of(spec), spec.data_type.dtype) for spec in model.inputs}


def random_inputs(model: armpy.Model) -> dict[str, Any]:  # Any: arrays of every type
    """Reals in [-1, 1), all stored integers of quantised inputs, 0 or 1 of others."""
    random = np.random.default_rng(0)
    inputs = {}
    for spec in model.inputs:
        shape, dtype = shape_of(spec), spec.data_type.dtype
        if dtype.kind == "f":
            inputs[spec.name] = random.uniform(-1, 1, shape).astype(dtype)
        else:
            low, high = spec.data_type.integer_range if spec.data_type.is_quantized else (0, 1)
            inputs[spec.name] = random.integers(low, high, shape, endpoint=True).astype(dtype)
    return inputs


def shape_of(spec: Any) -> list[int]:  # Any: an input of the tree's
    """The shape of an input, with numbers for open dimensions."""
    return [dim or (_OPEN_SIZE if axis else 1) for axis, dim in enumerate(spec.shape or ())]


def ways(model: armpy.Model) -> dict[str, Callable[[], object]]:
    """The ways to call a model: ``bound`` with outputs given, ``named`` without, ``plain``."""
    inputs = random_inputs(model)
    outputs, arrays = model.run(inputs), list(inputs.values())
    return {
        "bound": lambda: model.run(inputs, outputs),
        "named": lambda: model.run(inputs),
        "plain": lambda: model(*arrays),
    }


def timed(call: Callable[[], object], num_calls: int) -> float:
    """Seconds of some calls, after one that brings everything back into the caches.

    Notes
    -----
    Of the thread that computes, as there is one only: what runs in between does not count.
    """
    call()
    begin = time.thread_time()
    for _ in range(num_calls):
        call()
    return time.thread_time() - begin


def main() -> None:
    """Answer until standard input ends."""
    calls: dict[str, Callable[[], object]] = {}
    model: armpy.Model
    for line in sys.stdin:
        order, *details = json.loads(line)
        answer: object
        if order == "load":
            model, calls = load(*details), {}
            model.run(zeros(model))
            answer = armpy.__file__, time.process_time()
        else:
            way, num_calls = details
            calls = calls or ways(model)  # numbers of chance take time, too
            answer = timed(calls[way], num_calls)
        print(json.dumps(answer), flush=True)
