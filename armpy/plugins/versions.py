"""Versions of the backend contract, and which fit which."""

from __future__ import annotations

import re

from armpy.backend import BACKEND_API_VERSION
from armpy.plugins.proxy.guarded_call import describe, exact

# Few digits, as `int` refuses texts of more than 4,300.
_FORM = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")
"""Of a version: two whole numbers, as everybody writes them, and nothing else."""


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
    core : str

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
    if _FORM.fullmatch(text) is None:
        return f"its API version {describe(version)} is not of the form major.minor"
    major, minor = _numbers(text)
    offered_major, offered_minor = _numbers(core)
    if major != offered_major or minor > offered_minor:
        return f"it is made for API version {text}, which does not fit {core}{_advice(major, core)}"
    return ""


def _advice(major: int, core: str) -> str:
    """What an author is to do about a major version that is older than this core's."""
    if core != BACKEND_API_VERSION or major >= _numbers(core)[0]:
        return ""
    return ". The page 'A backend from 1.x to 2.0' of the documentation says what to change"


def _numbers(version: str) -> tuple[int, int]:
    """A version's major and minor."""
    major, minor = version.split(".")
    return int(major), int(minor)
