"""Bound calls beside LiteRT's ``invoke`` on the same arrays, and beside other ways to call.

``python -m benchmarks.bound_calls MODELS`` (a directory) prints medians and, for pairs of rounds
that were taken one after the other, the median of the ratios with its interval.
"""

from __future__ import annotations

import asyncio
import sys
import timeit
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

import armpy
from armpy.core.turns import take_turns, timed
from armpy.errors import BackendUnavailableError
from armpy.model import Model
from armpy.ops.operation import Array
from armpy_conformance.measure.engines import open_engine
from armpy_conformance.measure.ratio import median_interval

MODELS = (
    "micro/hello_world_float.tflite",
    "micro/hello_world_int8.tflite",
    "mlperf_tiny/ad01_int8.tflite",
    "mlperf_tiny/model_ToyCar_quant_fullint.tflite",
)
ROUNDS = 101
CALLS = 300


def zeros(model: Model) -> dict[str, Array]:
    """An input of each kind; open dimensions are 1."""
    return {
        spec.name: np.zeros([size or 1 for size in spec.info.shape or ()], spec.data_type.dtype)
        for spec in model.inputs
    }


def invoke_of(path: Path, arrays: Sequence[Array]) -> Callable[[], object] | None:
    """LiteRT's ``invoke`` on one thread, if it is installed."""
    try:
        engine = open_engine("litert", path)
    except BackendUnavailableError:
        return None
    engine.bind(arrays)
    invoke = engine.caller()
    invoke()
    return invoke


def taken(calls: Mapping[str, Callable[[], object]], number: int = CALLS) -> dict[str, Array]:
    """Microseconds per call in each round, the rounds of all taken in turn."""
    turns = {name: timed(call, number) for name, call in calls.items()}
    times = take_turns(turns, 0.0, least=ROUNDS)
    return {name: 1e6 * np.array(durations) for name, durations in times.items()}


def ratio(one: Array, other: Array) -> str:
    """Median of paired ratios with the interval of its 95 %."""
    low, high = median_interval([*map(float, one / other)])
    return f"{np.median(one / other):.2f} ({low:.2f} to {high:.2f})"


def compare(path: Path) -> None:
    """Print what calls of one model take."""
    model = armpy.load(path)
    inputs = zeros(model)
    execution = model.bind(inputs)
    calls: dict[str, Callable[[], object]] = {
        "bound": execution,
        "run": lambda: model.run(inputs),
        "started": lambda: execution.start().result(),
    }
    invoke = invoke_of(path, list(inputs.values()))
    if invoke is not None:
        calls["invoke"] = invoke
    durations = taken(calls)
    medians = ", ".join(f"{name} {np.median(times):.2f} us" for name, times in durations.items())
    print(f"{path.name}: {medians}")
    if invoke is not None:
        print(f"  invoke / bound: {ratio(durations['invoke'], durations['bound'])}")
    more = np.median(durations["started"] - durations["bound"])
    print(f"  started and waited for: {more:.1f} us more than called")
    print(
        f"  awaited: {awaited_us(model, inputs) - np.median(durations['run']):.1f} us more than run"
    )


def awaited_us(model: Model, inputs: dict[str, Array]) -> float:
    """Microseconds of a run that an event loop waits for."""

    async def main() -> float:
        times = []
        for _ in range(ROUNDS):
            started = timeit.default_timer()
            for _ in range(10):
                await model.run_async(inputs)
            times.append((timeit.default_timer() - started) / 10 * 1e6)
        return float(np.median(times))

    return asyncio.run(main())


def main() -> None:
    """Compare every model."""
    for name in MODELS:
        compare(Path(sys.argv[1]) / name)


if __name__ == "__main__":
    main()
