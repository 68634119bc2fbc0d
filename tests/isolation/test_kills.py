"""Workers are killed by the dozen while several networks execute in them.

``ARMPY_KILLS`` says how often; 1,000 take about ten minutes of an idle machine. ``-s`` shows what
came of it.
"""

from __future__ import annotations

import os

import pytest

from tests.support.effort import effort
from tests.support.kills import kill_workers

COUNT = effort(5, 20, "ARMPY_KILLS")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a number may be another's by then")
def test_kills_cost_no_more_than_what_was_under_way_and_leave_nothing_behind() -> None:
    campaign = kill_workers(COUNT)
    print()
    print(campaign)
    assert campaign.num_kills == COUNT
    assert campaign.wrong == []
    assert campaign.left == {}
    assert set(campaign.errors) <= {"DeadObjectError"}
    assert campaign.num_right > 0
