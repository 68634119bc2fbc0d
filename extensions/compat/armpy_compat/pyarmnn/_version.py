"""Version of PyArmNN whose interface this is."""

from __future__ import annotations

import os

_RELEASE = (33, 1, 0)
_DEVELOPMENT = os.getenv("PYARMNN_DEV_VER", "")


def _suffix(number: str) -> str:
    return f"dev{int(number)}" if number.isdecimal() else number


version_info = (*_RELEASE, _suffix(_DEVELOPMENT)) if _DEVELOPMENT else _RELEASE

__version__ = ".".join(map(str, version_info))
__arm_ml_version__ = ".".join(map(str, _RELEASE))


def check_armnn_version(
    installed_armnn_version: str, expected_armnn_version: str = __arm_ml_version__
) -> None:
    """Check that the major and minor versions of Arm NN are the expected ones.

    Raises
    ------
    AssertionError
        If one differs.
    """
    installed, expected = installed_armnn_version, expected_armnn_version
    if installed.split(".")[:2] != expected.split(".")[:2]:
        raise AssertionError(
            f"Expected ArmNN version is {expected} but installed ArmNN version is {installed}"
        )


def GetVersion() -> str:
    """Return the full version: major, minor and patch numbers."""
    return __arm_ml_version__


def GetMajorVersion() -> str:
    """Return the major version."""
    return str(_RELEASE[0])


def GetMinorVersion() -> str:
    """Return the minor version."""
    return str(_RELEASE[1])
