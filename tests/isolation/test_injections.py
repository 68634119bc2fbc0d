"""Faults by the dozen: the application survives, recovers soon, and nothing leaks."""

from __future__ import annotations

import os
import sys

import pytest

from tests.support.effort import effort
from tests.support.injections import inject

COUNT = effort(5, 50, "ARMPY_INJECTIONS")
"""How many faults; 1,000 take a quarter of an hour."""

RECOVERY_S = 0.15


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts what /proc has")
def test_application_survives_every_fault_and_nothing_leaks() -> None:
    outcome = inject(COUNT)
    assert outcome.wrong == []
    assert outcome.left == {}
    assert set(outcome.errors) <= {"DeadObjectError"}
    assert len(outcome.recovery_s) == COUNT
    if "ARMPY_INJECTIONS" in os.environ:  # a busy machine's times say nothing
        assert max(outcome.recovery_s, key=lambda r: r[1])[1] < RECOVERY_S
