"""Settings that hold for all tests."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import settings

# A machine that is busy with something else is no reason for a property to fail.
settings.register_profile("armpy", deadline=None)
settings.load_profile("armpy")

# Compiled kernels are shared by all tests of a run, and never taken from the user's own cache.
if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit it
    _CACHE = tempfile.TemporaryDirectory(prefix="armpy-tests-cache-")
    os.environ["ARMPY_CACHE_DIR"] = _CACHE.name

# What is chosen is the same on every machine, and whatever else that machine does.
os.environ["ARMPY_NUMBA_MACHINE"] = "typical"


def pytest_configure(config: pytest.Config) -> None:
    """Keep options for this run (coverage and its threshold) from the runs that tests start."""
    if not config.getoption("numprocesses", None):  # whose workers need them
        os.environ.pop("PYTEST_ADDOPTS", None)
