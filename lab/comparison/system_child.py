"""Runs models on one backend, in a process that `compare_systems.py` starts on some system.

Usage: ``python system_child.py FOLDER JOB``. Everything is named relative to FOLDER, which the
systems call by different names: a job has no paths of one of them.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Arrays = list[np.ndarray[Any, Any]]  # Any: of every shape and type

BURST_S = 0.02
"""How long the calls between two looks at the clock take at least."""


def main() -> None:
    """Run the job of the command line: answers go to files, times to standard output."""
    folder, job = Path(sys.argv[1]), json.loads(sys.argv[2])
    sys.path.insert(0, str(folder / "site-packages"))
    os.environ |= job["variables"] | {"ARMPY_CACHE_DIR": str(folder / job["cache"])}
    warnings.simplefilter("ignore")  # placements report fallbacks
    for name in job["models"]:
        try:
            report = run(folder, name, job)
        except Exception as error:  # noqa: BLE001 - whatever comes out is the answer
            report = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"model": name, **report}), flush=True)


def run(folder: Path, name: str, job: Mapping[str, Any]) -> dict[str, object]:  # Any: JSON
    """Run a model on its inputs; its times, and the backends that ran layers."""
    with np.load(folder / "inputs" / f"{name}.npz") as data:
        arrays = {key: data[key] for key in data.files}
    num_calls = 1 + max(int(key.partition("/")[0]) for key in arrays)
    calls = [
        [arrays[key] for key in sorted(arrays) if key.startswith(f"{number}/")]
        for number in range(num_calls)
    ]
    begin = time.perf_counter(), time.process_time()
    import armpy  # noqa: PLC0415 - a part of the start

    if not Path(armpy.__file__).is_relative_to(folder):
        raise SystemExit(f"{armpy.__file__} is not the tree that is compared")
    backends = list(dict.fromkeys([job["backend"], "CpuRef"]))
    options = armpy.RuntimeOptions(backends=backends, num_threads=1)
    model = armpy.load(folder / "models" / f"{name}.tflite", runtime=armpy.Runtime(options))

    def shaped(inputs: Arrays) -> Arrays:
        pairs = zip(model.inputs, inputs, strict=True)
        return [np.reshape(one, ()) if spec.shape == () else one for spec, one in pairs]

    def call(inputs: Arrays) -> Arrays:
        got = model(*shaped(inputs))
        return [np.array(one) for one in (got if isinstance(got, tuple) else [got])]

    outputs = {f"0/{number}": one for number, one in enumerate(call(calls[0]))}
    start_s, start_cpu_s = time.perf_counter() - begin[0], time.process_time() - begin[1]
    for index, inputs in enumerate(calls[1:], 1):
        outputs |= {f"{index}/{number}": one for number, one in enumerate(call(inputs))}
    last = shaped(calls[-1])
    call_us = 1e6 * shortest_s(lambda: model(*last), job["seconds"])
    np.savez(folder / job["outputs"] / f"{name}.npz", **outputs)  # type: ignore[arg-type]
    assert model.placement is not None  # the first call made it
    ran = sorted({layer.backend for layer in model.placement.layers})
    model.close()
    return {"start_s": start_s, "start_cpu_s": start_cpu_s, "call_us": call_us, "backends": ran}


def shortest_s(call: Callable[[], object], seconds: float) -> float:
    """The shortest time of a call: whatever else the machine does only adds to it."""
    clock = time.perf_counter
    count, shortest, end = 1, float("inf"), clock() + seconds
    while True:
        begin = clock()
        for _ in range(count):
            call()
        now = clock()
        shortest = min(shortest, (now - begin) / count)
        if now >= end:
            return shortest
        if now - begin < BURST_S:
            count *= 2


if __name__ == "__main__":
    main()
