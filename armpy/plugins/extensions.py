"""Extensions of armpy: the packages that bring formats and commands which armpy alone lacks."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "benchmark": "armpy-tools",
    "calibrate": "armpy-tools",
    "conformance": "armpy-conformance",
    "conformance fuzz": "armpy-nnapi",
    "conformance nnapi-vectors": "armpy-nnapi",
    "conformance random-graphs": "armpy-nnapi",
    "diff": "armpy-conformance",
    "export-triton": "armpy-serving",
    "new-backend": "armpy-conformance",
    "pictures": "armpy-tools",
    "quantize": "armpy-tools",
    "ray-resources": "armpy-serving",
    "report": "armpy-tools",
}
"""Distributions by the command that they add to ``armpy``."""

PLACEMENT = "armpy-tools"
"""Distribution that decides by cost where layers run."""

SUFFIXES: Mapping[str, str] = {".armnn": "armpy-compat", ".onnx": "armpy-onnx"}
"""Distributions by the suffix of the files that they read; their front-ends are named after it."""

_NEEDED_BY: Mapping[str, tuple[str, ...]] = {"armpy-tools": ("armpy-conformance",)}
"""Other extensions that an extension depends on."""


def install_command(distribution: str) -> str:
    """The command that installs an extension, for the fix of an error."""
    distributions = (*_NEEDED_BY.get(distribution, ()), distribution)
    folders = (f"./extensions/{name.removeprefix('armpy-')}" for name in distributions)
    return f"pip install {' '.join(folders)} (in a checkout of armpy)"
