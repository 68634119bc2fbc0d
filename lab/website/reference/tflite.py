"""The page about builtin operators of .tflite files, and who runs which types.

`python -m lab.website.reference.tflite [OPERATOR ...]` asks LiteRT, which has to be installed,
about every sample of `tests/differential/tflite_samples/`, or those of some operators, each in a
process of its own, and keeps what it runs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from collections.abc import Iterator, Sequence
from importlib.metadata import version

from armpy.frontends.tflite.operators import CONVERTERS
from armpy.frontends.tflite.reader import enumerators
from armpy.frontends.tflite.resources import HASHTABLE_OPERATORS
from armpy.frontends.tflite.resources import OPERATORS as RESOURCE_OPERATORS
from tests.differential.litert_samples import by_litert
from tests.differential.tflite_samples import FACTS, all_samples, facts
from tests.differential.tflite_samples.elsewhere import HELD_ELSEWHERE, NO_KERNEL, NOT_YET, REASONS
from tests.differential.tflite_samples.making import Sample
from tests.differential.tflite_samples.unlike import reason_for

from .markdown import in_groups

_PROBE_SECONDS = 30

HEAD = """# Operators of .tflite files

The element types are those that LiteRT {version}'s CPU interpreter runs. armpy runs the same ones
with the same results, but for those after **not**; letters are reasons, explained after the list.
Every type is a file of its own in `tests/differential/test_tflite_samples.py`; other tests are
named in brackets. The versions of operators in a file are not read: its options and tensors decide.

- **plain**: {plain}
- **q**: with a scale; "8/16 q" is {quantised}
- **usual**: {usual}
- **of**: inputs of a type, of weights of each of the types after it

Integers of 8 and 16 bits without a scale are left out where LiteRT's kernels read a scale. Inputs
and outputs of complex64 are pairs of float32 along a last axis of 2. Random numbers are those that
LiteRT draws in its first run of a model, in each run; two seeds of 0 draw others.

"""

_PLAIN = [
    *("float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32"),
    *("int64", "uint64", "bool", "complex64"),
]
_USUAL = ["float32", "int8", "uint8", "int16", "int32", "int64"]
_QUANTISED = ["int8 q", "uint8 q", "int16 q"]


def page() -> str:
    """The page's text."""
    head = HEAD.format(
        version=json.loads(FACTS.read_text("utf-8"))["version"],
        plain=", ".join(_PLAIN),
        quantised=", ".join(_QUANTISED),
        usual=", ".join(_USUAL),
    )
    letters: dict[str, str] = {}
    table = list(rows(letters))
    reasons = [f"- {letter}: {reason}." for reason, letter in letters.items()]
    return head + "\n".join([*table, "", *reasons, "", *_without_kernels()]) + "\n"


def _operators() -> Iterator[tuple[str, list[str]]]:
    """Operators in the schema's order, each with the kinds that LiteRT runs."""
    runs = facts()
    for name in enumerators("BuiltinOperator").values():
        if name not in ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"):
            kinds = [*runs.get(name, {}), *HELD_ELSEWHERE.get(name, ((), ""))[0]]
            yield name, list(dict.fromkeys(kinds))


def _is_converted(name: str) -> bool:
    """Whether armpy has an operator."""
    return name in CONVERTERS or name in RESOURCE_OPERATORS or name in HASHTABLE_OPERATORS


def _without_kernels() -> Iterator[str]:
    """Lists of the operators that LiteRT does not run."""
    names = [name for name, kinds in _operators() if not kinds]
    has = [name for name in names if _is_converted(name)]
    for title, listed in (
        ("Converted, though LiteRT has no kernel", has),
        (NO_KERNEL[:1].upper() + NO_KERNEL[1:], [name for name in names if name not in has]),
    ):
        yield f"{title}: {', '.join(listed)}.\n"


def rows(letters: dict[str, str]) -> Iterator[str]:
    """Lines of operators with the same types; `letters` gets a letter for each reason."""
    groups: dict[str, list[str]] = {}
    for name, kinds in _operators():
        if not kinds:
            continue
        by_reason: dict[str, list[str]] = {}
        if not _is_converted(name):
            by_reason[REASONS.get(name, NOT_YET)] = ["all"]
        else:
            for kind in facts().get(name, {}):
                if reason := reason_for(name, kind):
                    by_reason.setdefault(reason, []).append(short(kind))
        for reason in by_reason:
            letters.setdefault(reason, chr(ord("a") + len(letters)))
        missing = "; ".join(f"{types(k)} ({letters[r]})" for r, k in by_reason.items())
        test = HELD_ELSEWHERE.get(name, ((), ""))[1]
        title = f"{name} ({test})" if test else name
        text = types(list(map(short, kinds))) + f"; **not** {missing}" * bool(missing)
        groups.setdefault(text, []).append(title)
    for text, names in groups.items():
        yield f"- **{', '.join(names)}**: {text}"


def types(kinds: list[str]) -> str:
    """Kinds as the table lists them, groups of them by their names."""
    parts, rest = in_groups(kinds, {"plain": _PLAIN, "8/16 q": _QUANTISED, "usual": _USUAL})
    others = [kind for kind in rest if kind.count(" to ") != 1]
    parts += _conversions([kind for kind in rest if kind not in others])
    parts.append(", ".join(kind for kind in others if " of " not in kind))
    parts += _weighted([kind for kind in others if " of " in kind])
    return "; ".join(filter(None, parts))


def _weighted(kinds: list[str]) -> Iterator[str]:
    """Kinds such as "float32 of int8"; weights of the same inputs are listed together."""
    weights: dict[str, list[str]] = {}
    for kind in kinds:
        inputs, _, weight = kind.partition(" of ")
        weights.setdefault(inputs, []).append(weight)
    for inputs, listed in weights.items():
        yield f"{inputs} of {', '.join(listed)}"


def _conversions(kinds: list[str]) -> Iterator[str]:
    """Kinds such as "int8 to int16"; sources with the same targets are listed together."""
    targets: dict[str, list[str]] = {}
    for kind in kinds:
        source, _, target = kind.partition(" to ")
        targets.setdefault(source, []).append(target)
    sources: dict[tuple[str, str], list[str]] = {}
    for source, names in targets.items():
        word = "to" if source in names or len(names) == 1 else "to another of"
        ordered = sorted(names if word == "to" else {*names, source}, key=_position)
        sources.setdefault((word, types(ordered)), []).append(source)
    for (word, target_types), listed in sources.items():
        yield f"{'/'.join(listed)} {word} {target_types.replace('; ', ' and ')}"


def _position(name: str) -> tuple[int, str]:
    """Sort key: the order of the plain types, then of the others by name."""
    return _PLAIN.index(name) if name in _PLAIN else len(_PLAIN), name


def short(kind: str) -> str:
    """A kind as people say it."""
    name, _, note = kind.lower().replace(" quantised", " q").partition(", ")
    return f"{name} ({note})" if note else name


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
    parser = argparse.ArgumentParser(description="Ask LiteRT which samples it runs.")
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="all without one")
    probe(parser.parse_args().operators)
