"""Remedies for backends and plugins that cannot be used."""

from __future__ import annotations

from importlib.metadata import packages_distributions

from armpy.backend import BACKEND_API_VERSION
from armpy.plugins import Candidate, CandidateStatus

_DISTRIBUTIONS = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "google": "protobuf",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "usb": "pyusb",
    "yaml": "pyyaml",
}
"""What brings a module whose name is another."""

_REMEDIES = {
    CandidateStatus.DUPLICATE: "Remove one of the two",
    CandidateStatus.CRASHED: "Remove it and tell its author; Runtime(probe=True) leaves it out",
    CandidateStatus.HUNG: "Remove it and tell its author; Runtime(probe=True) leaves it out",
    CandidateStatus.FAILED: "Tell its author; armpy doctor --debug shows the traceback",
    CandidateStatus.REJECTED: "Tell its author: the contract is described in armpy.backend",
}


def missing_thing(candidate: Candidate) -> str:
    """The module or library for lack of which a candidate cannot be loaded; empty if none."""
    if candidate.missing_library:
        return f"library {candidate.missing_library}"
    return f"module {candidate.missing_module}" if candidate.missing_module else ""


def remedy(candidate: Candidate, *, is_sick: bool) -> str:
    """What to do about a candidate; empty if nothing.

    Parameters
    ----------
    is_sick : bool
        Whether it loads and does not work.
    """
    if is_sick and candidate.is_plugin:
        return "Tell its author: the hooks are described in armpy.plugins.hooks.specifications"
    if is_sick:
        return f"Tell its author; 'armpy conformance {candidate.backend_id}' shows more"
    if candidate.missing_library:
        return f"Install what brings {candidate.missing_library}, or add its folder to the loader's"
    if candidate.missing_module:
        return _install(candidate.missing_module)
    if "API version" in candidate.reason:
        fitting = f"a version of it that is made for {BACKEND_API_VERSION}"
        return f"Install {fitting}, or another version of armpy"
    if "trust file" in candidate.reason:
        return "Change the trust file if you trust it"
    if "chmod" in candidate.reason:
        return ""  # the reason says it
    if candidate.is_plugin and candidate.status is CandidateStatus.REJECTED:
        return "Tell its author: the hooks are described in armpy.plugins.hooks.specifications"
    return _REMEDIES.get(candidate.status, "")


def _install(module: str) -> str:
    top = module.partition(".")[0]
    installed = packages_distributions().get(top)
    if installed and module != top:
        names = " ".join(sorted(set(installed)))
        return f"Run: pip install --upgrade {names} (it is installed, but has no {module})"
    name = installed[0] if installed else _DISTRIBUTIONS.get(top, top)
    return f"Run: pip install {name}"
