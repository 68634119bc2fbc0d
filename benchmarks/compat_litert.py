"""Cost of LiteRT's interface on armpy: `Interpreter.invoke` beside the bound call below it.

``python -m benchmarks.compat_litert MODEL.tflite...`` prints, for each model, microseconds per call
of armpy's bound call, of `invoke`, of a whole cycle (`set_tensor`, `invoke`, `get_tensor`) and of
LiteRT's own on one thread. Rounds are taken in turns; a difference is the median of the paired
rounds' differences, with the interval of its 95 %.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import armpy
from armpy.core.turns import take_turns, timed
from armpy.ops.operation import Array
from armpy_compat.litert.interpreter import Interpreter
from armpy_conformance.measure.ratio import median_interval

ROUNDS = 101
CALLS = 200


def cycle_of(interpreter: Any) -> Callable[[], object]:  # Any: LiteRT's, or armpy's
    """A call that sets the inputs, runs, and copies the outputs."""
    values = [
        (details["index"], np.zeros(details["shape"], details["dtype"]))
        for details in interpreter.get_input_details()
    ]
    outputs = [details["index"] for details in interpreter.get_output_details()]

    def cycle() -> None:
        for index, value in values:
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        for index in outputs:
            interpreter.get_tensor(index)

    return cycle


def calls_of(path: str) -> dict[str, Callable[[], object]]:
    """The calls to measure, by name."""
    model = armpy.load(path, num_threads=1)
    bound = model.bind(
        {
            spec.name: np.zeros([size or 1 for size in spec.shape or ()], spec.data_type.dtype)
            for spec in model.inputs
        }
    )
    interpreter = Interpreter(path, num_threads=1)
    interpreter.allocate_tensors()
    calls: dict[str, Callable[[], object]] = {"bound": bound, "invoke": interpreter.invoke}
    calls["cycle"] = cycle_of(interpreter)
    try:
        from ai_edge_litert.interpreter import Interpreter as Peer  # noqa: PLC0415 - if installed
    except ImportError:
        return calls
    peer = Peer(path, num_threads=1)
    peer.allocate_tensors()
    return {**calls, "LiteRT's invoke": peer.invoke, "LiteRT's cycle": cycle_of(peer)}


def difference(one: Array, other: Array) -> str:
    """Median of paired differences with the interval of its 95 %."""
    low, high = median_interval([*map(float, one - other)])
    return f"{np.median(one - other):+.2f} us ({low:+.2f} to {high:+.2f})"


def main(paths: list[str]) -> None:
    """Print a table for each model."""
    for path in paths:
        turns = {name: timed(call, CALLS) for name, call in calls_of(path).items()}
        times = take_turns(turns, 0.0, least=ROUNDS)
        microseconds = {name: 1e6 * np.array(durations) for name, durations in times.items()}
        print(path)
        for name, durations in microseconds.items():
            print(f"  {name:16} {np.median(durations):9.2f} us")
        print(f"  invoke - bound:  {difference(microseconds['invoke'], microseconds['bound'])}")
        print(f"  cycle - bound:   {difference(microseconds['cycle'], microseconds['bound'])}")


if __name__ == "__main__":
    main(sys.argv[1:])
