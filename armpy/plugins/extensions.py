"""Extensions of armpy: the packages that read formats which armpy alone does not read."""

from __future__ import annotations

from collections.abc import Mapping

SUFFIXES: Mapping[str, str] = {".onnx": "armpy-onnx"}
"""Distributions by the suffix of the files that they read; their front-ends are named after it."""


def install_command(distribution: str) -> str:
    """The command that installs an extension, for the fix of an error."""
    folder = distribution.removeprefix("armpy-")
    return f"pip install {distribution} (from a checkout: pip install ./extensions/{folder})"
