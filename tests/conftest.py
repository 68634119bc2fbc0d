"""Settings that hold for all tests."""

from __future__ import annotations

import os
import tempfile

from hypothesis import settings

# A machine that is busy with something else is no reason for a property to fail.
settings.register_profile("armpy", deadline=None)
settings.load_profile("armpy")

# Options for this run (coverage and its threshold) are not for the runs that tests start.
os.environ.pop("PYTEST_ADDOPTS", None)

# Compiled kernels are shared by all tests of a run, and never taken from the user's own cache.
if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit it
    _CACHE = tempfile.TemporaryDirectory(prefix="armpy-tests-cache-")
    os.environ["ARMPY_CACHE_DIR"] = _CACHE.name
