"""NNAPI's executions of a sum of eight floats beside `LoadedNetwork.run` of the same network.

``python -m benchmarks.nnapi_executions`` prints medians in microseconds, and for rounds that were
taken one after the other the median of the ratios to ``run`` with its interval.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy_nnapi import Burst, Compilation, Execution, ModelBuilder
from benchmarks.bound_calls import ratio, taken


def main() -> None:
    """Compare every way to execute."""
    builder = ModelBuilder()
    total = builder.add(*(builder.input(np.float32, (8,)) for _ in range(2)))
    compilation = Compilation(builder.finish(total))
    compilation.finish()
    network = compilation.network(())
    inputs = [np.arange(8, dtype=np.float32), np.ones(8, np.float32)]
    output = np.zeros(8, np.float32)

    def prepared() -> Execution:
        execution = Execution(compilation)
        for index, array in enumerate(inputs):
            execution.set_input(index, array)
        execution.set_output(0, output)
        return execution

    reusable = prepared_to_be_reused(prepared)
    burst = Burst(compilation)
    calls: dict[str, Callable[[], object]] = {
        "run": lambda: network.run(inputs, [output]),
        "new execution": lambda: prepared().compute(),
        "reusable execution": reusable.compute,
        "burst": lambda: burst.compute(reusable),
        "call": lambda: compilation(*inputs),
        "started": lambda: prepared().start_compute().wait(),
    }
    durations = taken(calls)
    for name, times in durations.items():
        print(f"{name}: {np.median(times):.2f} us, {ratio(times, durations['run'])} of run")


def prepared_to_be_reused(prepared: Callable[[], Execution]) -> Execution:
    """A reusable execution with the same arguments."""
    execution = prepared()
    execution.set_reusable(True)
    return execution


if __name__ == "__main__":
    main()
