"""Skips tests that need missing packages, and hides installed ones."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from armpy.plugins.discovery import entry_point_cache
from armpy.plugins.discovery.entry_point_cache import installed
from armpy.store import archive

OLD_METADATA = "armpy's metadata is older than its code: install it again"
"""Why a test of armpy's own entry points is skipped."""

NEEDS_KIT = pytest.mark.skipif(
    find_spec("armpy_conformance") is None, reason="armpy-conformance is not installed"
)
NEEDS_TOOLS = pytest.mark.skipif(
    find_spec("armpy_tools") is None, reason="armpy-tools is not installed"
)
"""Marks tests that use a command of the conformance kit."""


def skip_without(*requirements: str) -> None:
    """Skip a whole module of tests unless these distributions are there; none is imported."""
    missing = [text for text in requirements if not _is_met(Requirement(text))]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed", allow_module_level=True)


def skip_without_commands_of_backends() -> None:
    """Skip a whole module of tests where the commands of armpy's own backends are not announced."""
    if not announces("armpy.commands"):
        pytest.skip(OLD_METADATA, allow_module_level=True)


def announces(group: str) -> bool:
    """Whether the installed distribution armpy has an entry point in a group."""
    return any(e.group == group and e.distribution == "armpy" for e in installed().entry_points)


def keeps_entry_points(cache: Path) -> bool:
    """Whether installed entry points are kept in a cache, as they are once nothing is installed."""
    return (cache / entry_point_cache.FOLDER).exists()


def _is_met(requirement: Requirement) -> bool:
    """Whether a distribution is installed in a version that will do."""
    try:
        return requirement.specifier.contains(version(requirement.name), prereleases=True)
    except PackageNotFoundError:
        return False


def without_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have armpy find no package ``cryptography``, as if none of it had been imported."""
    # Imported first: to delete an attribute that is imported when it is asked for imports it.
    import_module("armpy.store.archive.ed25519")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    monkeypatch.delitem(sys.modules, "armpy.store.archive.ed25519", raising=False)
    monkeypatch.delattr(archive, "ed25519", raising=False)
