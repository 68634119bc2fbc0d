"""The checkout of armpy that this package was installed from, if it was."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
"""The checkout's root; installed from a wheel, a folder that holds nothing of armpy's."""


def checkout_path(*parts: str) -> Path:
    """A file or folder of the checkout; outside of one, the test or its module is skipped."""
    path = ROOT.joinpath(*parts)
    if not path.exists():
        reason = f"{'/'.join(parts)} comes with a checkout of armpy alone"
        pytest.skip(reason, allow_module_level=True)
    return path
