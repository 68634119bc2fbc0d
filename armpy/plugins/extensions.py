"""Extensions of armpy: the packages that bring formats and commands which armpy alone lacks."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "benchmark": "armpy-tools",
    "calibrate": "armpy-tools",
    "conformance": "armpy-conformance",
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


def install_command(distribution: str) -> str:
    """The command that installs an extension, for the fix of an error."""
    folder = distribution.removeprefix("armpy-")
    return f"pip install ./extensions/{folder} (in a checkout of armpy)"
