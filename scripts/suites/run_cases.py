"""Runs all cases of a suite on one engine and prints a line of JSON for each.

A process that ends is started again behind the case that ended it; see `foreign_suites.py`.

Usage::

    python -m scripts.suites.run_cases SUITE CHECKOUT ENGINE [FIRST]
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from . import onnxruntime_operators, webnn
from .cases import Case

SUITES = {"onnxruntime": onnxruntime_operators.cases, "webnn": webnn.cases}
ENGINES = ("armpy", "CpuRef", "onnxruntime")


def main(suite: str, checkout: str, engine: str, first: str = "0") -> int:
    """Run the cases from number `first` on; return the exit status."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    if engine != "onnxruntime":
        import armpy_compat  # noqa: PLC0415  # before onnxruntime, whose name it takes

        armpy_compat.install_as_onnxruntime()
    for number, case in enumerate(islice(SUITES[suite](Path(checkout)), int(first), None)):
        print(json.dumps({"case": int(first) + number, "name": case.name}), flush=True)
        problems = list(_problems(case, engine))
        verdict = "passed"
        if problems:
            verdict = "refused" if problems[0].startswith("refused: ") else "wrong"
        print(json.dumps({"verdict": verdict, "problems": problems}), flush=True)
    return 0


def _problems(case: Case, engine: str) -> Iterator[str]:
    import onnxruntime  # noqa: PLC0415  # armpy's module or the genuine one

    providers = ["CpuRefExecutionProvider" if engine == "CpuRef" else "CPUExecutionProvider"]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    names = list(case.expected)
    try:
        session = onnxruntime.InferenceSession(
            case.model.SerializeToString(), options, providers=providers
        )
        outputs = session.run(names, dict(case.inputs))
    except Exception as error:  # noqa: BLE001  # an engine's errors are what the suite counts
        yield f"refused: {type(error).__name__}: {error}"
    else:
        yield from case.differences(dict(zip(names, outputs, strict=True)))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
