"""Measures what armpy adds to an engine that a backend wraps: ONNX Runtime, as an example.

The backend of ``backends/dynamic_examples/onnx_runtime`` runs a model through armpy, and the
ONNX model that it exports for the whole network (inputs and outputs with armpy's order of
axes, that is NHWC) runs in ONNX Runtime directly, through ``InferenceSession.run`` with
arrays in and out. Both are on one thread of one process, in interleaved pairs whose order
alternates.

Usage::

    python -m benchmarks.wrapped_engine MODEL.tflite [...] [--pairs N] [--json FILE]
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import numpy as np
from armpy_reference import ReferenceBackend

import armpy
from armpy.core.turns import take_turns, timed
from armpy.execution import Runtime, RuntimeOptions
from armpy.plugins import BackendRegistry
from benchmarks.common import description, find_example, keep_to_cores, write_json
from benchmarks.peers import exported, random_inputs

BACKEND_ID = "OnnxRuntime"


def measure_model(path: Path, pairs: int) -> dict[str, float]:
    """Medians of both ways, and the median of their ratios pair by pair."""
    find_example()
    import onnxruntime  # noqa: PLC0415 - optional
    from armpy_onnxruntime import OnnxRuntimeBackend  # noqa: PLC0415 - found by the line above

    registry = BackendRegistry()
    registry.register(BACKEND_ID, OnnxRuntimeBackend)
    registry.register("CpuRef", ReferenceBackend)
    options = RuntimeOptions(
        registry=registry, backend_options={BACKEND_ID: {"num_threads": 1}}, on_fallback="error"
    )
    model = armpy.load(path, runtime=Runtime(options))
    (image,) = random_inputs(model)
    expected = model(image)
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        exported(path, [image]), sess_options=session_options, providers=["CPUExecutionProvider"]
    )
    feeds = {session.get_inputs()[0].name: image}
    np.testing.assert_array_equal(session.run(None, feeds)[0], expected)
    calls = {"armpy": lambda: model(image), "direct": lambda: session.run(None, feeds)}
    turns = {name: timed(call) for name, call in calls.items()}
    take_turns(turns, 0.0, least=10)
    times = take_turns(turns, 0.0, least=pairs)
    ratios = [ours / theirs for ours, theirs in zip(*times.values(), strict=True)]
    return {
        "armpy_ms": 1e3 * statistics.median(times["armpy"]),
        "direct_ms": 1e3 * statistics.median(times["direct"]),
        "ratio": statistics.median(ratios),
    }


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    keep_to_cores(1)
    results = {path.name: measure_model(path, arguments.pairs) for path in arguments.models}
    for name, figures in results.items():
        print(f"{name:48}", "  ".join(f"{key} {value:.4g}" for key, value in figures.items()))
    write_json(arguments.json, results)


if __name__ == "__main__":
    main()
