"""Skips tests that need what is not installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest
from packaging.requirements import Requirement


def skip_without(*requirements: str) -> None:
    """Skip a whole module of tests unless these distributions are there; none is imported."""
    missing = [text for text in requirements if not _is_met(Requirement(text))]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed", allow_module_level=True)


def _is_met(requirement: Requirement) -> bool:
    """Whether a distribution is installed in a version that will do."""
    try:
        return requirement.specifier.contains(version(requirement.name), prereleases=True)
    except PackageNotFoundError:
        return False
