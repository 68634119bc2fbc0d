"""Killed workers and injected faults."""

from __future__ import annotations

import os
import sys

import pytest

from armpy_testing.backends.injections import inject
from armpy_testing.effort import IS_CAMPAIGN, effort
from tests.support.kills import kill_workers

COUNT = effort(5)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a number may be another's by then")
def test_kills_cost_no_more_than_what_was_under_way_and_leave_nothing() -> None:
    campaign = kill_workers(COUNT)
    print()
    print(campaign)
    assert campaign.num_kills == COUNT
    assert campaign.wrong == []
    assert campaign.left == {}
    assert set(campaign.errors) <= {"DeadObjectError"}
    assert campaign.num_right > 0


# Faults by the dozen: the application survives, recovers soon, and nothing leaks


NUM_INJECTIONS = effort(5)
"""How many faults; 1,000 take a quarter of an hour."""

RECOVERY_S = 0.15


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts what /proc has")
def test_application_survives_every_fault_and_nothing_leaks() -> None:
    outcome = inject(NUM_INJECTIONS)
    assert outcome.wrong == []
    assert outcome.left == {}
    assert set(outcome.errors) <= {"DeadObjectError"}
    assert len(outcome.recovery_s) == NUM_INJECTIONS
    if IS_CAMPAIGN:  # a busy machine's times say nothing
        assert max(outcome.recovery_s, key=lambda r: r[1])[1] < RECOVERY_S
