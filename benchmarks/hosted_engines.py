"""Measures what armpy adds to an engine that a backend hosts.

A model runs through armpy, all its layers on the engine's backend, and in the engine directly, on
one thread of one process, in interleaved pairs whose order alternates. Both get and give arrays.
Directly means:

- LiteRT, OpenVINO: the engine reads the model's file, as a program does that uses it alone.
- ONNX Runtime: the same with the ONNX model that the backend exports for the whole network.
- any other backend of `armpy.backend.IEngineBackend`: the program that the backend has compiled is
  called (``IEngineProgram.execute``), which shows the time of armpy's call, and not what the
  conversion costs.

Usage::

    python -m benchmarks.hosted_engines MODEL.tflite [...] [--engines ID,...] [--pairs N]
        [--json FILE]

IDs are those of the backends, by default LiteRt, OpenVino and OrtCpu, which have to be installed
(``pip install ./backends/litert ./backends/openvino ./backends/onnxruntime``).
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import armpy
from armpy.backend import IEngineProgram
from armpy.core.turns import take_turns, timed
from armpy.errors import ArmpyError, BackendCapabilityError
from armpy.execution import Runtime, RuntimeOptions
from armpy.ops.backend_internal import PreCompiled
from armpy.ops.operation import Array
from armpy_conformance.measure.engines import open_engine
from benchmarks.common import description, keep_to_cores, write_json
from benchmarks.peers import exported, random_inputs

ENGINES = {"LiteRt": "litert", "OpenVino": "openvino", "OrtCpu": "onnxruntime"}
"""Engines that can read a model by themselves, by backend."""


def engine_call(
    path: Path, backend_id: str, _: armpy.Model, arrays: Sequence[Array]
) -> Callable[[], object]:
    """Return what a program does that uses the engine alone: inputs in, outputs copied out."""
    direct = open_engine(
        ENGINES[backend_id], exported(path, arrays) if backend_id == "OrtCpu" else path
    )
    direct.bind(arrays)
    call = direct.caller()

    def run() -> object:
        call()
        return direct.outputs()

    return run


def program_call(
    _: Path, backend_id: str, model: armpy.Model, arrays: Sequence[Array]
) -> Callable[[], object]:
    """Return the execution of the one program that the model was compiled to.

    Raises
    ------
    BackendCapabilityError
        If there are several, or one of another kind.
    """
    optimized = model.handle.loaded.optimized
    layers = () if optimized is None else optimized.graph.layers
    operations = [layer.operation for layer in layers]
    programs = [x.program for x in operations if isinstance(x, PreCompiled)]
    if len(layers) != 1 or not programs or not isinstance(programs[0], IEngineProgram):
        raise BackendCapabilityError(
            f"{backend_id} does not run the model as one IEngineProgram",
            where="hosted_engines",
        )
    outputs = [np.empty(v.info.known_shape, v.info.data_type.dtype) for v in layers[0].outputs]
    return partial(programs[0].execute, arrays, outputs)


def measure_model(path: Path, backend_id: str, pairs: int) -> dict[str, float]:
    """Medians of both ways in microseconds, the median of their ratios, and the partitions."""
    registry = armpy.backend_registry()
    # A backend that has no such option decides by itself.
    has_threads = any(o.name == "num_threads" for o in registry.get(backend_id).options)
    runtime = Runtime(
        RuntimeOptions(
            backends=[backend_id, "CpuRef"],
            backend_options={backend_id: {"num_threads": 1} if has_threads else {}},
            on_fallback="error",
            registry=registry,
        )
    )
    model = armpy.load(path, runtime=runtime)
    arrays = random_inputs(model)
    call = engine_call if backend_id in ENGINES else program_call
    turns = {
        "armpy": timed(lambda: model(*arrays)),
        "direct": timed(call(path, backend_id, model, arrays)),
    }
    take_turns(turns, 0.0, least=10)
    times = take_turns(turns, 0.0, least=pairs)
    ratios = [ours / theirs for ours, theirs in zip(*times.values(), strict=True)]
    return {
        "armpy_us": 1e6 * statistics.median(times["armpy"]),
        "direct_us": 1e6 * statistics.median(times["direct"]),
        "ratio": statistics.median(ratios),
    }


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--engines", default=",".join(ENGINES), metavar="ID,...")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    keep_to_cores(1)
    results = {}
    for path in arguments.models:
        for backend_id in arguments.engines.split(","):
            name = f"{path.name} on {backend_id}"
            try:
                results[name] = figures = measure_model(path, backend_id, arguments.pairs)
            except ArmpyError as error:
                print(f"{name:56} {error}")
                continue
            print(f"{name:56}", "  ".join(f"{key} {value:.4g}" for key, value in figures.items()))
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
