"""Correct backends of unusual kinds pass the kit: a sample here, the whole kit by a script."""

from __future__ import annotations

import pytest

from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.conformance import cases_for

from .kit_runs import options_for, run
from .unusual.backends import UNUSUAL

pytestmark = pytest.mark.slow

AREAS = (
    "contract/identity/",
    "contract/lifecycle/several-",
    "contract/support/",
    "contract/options/",
    "contract/gauges/every-",
    "contract/gauges/device-times",
    "contract/arenas/",
)
"""Rules that take little time and use unusual members."""

SLOW = ("plans again for other sizes",)
"""Takes seconds for these rules; the script runs it."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in UNUSUAL if name not in SLOW])
def test_a_correct_backend_of_an_unusual_kind_passes(name: str) -> None:
    backend = UNUSUAL[name]()
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    results = [case.judge(subject) for case in cases_for(subject) if case.id.startswith(AREAS)]
    assert results
    assert [f"{r.case}: {r.text}" for r in results if r.outcome.is_bad] == []


def test_outputs_of_types_of_ml_dtypes_are_compared_as_they_are_stored() -> None:
    pytest.importorskip("ml_dtypes")
    assert run(UNUSUAL["Cast alone"](), "contract/calls/").problems == ()
