"""Settings that hold for NumbaAcc's tests, which may run without those of the core."""

from __future__ import annotations

import tests.conftest  # noqa: F401  # a profile for properties, and a cache of its own
