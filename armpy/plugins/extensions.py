"""Fixes of errors about extensions of armpy that are not installed."""

from __future__ import annotations

from armpy.plugins.extension_tables import FOLDERS, NEEDED


def install_command(distribution: str) -> str:
    """The command that installs an extension, for the fix of an error."""
    distributions = (*NEEDED.get(distribution, ()), distribution)
    folders = " ".join(f"./{FOLDERS[name]}" for name in distributions)
    return f"pip install {folders} (in a checkout of armpy)"
