"""Runs suites of other projects on armpy and on ONNX Runtime, and compares the counts.

Usage::

    python scripts/foreign_suites.py [--python PATH] [--sample COUNT] [--show] SUITE=CHECKOUT ...

Suites, and the repositories whose checkouts they take:

* ``onnxruntime`` (microsoft/onnxruntime): operator cases in JSON, ``js/web/test/data/ops``
* ``webnn`` (rustnn/pywebnn): W3C's tests of WebNN as JSON, ``tests/wpt_data``
* ``sklearn-onnx`` (onnx/sklearn-onnx), ``onnxmltools`` (onnx/onnxmltools), ``hummingbird``
  (microsoft/hummingbird) and ``onnxscript`` (microsoft/onnxscript): their own tests
* ``array-api`` (data-apis/array-api-tests, with its submodule): the Array API's tests with ndonnx

The interpreter named by ``--python`` belongs to an environment with the packages that the suites
need, the genuine ``onnxruntime``, and armpy with its extensions ``onnx`` and ``compat``. It runs
each suite twice, the second time with armpy's module in the place of ``onnxruntime``; packages on
``PYTHONPATH`` come before those of the environment. ``--sample`` runs a random sample of so many
tests of each suite that pytest runs, the same on both engines. ``--show`` lists the cases that do
not pass on armpy. The exit status is 1 if armpy passes fewer cases of a suite than ONNX Runtime, or
computes a case wrongly that is not disputed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.suites.engines import Results, run_cases, run_pytest  # noqa: E402

ENGINES = ("onnxruntime", "armpy")


@dataclass(frozen=True)
class Tests:
    """A suite that pytest runs: its arguments and environment."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, python: str, checkout: Path, engine: str, sample: int | None) -> Results:
        """Run it, or a sample of so many tests, on one engine."""
        return run_pytest(
            python, checkout, engine, list(self.arguments), dict(self.environment), sample
        )


_Run = Callable[[str, Path, str, int | None], Results]


def _single_models(suite: str) -> _Run:
    def run(python: str, checkout: Path, engine: str, sample: int | None) -> Results:
        del sample  # all cases of these suites take a minute or two
        return run_cases(python, suite, checkout, engine)

    return run


SUITES: Mapping[str, _Run] = {
    "onnxruntime": _single_models("onnxruntime"),
    "webnn": _single_models("webnn"),
    "sklearn-onnx": Tests(("tests",)).run,
    "onnxmltools": Tests(("tests",)).run,
    "hummingbird": Tests(("tests/test_backends.py", "tests/test_onnxml_*.py")).run,
    "onnxscript": Tests(("tests/function_libs/torch_lib/ops_test.py",)).run,
    "array-api": Tests(
        (
            *("array_api_tests", "--max-examples", "20", "--derandomize", "--disable-deadline"),
            *("--disable-extension", "linalg,fft"),  # which ndonnx does not have
        ),
        environment={"ARRAY_API_TESTS_MODULE": "ndonnx"},
    ).run,
}

DISPUTED: Mapping[str, str] = {
    "multihead-attention/MultiHeadAttention Basic, one head and head-size=": (
        "expects past keys to be ignored where `present` is not asked for; ONNX Runtime itself "
        "gives other numbers for one of the two"
    ),
    "quick-gelu/QuickGelu test/": "expects x * sigmoid(alpha * x) to be positive for negative x",
}
"""Cases whose expected values contradict the operator's definition, by how their names begin."""


def main() -> int:
    """Run the suites that the command line names; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suites", nargs="+", metavar="SUITE=CHECKOUT")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to run with")
    parser.add_argument("--sample", type=int, help="run so many tests of each suite of pytest")
    parser.add_argument("--show", action="store_true", help="list cases that armpy does not pass")
    options = parser.parse_args()
    is_behind = False
    for argument in options.suites:
        suite, _, checkout = argument.partition("=")
        if suite not in SUITES or not Path(checkout).is_dir():
            parser.error(f"{argument}: expected SUITE=CHECKOUT with one of {', '.join(SUITES)}")
        results = {
            engine: SUITES[suite](options.python, Path(checkout).resolve(), engine, options.sample)
            for engine in ENGINES
        }
        for engine, result in results.items():
            counts = ", ".join(
                f"{count} {verdict}" for verdict, count in sorted(result.counts.items())
            )
            print(f"{suite:14s} {engine:12s} {counts}", flush=True)
        is_behind |= _is_behind(results, shows=options.show)
    return int(is_behind)


def _is_behind(results: Mapping[str, Results], *, shows: bool) -> bool:
    """Whether armpy passes fewer cases, or computes one wrongly that is not disputed."""
    theirs, ours = results["onnxruntime"], results["armpy"]
    wrong = [
        name
        for name, verdict in ours.verdicts.items()
        if verdict in {"wrong", "died"} and not name.startswith(tuple(DISPUTED))
    ]
    if shows:
        for name, problem in ours.problems.items():
            verdict = theirs.verdicts.get(name, "not run")
            print(f"  {name}: {ours.verdicts[name]} (ONNX Runtime: {verdict}): {problem[:300]}")
    for name in wrong:
        print(f"  wrong: {name}: {ours.problems[name][:300]}")
    return bool(wrong) or ours.counts["passed"] < theirs.counts["passed"]


if __name__ == "__main__":
    raise SystemExit(main())
