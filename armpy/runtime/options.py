"""Reads options from the environment."""

from __future__ import annotations

import os
from collections.abc import Sequence

from armpy.types import BackendId

BACKENDS_VARIABLE = "ARMPY_BACKENDS"
"""Environment variable with backend ids in order of preference, comma separated."""


def backend_preferences(chosen: Sequence[BackendId] | None) -> list[BackendId] | None:
    """The caller's preferences, else those of the environment, else None."""
    if chosen is not None:
        return list(chosen)
    names = [name.strip() for name in os.environ.get(BACKENDS_VARIABLE, "").split(",")]
    return [name for name in names if name] or None
