"""`IRuntime.EnqueueWorkload` of `armpy_compat.pyarmnn` beside armpy's own call.

``python -m benchmarks.pyarmnn_calls MODELS`` (files) prints, for each model, microseconds per call
of both, medians of rounds that were taken in turn, and what EnqueueWorkload adds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import armpy_compat.pyarmnn as ann
from benchmarks.bound_calls import taken

CALLS = 500


def compare(path: Path) -> None:
    """Print what a call of one model takes."""
    parser = ann.ITfLiteParser()
    network = parser.CreateNetworkFromBinaryFile(str(path))
    runtime = ann.IRuntime(ann.CreationOptions())
    backends = [ann.BackendId("CpuAcc"), ann.BackendId("CpuRef")]
    optimized, _ = ann.Optimize(network, backends, runtime.GetDeviceSpec())
    own, parts = optimized.parts.runtime, optimized.parts
    own_id = own.load_network(parts.network)
    network_id, _ = runtime.LoadNetwork(optimized)
    inputs = [
        parser.GetNetworkInputBindingInfo(0, name) for name in parser.GetSubgraphInputTensorNames(0)
    ]
    outputs = [
        parser.GetNetworkOutputBindingInfo(0, name)
        for name in parser.GetSubgraphOutputTensorNames(0)
    ]
    arrays = [
        np.zeros(tuple(info.GetShape()), ann.Tensor(info).get_memory_area().dtype)
        for _, info in inputs
    ]
    sources, targets = ann.make_input_tensors(inputs, arrays), ann.make_output_tensors(outputs)
    named = dict(zip(parts.input_ids, arrays, strict=True))
    results = {
        name: np.empty(tuple(tensor.GetShape()), tensor.get_memory_area().dtype)
        for name, (_, tensor) in zip(parts.output_ids, targets, strict=True)
    }
    times = taken(
        {
            "EnqueueWorkload": lambda: runtime.EnqueueWorkload(network_id, sources, targets),
            "enqueue_workload": lambda: own.enqueue_workload(own_id, named, results),
        },
        CALLS,
    )
    ours, theirs = times["EnqueueWorkload"], times["enqueue_workload"]
    print(
        f"{path.name}: EnqueueWorkload {np.median(ours):.2f} us, armpy's own call"
        f" {np.median(theirs):.2f} us, {np.median(ours - theirs):.2f} us more"
    )


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        compare(Path(argument))
