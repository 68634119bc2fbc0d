"""Run the conformance kit on backends with one planted fault each, and print what found it.

``lab/planted_faults.py [NAME ...]`` takes the faults whose names contain one of these texts;
all of them without a text. Each backend is judged until a case fails, in a forked child: by the
rules or operations that the fault is about, then by every other rule of the contract, then by all
other cases. Further tables have the faults by rule and the number that was caught by kind. The
script ends with 1 if a fault is missed.

``lab/planted_faults.py --correct [NAME ...]`` runs the whole kit on correct backends of
unusual kinds instead, and ends with 1 if it finds anything wrong with one of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from armpy_conformance import Outcome, run_conformance  # of this checkout
from armpy_conformance.cases import operation_cases  # of this checkout
from extensions.conformance.tests.kit_runs import options_for  # of this checkout
from extensions.conformance.tests.planted.planting import first_bad_apart  # of this checkout
from extensions.conformance.tests.planted.table import EVERY_FAULT  # of this checkout
from extensions.conformance.tests.unusual.backends import UNUSUAL  # of this checkout


def _rule(case: str) -> str:
    """What a case belongs to: a rule of the contract, or the cases of its operation."""
    return f"`{case}`" if case.startswith("contract/") else f"`{case.partition('/')[0]}/...`"


def print_faults(texts: Sequence[str]) -> bool:
    """Print the selected faults and the rules that caught them; whether all were caught."""
    chosen = _named(EVERY_FAULT, texts)
    by_rule: dict[str, list[str]] = defaultdict(list)
    operation_cases()  # once, for all children
    print("| fault | caught by | seconds |\n|---|---|---:|")
    for name in chosen:
        started = time.perf_counter()
        result = first_bad_apart(EVERY_FAULT[name])
        duration_s = time.perf_counter() - started
        by_rule["missed" if result is None else _rule(result.case)].append(name)
        case = "missed" if result is None else f"`{result.case}`"
        print(f"| {name} | {case} | {duration_s:.1f} |", flush=True)
    print("\n| rule | faults |\n|---|---|")
    for rule, names in by_rule.items():
        print(f"| {rule} | {', '.join(names)} |")
    _print_kinds(chosen, by_rule["missed"])
    print(f"\n{len(chosen) - len(by_rule['missed'])} of {len(chosen)} caught")
    return not by_rule["missed"]


def _print_kinds(names: Sequence[str], missed: Sequence[str]) -> None:
    """Print how many faults of each kind were caught."""
    planted, slipped = (Counter(n.partition("/")[0] for n in group) for group in (names, missed))
    print("\n| kind | planted | caught |\n|---|---:|---:|")
    for kind, count in planted.items():
        print(f"| {kind} | {count} | {count - slipped[kind]} |")


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


def main() -> int:
    """Carry out the command line's request; return 1 if the kit was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("texts", nargs="*", metavar="NAME", help="part of a name; all without one")
    parser.add_argument("--correct", action="store_true", help="judge correct backends instead")
    options = parser.parse_args()
    is_right = (print_correct if options.correct else print_faults)(options.texts)
    return int(not is_right)


if __name__ == "__main__":
    sys.exit(main())
