"""Settings that hold for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# A machine that is busy with something else is no reason for a property to fail.
settings.register_profile("armpy", deadline=None)
settings.load_profile("armpy")

# Options for this run (coverage and its threshold) are not for the runs that tests start.
os.environ.pop("PYTEST_ADDOPTS", None)
