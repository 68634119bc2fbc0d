"""Run the conformance kit on backends with one planted fault each, and print what found it.

``scripts/planted_faults.py [NAME ...]`` takes the faults whose names contain one of these texts;
all of them without a text. Each backend is judged until a case fails: by the rules or operations
that the fault is about, then by every other rule of the contract. A second table has the faults by
rule. The script ends with 1 if fewer than 95 % of the faults are caught.

``scripts/planted_faults.py --correct [NAME ...]`` runs the whole kit on correct backends of
unusual kinds instead, and ends with 1 if it finds anything wrong with one of them.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from armpy_conformance import CaseResult, Outcome, run_conformance  # of this checkout
from armpy_conformance.backend_under_test import BackendUnderTest  # of this checkout
from armpy_conformance.conformance import NamedCase, cases_for  # of this checkout
from armpy_conformance.process_state import captured_output  # of this checkout
from tests.support.lying_backends import options_for  # of this checkout
from tests.support.planted_faults import FAULTS, Planted  # of this checkout
from tests.support.planted_growth import GROWTH_FAULTS  # of this checkout
from tests.support.planted_manners import (  # of this checkout
    HANGING_IN_A_CHILD,
    MANNERS_FAULTS,
    restored_settings,
)
from tests.support.planted_sharing import SHARING_FAULTS  # of this checkout
from tests.support.planted_values import VALUE_FAULTS  # of this checkout
from tests.support.unusual_backends import UNUSUAL  # of this checkout

EVERY_FAULT: Mapping[str, Planted] = {
    **FAULTS,
    **GROWTH_FAULTS,
    **MANNERS_FAULTS,
    "manners/hangs-in-a-child": HANGING_IN_A_CHILD,
    **SHARING_FAULTS,
    **VALUE_FAULTS,
}

_LEAST_RATE = 0.95


def _cases(subject: BackendUnderTest, area: str) -> Iterator[NamedCase]:
    """The cases of an area, then every other rule of the contract."""
    cases = list(cases_for(subject))
    yield from (case for case in cases if area in case.id)
    rules = (case for case in cases if case.id.startswith("contract/"))
    yield from (rule for rule in rules if area not in rule.id)


def first_bad(planted: Planted) -> CaseResult | None:
    """The first case that fails on a backend with a fault; None if the kit misses the fault."""
    with restored_settings(), captured_output():
        backend = planted.make()
        subject = BackendUnderTest(backend.get_id(), options_for(backend), planted.soak)
        judged = (case.judge(subject) for case in _cases(subject, planted.area))
        return next((result for result in judged if result.outcome.is_bad), None)


def _rule(case: str) -> str:
    """What a case belongs to: a rule of the contract, or the cases of its operation."""
    return f"`{case}`" if case.startswith("contract/") else f"`{case.partition('/')[0]}/...`"


def print_faults(texts: Sequence[str]) -> bool:
    """Print the selected faults, the rules that caught them, and the rate; whether it is enough."""
    chosen = _named(EVERY_FAULT, texts)
    by_rule: dict[str, list[str]] = defaultdict(list)
    print("| fault | caught by | seconds |\n|---|---|---:|")
    for name in chosen:
        started = time.perf_counter()
        result = first_bad(EVERY_FAULT[name])
        duration_s = time.perf_counter() - started
        by_rule["missed" if result is None else _rule(result.case)].append(name)
        case = "missed" if result is None else f"`{result.case}`"
        print(f"| {name} | {case} | {duration_s:.1f} |", flush=True)
    print("\n| rule | faults |\n|---|---|")
    for rule, names in by_rule.items():
        print(f"| {rule} | {', '.join(names)} |")
    num_caught = len(chosen) - len(by_rule["missed"])
    print(f"\n{num_caught} of {len(chosen)} caught: {num_caught / len(chosen):.1%}")
    return num_caught >= _LEAST_RATE * len(chosen)


def print_correct(texts: Sequence[str]) -> bool:
    """Print a table of the selected correct backends; whether all pass the whole kit."""
    chosen = _named(UNUSUAL, texts)
    problems: list[str] = []
    num_passed = 0
    print("| correct backend | passed | unsupported | CPU seconds | false alarms |")
    print("|---|---:|---:|---:|---:|")
    for name in chosen:
        started = time.process_time()
        backend = UNUSUAL[name]()
        result = run_conformance(backend.get_id(), runtime_options=options_for(backend))
        counts = [result.counts[outcome.value] for outcome in (Outcome.PASSED, Outcome.UNSUPPORTED)]
        duration_s = time.process_time() - started
        row = (name, *counts, f"{duration_s:.1f}", len(result.problems))
        print(f"| {' | '.join(map(str, row))} |", flush=True)
        problems += [f"{name}: {problem.case}: {problem.text}" for problem in result.problems]
        num_passed += not result.problems
    print(f"\n{num_passed} of {len(chosen)} pass", *problems, sep="\n")
    return not problems


def _named(everything: Mapping[str, object], texts: Sequence[str]) -> list[str]:
    """The names that contain one of some texts; all without a text."""
    return [name for name in everything if not texts or any(text in name for text in texts)]


def main(arguments: Sequence[str]) -> int:
    """Carry out the arguments' request; return 1 if the kit was wrong."""
    texts = [text for text in arguments if text != "--correct"]
    is_right = print_faults(texts) if len(texts) == len(arguments) else print_correct(texts)
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
