"""Writes tflite_operators.md: builtin operators of .tflite files, and who runs which types.

Usage::

    python scripts/document_tflite.py [--check]
    python scripts/document_tflite.py --probe [OPERATOR ...]

The second form asks LiteRT, which has to be installed, about every sample of
`tests/support/tflite_samples/`, or those of some operators, each in a process of its own, and keeps
what it runs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from documenting import write_or_check

from armpy.frontends.tflite.operators import CONVERTERS
from armpy.frontends.tflite.reader import enumerators
from armpy.frontends.tflite.resources import HASHTABLE_OPERATORS
from armpy.frontends.tflite.resources import OPERATORS as RESOURCE_OPERATORS
from tests.differential.litert_samples import by_litert
from tests.support.tflite_samples import FACTS, all_samples, facts
from tests.support.tflite_samples.elsewhere import HELD_ELSEWHERE, NO_KERNEL, NOT_YET, REASONS
from tests.support.tflite_samples.making import Sample
from tests.support.tflite_samples.unlike import reason_for

_PROBE_SECONDS = 30

HEAD = """# Operators of .tflite files

Made by `scripts/document_tflite.py` from what LiteRT {version}'s CPU interpreter runs and what
armpy does; do not edit.

Every builtin operator of the schema is listed. *LiteRT* are the kinds of elements that its kernels
run, found out by asking it (`--probe`); *armpy* says **all** where it runs the same ones, and
otherwise which of them it does not, and why. Integers of 8 and 16 bits without a scale are left out
where LiteRT's kernels read a scale. *held by* is the test that compares both: every kind in
`tests/differential/test_tflite_samples.py` is a file of its own, made by
`tests/support/tflite_samples/`. "int8 q" has a scale; "float32 of int4" has weights of that type.
Inputs and outputs of complex64 are pairs of float32 along a last axis of 2. Random numbers are
those that LiteRT draws when it runs a model for the first time, in each run; two seeds of 0 draw
others.

| operator | LiteRT | armpy | held by |
|---|---|---|---|
"""

_SHORT = "test_tflite_samples.py"


def main() -> int:
    """Write the page, compare it, or probe LiteRT."""
    if "--probe" in sys.argv:
        probe(sys.argv[2:])
        return 0
    return write_or_check("tflite_operators.md", page(), Path(__file__).name, __doc__ or "")


def page() -> str:
    """The page's text."""
    recorded = json.loads(FACTS.read_text("utf-8"))
    return HEAD.format(version=recorded["version"]) + "\n".join(rows()) + "\n"


def rows() -> Iterator[str]:
    """One line per operator, in the schema's order."""
    runs = facts()
    for name in enumerators("BuiltinOperator").values():
        if name in ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"):
            continue
        kinds = list(runs.get(name, {}))
        has = name in (*CONVERTERS, *RESOURCE_OPERATORS, *HASHTABLE_OPERATORS)
        other_kinds, test = HELD_ELSEWHERE.get(name, ((), ""))
        kinds += [kind for kind in other_kinds if kind not in kinds]
        if not kinds:
            reason = REASONS.get(name, NO_KERNEL)
            yield f"| {name} | - | {'has a converter' if has else reason} | |"
            continue
        missing = {kind: reason_for(name, kind) for kind in runs.get(name, {})}
        if not has:
            answer = f"no: {REASONS.get(name, NOT_YET)}"
        elif any(missing.values()):
            by_reason: dict[str, list[str]] = {}
            for kind, reason in missing.items():
                if reason:
                    by_reason.setdefault(reason, []).append(short(kind))
            answer = "all but " + "; ".join(f"{', '.join(k)} ({r})" for r, k in by_reason.items())
        else:
            answer = "**all**"
        tests = ", ".join(filter(None, (_SHORT if has and name in runs else "", test)))
        yield f"| {name} | {', '.join(map(short, kinds))} | {answer} | {tests} |"


def short(kind: str) -> str:
    """A kind as people say it."""
    return kind.lower().replace(" quantised", " q")


def probe(operators: Sequence[str]) -> None:
    """Ask LiteRT about every sample, or those of some operators."""
    runs: dict[str, dict[str, list[int]]] = {}
    if operators:
        runs = {name: dict(kinds) for name, kinds in facts().items() if name not in operators}
    for sample in all_samples():
        if (not operators or sample.operator in operators) and _runs(sample):
            runs.setdefault(sample.operator, {}).setdefault(sample.kind, []).append(sample.number)
    lines = (f"  {json.dumps(name)}: {json.dumps(runs[name])}" for name in sorted(runs))
    head = f'{{"version": {json.dumps(version("ai-edge-litert"))}, "runs": {{'
    FACTS.write_text(head + "\n" + ",\n".join(lines) + "\n}}\n", "utf-8")


def _runs(sample: Sample) -> bool:
    """Whether LiteRT runs a sample; a kernel's assertion ends the process."""
    child = os.fork()
    if not child:
        _try(sample)
    _, status = os.waitpid(child, 0)
    return status == 0


def _try(sample: Sample) -> None:
    """Run a sample and end the process."""
    signal.alarm(_PROBE_SECONDS)
    try:
        by_litert(sample)
    except (RuntimeError, ValueError, TypeError, NotImplementedError):
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
