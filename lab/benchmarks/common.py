"""What the benchmarks share: processes of their own, inputs, counts, and where figures go."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from armpy.core.turns import Clock, timed

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "backends" / "onnxruntime"
"""The backend of ONNX Runtime, which exports networks for it."""

OPEN_SIZE = 224
"""For sizes other than the batch that a model leaves to its caller."""


def find_example() -> None:
    """Let `EXAMPLE` be imported."""
    if str(EXAMPLE) not in sys.path:
        sys.path.insert(0, str(EXAMPLE))


def named_numbers(text: str) -> tuple[str, list[int]]:
    """Name and numbers of an argument ``NAME=N,N``; no numbers for a tensor without axes."""
    name, _, numbers = text.partition("=")
    return name, [int(number) for number in numbers.split(",") if number]


def calls_in(seconds: float, call: Callable[[], object], clock: Clock = time.perf_counter) -> int:
    """Return how many calls take so long, at least one, after the first ones."""
    # These are slower: nothing is in the caches, and what a bound call needs is still prepared.
    count = 1
    while True:
        turn = timed(call, count, clock)
        # A clock may have stood still, and is divided by.
        one_s = max(min(turn() for _ in range(3)), 1e-7)
        if one_s * count >= seconds:
            return max(1, math.ceil(seconds / one_s))
        count *= 2


def thread_variables(num_threads: int = 1) -> dict[str, str]:
    """Variables that limit the threads of numeric libraries."""
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
    return dict.fromkeys(names, str(num_threads))


def keep_to_cores(num_cores: int) -> None:
    """Keep this process on so many cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[-num_cores:])


def run_python(
    arguments: Sequence[str],
    *,
    variables: Mapping[str, str] | None = None,
    num_cores: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, from the checkout.

    Parameters
    ----------
    arguments : sequence of str
        ``-c CODE`` or ``-m MODULE``, and what it is given.
    variables : mapping of str to str, optional
        Of the environment, besides this process's own.
    num_cores : int, optional
        To which it is kept; as many threads are allowed.
    """
    limits = {} if num_cores is None else thread_variables(num_cores)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **limits, **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=None if num_cores is None else lambda: keep_to_cores(num_cores),
    )


def output_of(
    arguments: Sequence[str],
    *,
    variables: Mapping[str, str] | None = None,
    num_cores: int | None = None,
) -> str:
    """The last line that a process writes, which has to end well."""
    done = run_python(arguments, variables=variables, num_cores=num_cores)
    if done.returncode:
        raise SystemExit(f"a process ended with code {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout.splitlines()[-1]


def description(doc: str | None) -> str:
    """The first line of a module's text, for its command line."""
    return (doc or "").partition("\n")[0]


def write_json(path: Path | None, results: object) -> None:
    """Write figures, if there is a file for them."""
    if path is not None:
        path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
