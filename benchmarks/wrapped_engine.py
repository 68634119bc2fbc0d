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
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "backends" / "dynamic_examples" / "onnx_runtime"
BACKEND_ID = "OnnxRuntime"


def measure_model(path: Path, pairs: int) -> dict[str, float]:
    """Medians of both ways, and the median of their ratios pair by pair."""
    import numpy as np  # noqa: PLC0415  # the number of threads is set before
    import onnxruntime  # noqa: PLC0415
    from armpy_onnxruntime import OnnxRuntimeBackend  # noqa: PLC0415
    from armpy_onnxruntime.export import export_model  # noqa: PLC0415
    from armpy_reference import ReferenceBackend  # noqa: PLC0415

    import armpy  # noqa: PLC0415
    from armpy.compiler import Evaluator  # noqa: PLC0415
    from armpy.compiler.specialization import specialize  # noqa: PLC0415
    from armpy.execution import Runtime, RuntimeOptions  # noqa: PLC0415
    from armpy.graph import SubgraphView  # noqa: PLC0415
    from armpy.plugins import BackendRegistry  # noqa: PLC0415

    registry = BackendRegistry()
    registry.register(BACKEND_ID, OnnxRuntimeBackend)
    registry.register("CpuRef", ReferenceBackend)
    options = RuntimeOptions(
        registry=registry, backend_options={BACKEND_ID: {"num_threads": 1}}, on_fallback="error"
    )
    model = armpy.load(path, runtime=Runtime(options))
    shape = [
        dim or (1 if axis == 0 else 224) for axis, dim in enumerate(model.inputs[0].shape or ())
    ]
    image = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    expected = model(image)

    graph = specialize(model.graph, [tuple(shape)], evaluator=Evaluator(ReferenceBackend()))
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        export_model(SubgraphView.of(graph, graph.layers)),
        sess_options=session_options,
        providers=["CPUExecutionProvider"],
    )
    feeds = {session.get_inputs()[0].name: image}
    np.testing.assert_array_equal(session.run(None, feeds)[0], expected)
    return interleaved(lambda: model(image), lambda: session.run(None, feeds), pairs)


def interleaved(
    ours: Callable[[], object], theirs: Callable[[], object], pairs: int
) -> dict[str, float]:
    """Time two calls in pairs, who is first alternating."""
    for _ in range(10):
        ours()
        theirs()
    our_times: list[float] = []
    their_times: list[float] = []
    for index in range(pairs):
        order = [(ours, our_times), (theirs, their_times)]
        for call, times in order if index % 2 else reversed(order):
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
    ratios = [our / their for our, their in zip(our_times, their_times, strict=True)]
    return {
        "armpy_ms": 1e3 * statistics.median(our_times),
        "direct_ms": 1e3 * statistics.median(their_times),
        "ratio": statistics.median(ratios),
    }


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[variable] = "1"
    sys.path.insert(0, str(EXAMPLE))
    results = {path.name: measure_model(path, arguments.pairs) for path in arguments.models}
    for name, figures in results.items():
        print(f"{name:48}", "  ".join(f"{key} {value:.4g}" for key, value in figures.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
