"""Which versions of the backend contract fit which."""

from __future__ import annotations

from armpy.backend import BACKEND_API_VERSION
from armpy.plugins.boundary import describe, exact


def version_text(version: object) -> str:
    """A version as text, from text or a pair of integers; empty if it is neither."""
    if isinstance(version := exact(version), str):
        return version
    if not isinstance(version, tuple | list) or len(version) != 2:
        return ""
    if any(isinstance(part, bool) or not isinstance(part, int) for part in version):
        return ""
    return f"{version[0]}.{version[1]}"


def why_incompatible(version: object, core: str = BACKEND_API_VERSION) -> str:
    """Why a backend's API version does not fit the core's; empty if it does.

    Parameters
    ----------
    version : str or pair of int
        ``"major.minor"`` or ``(major, minor)``; anything else does not fit.
    core : str

    Notes
    -----
    The major must be equal and the minor at most the core's. What follows the minor does not count.

    References
    ----------
    Arm NN backend developer guide, "Dynamic backend versioning and ABI compatibility".
    """
    text = version_text(version)
    if text == core:
        return ""
    # Slow to import, and needed only for a backend of other times.
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415

    offered = Version(core)
    try:
        wanted = Version(text)
    except InvalidVersion:
        return f"its API version {describe(version)} is not of the form major.minor"
    same_major = (wanted.epoch, wanted.major) == (offered.epoch, offered.major)
    if not same_major or wanted.minor > offered.minor:
        return f"it is made for API version {text}, which does not fit {core}"
    return ""
