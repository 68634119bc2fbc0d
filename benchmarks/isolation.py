"""What a process of its own costs an execution, and how soon one is there again.

``python -m benchmarks.isolation [--faults N]`` prints, for sums of few and of many elements, the
medians in microseconds of CpuRef in this process and in its own, taken in turns; the cost is the
median of the pairs' differences, less one copy of the inputs and the output. With ``--faults``, it
injects faults, and prints how long after each the next right result was there.
"""

from __future__ import annotations

import argparse
import logging
import statistics
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from armpy import DataType, Network, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.execution.calls.invocation import Invocation
from armpy_testing.backends.injections import inject
from benchmarks.bound_calls import taken
from benchmarks.common import description

SIZES = (8, 1 << 12, 1 << 16, 1 << 20)


def main() -> None:
    """Compare, and perhaps inject."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("--faults", type=int, default=0, help="how many to inject")
    arguments = parser.parse_args()
    for size in SIZES:
        _compare(size)
    if arguments.faults:
        _inject(arguments.faults)


def _sum_network(size: int) -> Network:
    """The sum of two vectors."""
    net = Network("sum")
    info = TensorInfo((size,), DataType.FLOAT32)
    add = ops.ElementwiseBinary(ops.BinaryOperation.ADD)
    net.output("sum", net.add(add, net.input("x", info), net.input("y", info)))
    return net


def _compare(size: int) -> None:
    """Print the cost for vectors of a size."""
    first, other, result = (np.ones(size, np.float32) for _ in range(3))
    with (
        Runtime(RuntimeOptions(backends=["CpuRef"])) as here,
        Runtime(RuntimeOptions(backends=["CpuRef"], isolation="process")) as there,
    ):
        networks = [r.get_network(r.load_network(_sum_network(size))) for r in (here, there)]
        asked = Invocation({"x": first, "y": other}, {"sum": result})
        bound = [network.bind(asked) for network in networks]

        def copy() -> None:
            """One copy in and out."""
            np.copyto(spare[0], first)
            np.copyto(spare[1], other)
            np.copyto(result, spare[2])

        spare = [np.ones(size, np.float32) for _ in range(3)]
        runs: list[Callable[[], object]] = [
            lambda: networks[0].run([first, other], [result]),
            lambda: networks[1].run([first, other], [result]),
        ]
        for name, calls in (("run", runs), ("bound", bound)):
            named = dict(zip(("here", "there", "copy"), (*calls, copy), strict=True))
            inside, outside, copies = taken(named, 200 if size < 1 << 16 else 20).values()
            cost = outside - inside - copies
            low, high = np.percentile(cost, [25, 75])
            print(
                f"{size} elements, {name}: {np.median(inside):.1f} us here, "
                f"{np.median(outside):.1f} us in its own process, "
                f"copies {np.median(copies):.1f} us; isolation "
                f"costs {np.median(cost):.1f} us ({low:.1f} to {high:.1f})"
            )


def _inject(count: int) -> None:
    """Print how soon a backend was there again after faults."""
    logging.getLogger("armpy").setLevel(logging.ERROR)
    outcome = inject(count)
    by_kind = defaultdict(list)
    for kind, duration_s in outcome.recovery_s:
        by_kind[kind].append(duration_s * 1e3)
        by_kind["all"].append(duration_s * 1e3)
    for kind, delays in sorted(by_kind.items()):
        delays.sort()
        p99 = delays[min(int(len(delays) * 0.99), len(delays) - 1)]
        print(
            f"{kind}: {len(delays)} faults, the next result after {delays[0]:.0f} to "
            f"{delays[-1]:.0f} ms, median {statistics.median(delays):.0f}, p99 {p99:.0f}"
        )
    print(f"errors {dict(outcome.errors)}, wrong {outcome.wrong}, leaked {outcome.left}")


if __name__ == "__main__":
    main()
