"""Measures what armpy adds to an engine that a backend hosts: LiteRT, OpenVINO, ONNX Runtime.

A model runs through armpy, all its layers on the engine's backend, and in the engine directly, as
the engine reads its file; for ONNX Runtime that is the ONNX model that the backend exports for the
whole network. Both are on one thread of one process and get and give arrays, in interleaved pairs
whose order alternates.

Usage::

    python -m benchmarks.hosted_engines MODEL.tflite [...] [--engines ID,...] [--pairs N]
        [--json FILE]

IDs are those of the backends: LiteRt, OpenVino, OrtCpu. The packages of the backends have to be
installed (``pip install ./backends/litert ./backends/openvino ./backends/onnxruntime``).
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import armpy
from armpy.core.turns import take_turns, timed
from armpy.errors import ArmpyError
from armpy.execution import Runtime, RuntimeOptions
from armpy_tools.measure.engines import open_engine
from benchmarks.common import description, keep_to_cores, write_json
from benchmarks.peers import exported, random_inputs

ENGINES = {"LiteRt": "litert", "OpenVino": "openvino", "OrtCpu": "onnxruntime"}
"""The engine of each backend."""


def measure_model(path: Path, backend_id: str, pairs: int) -> dict[str, float]:
    """Medians of both ways in microseconds, the median of their ratios, and the partitions."""
    options = RuntimeOptions(
        backends=[backend_id, "CpuRef"],
        backend_options={backend_id: {"num_threads": 1}},
        on_fallback="error",
    )
    model = armpy.load(path, runtime=Runtime(options))
    arrays = random_inputs(model)
    direct = open_engine(
        ENGINES[backend_id], exported(path, arrays) if backend_id == "OrtCpu" else path
    )
    direct.bind(arrays)
    call = direct.caller()

    def run_engine() -> object:
        """What a program does that uses the engine alone: inputs in, outputs copied out."""
        call()
        return direct.outputs()

    turns = {"armpy": timed(lambda: model(*arrays)), "direct": timed(run_engine)}
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
