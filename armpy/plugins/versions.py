"""Versions of the backend contract, and which fit which."""

from __future__ import annotations

from packaging.version import Version

from armpy.backend import BACKEND_API_VERSION
from armpy.plugins.proxy.guarded_call import describe, exact


def version_text(version: object) -> str:
    """A version as text, from text or a pair of integers; empty if it is neither."""
    if isinstance(version := exact(version), str):
        return version
    if not isinstance(version, tuple | list) or len(version) != 2:
        return ""
    # True and False are ints to `isinstance`, and no versions.
    if any(isinstance(part, bool) or not isinstance(part, int) for part in version):
        return ""
    return f"{version[0]}.{version[1]}"


def why_incompatible(version: object, core: str = BACKEND_API_VERSION) -> str:
    """Why a backend's API version does not fit the core's; empty if it does.

    Parameters
    ----------
    version : str or pair of int
        ``"major.minor"`` or ``(major, minor)``; anything else does not fit.

    Notes
    -----
    The major must be equal and the minor at most the core's.

    References
    ----------
    Arm NN backend developer guide, "Dynamic backend versioning and ABI compatibility".
    """
    text = version_text(version)
    if text == core:
        return ""
    offered, present = _parsed(text), Version(core)
    if offered is None:
        return f"its API version {describe(version)} is not of the form major.minor"
    if offered.major != present.major or offered.minor > present.minor:
        return (
            f"it is made for API version {text}, which does not fit {core}{_advice(offered, core)}"
        )
    return ""


def _parsed(text: str) -> Version | None:
    """A version of two whole numbers; None for other forms of versions and for other texts."""
    try:
        version = Version(text)
    except ValueError:
        return None
    return version if text == f"{version.major}.{version.minor}" else None


def _advice(offered: Version, core: str) -> str:
    if core != BACKEND_API_VERSION or offered.major >= Version(core).major:
        return ""
    return ". The page 'A backend from 1.x to 2.0' of the documentation says what to change"
