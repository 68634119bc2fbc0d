"""Finds the shared test data, which lies beside the checkout where it is present."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy_testing.checkout import ROOT

SHARED = ROOT.parent / "shared"
"""Models, golden outputs and images; see its README."""

FAMILIES = ("coral", "keras", "micro", "mlperf_tiny")
"""Folders of models of which all can be converted; others also hold what armpy does not have."""


def shared_file(*parts: str) -> Path:
    """A file of the shared test data; skips the test, saying so, where it is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"test data {'/'.join(parts)} is not beside the checkout")
    return path


def shared_files(folder: str, pattern: str) -> list[Path]:
    """Files of the shared test data for parametrisation; empty where it is absent."""
    return sorted(SHARED.joinpath(folder).glob(pattern))
