"""The checkout of armpy that this package was installed from, if it was."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout's root; installed from a wheel, a folder that holds nothing of armpy's."""
