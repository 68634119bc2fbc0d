"""Published packages on ONNX Runtime, and unchanged on armpy: their answers and times, in turns.

The packages have to be installed, with ONNX Runtime and their models; see
`benchmarks.published_programs`.

Usage::

    python -m benchmarks.onnxruntime_programs NAME... [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.common import description, write_json
from benchmarks.published_programs import PROGRAMS

ENGINE = "onnxruntime"


@dataclass(slots=True)
class Agreement:
    """How far the answers of two engines are alike."""

    equal: int = 0
    """Texts and truth values that are equal."""
    different: int = 0
    """Those that are not."""
    largest_difference: float = 0.0
    """Of numbers."""

    def add(self, one: object, other: object) -> None:
        """Compare two answers of the same form.

        Raises
        ------
        ValueError
            If they have other forms.
        """
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            self.add([*one.items()], [*other.items()])
        elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
            for first, second in zip(one, other, strict=True):
                self.add(first, second)
        elif isinstance(one, str | bytes | bool | None):
            self.equal += one == other
            self.different += one != other
        else:
            first, second = np.asarray(one, float), np.asarray(other, float)
            if first.shape != second.shape:
                raise ValueError(f"the shapes differ: {first.shape} and {second.shape}")
            self.largest_difference = max(
                self.largest_difference, float(np.abs(first - second).max(initial=0))
            )


@dataclass(frozen=True, slots=True)
class Result:
    """Answers and times of a program."""

    agreement: Agreement
    armpy_ms: float
    engine_ms: float
    ratio: float
    """The engine's time by armpy's in the median of the rounds."""
    low: float
    high: float
    """`low` and `high`: First and third quartile of the ratio."""


def measured(name: str, rounds: int) -> Result:
    """Run a program on the engine and on armpy, in this process.

    Raises
    ------
    RuntimeError
        If armpy does not take the engine's place.
    """
    program = PROGRAMS[name]
    open_engine, on_engine = program.use()
    engine = open_engine()
    expected = on_engine(engine)
    _forget(program.package)

    import armpy_compat  # noqa: PLC0415 - after the engine

    armpy_compat.install_as_onnxruntime()
    open_armpy, on_armpy = program.use()
    opened = open_armpy()
    agreement = Agreement()
    agreement.add(expected, on_armpy(opened))
    if not sys.modules[ENGINE].__name__.startswith("armpy_compat"):
        raise RuntimeError(f"{name} did not import {ENGINE} again")
    sides = {"engine": lambda: on_engine(engine), "armpy": lambda: on_armpy(opened)}
    times: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in (*sides,) if number % 2 else (*reversed(sides),):
            times[side].append(_seconds(sides[side]))
    pairs = zip(times["engine"], times["armpy"], strict=True)
    low, middle, high = statistics.quantiles([ours / other for ours, other in pairs], n=4)
    return Result(
        agreement,
        1000 * statistics.median(times["armpy"]),
        1000 * statistics.median(times["engine"]),
        middle,
        low,
        high,
    )


def _forget(package: str) -> None:
    """Have a package and the engine imported again.

    Others stay: modules with native code cannot be imported twice.
    """
    for module in [*sys.modules]:
        if module.partition(".")[0] in (ENGINE, package):
            del sys.modules[module]


def _seconds(call: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    call()
    return time.perf_counter() - began_s


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each program in a process of its own; 1 if one fails."""
    parser = argparse.ArgumentParser(description=description(__doc__))
    parser.add_argument("names", nargs="+", choices=sorted(PROGRAMS), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if len(options.names) > 1:
        command = [sys.executable, "-m", "benchmarks.onnxruntime_programs", "--rounds"]
        done = [
            subprocess.run([*command, str(options.rounds), name], check=False)
            for name in options.names
        ]
        return int(any(process.returncode for process in done))
    (name,) = options.names
    result = measured(name, options.rounds)
    same = result.agreement
    print(
        f"{name:24} engine {result.engine_ms:8.1f} ms  armpy {result.armpy_ms:8.1f} ms  ratio"
        f" {result.ratio:5.2f} ({result.low:.2f} to {result.high:.2f})  texts {same.equal} equal,"
        f" {same.different} not; numbers within {same.largest_difference:.2g}"
    )
    write_json(options.json, asdict(result))
    return int(same.different > 0)


if __name__ == "__main__":
    raise SystemExit(main())
