"""Run the conformance kit on backends with one planted fault each, and print what found it.

``scripts/planted_faults.py [NAME ...]`` takes the faults whose names contain one of these texts;
all of them without a text. It ends with 1 if a fault was missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from armpy.testing import CaseResult  # of this checkout
from armpy.testing.backend_under_test import BackendUnderTest  # of this checkout
from armpy.testing.conformance import cases_for  # of this checkout
from tests.support.lying_backends import options_for  # of this checkout
from tests.support.planted_faults import FAULTS, Planted  # of this checkout
from tests.support.planted_growth import GROWTH_FAULTS  # of this checkout
from tests.support.planted_manners import MANNERS_FAULTS  # of this checkout
from tests.support.planted_sharing import SHARING_FAULTS  # of this checkout

EVERY_FAULT: Mapping[str, Planted] = FAULTS | GROWTH_FAULTS | MANNERS_FAULTS | SHARING_FAULTS


def first_bad(planted: Planted) -> CaseResult | None:
    """The first case of a fault's area that fails; None if the kit misses the fault."""
    backend = planted.make()
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    judged = (case.judge(subject) for case in cases_for(subject) if planted.area in case.id)
    return next((result for result in judged if result.outcome.is_bad), None)


def main(texts: Sequence[str]) -> int:
    """Print a table of the selected faults, and how many were caught."""
    chosen = [n for n in EVERY_FAULT if not texts or any(text in n for text in texts)]
    num_caught = 0
    print("| fault | caught by | seconds |\n|---|---|---:|")
    for name in chosen:
        started = time.perf_counter()
        result = first_bad(EVERY_FAULT[name])
        num_caught += result is not None
        rule = "missed" if result is None else f"`{result.case}`"
        print(f"| {name} | {rule} | {time.perf_counter() - started:.1f} |", flush=True)
    print(f"\n{num_caught} of {len(chosen)} caught")
    return int(num_caught < len(chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
