"""Draws a model file's layers to a picture."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from armpy.inspect import ModelFacts
from armpy.profiling import short_names
from armpy_tools.report.drawing import to_dot, to_svg
from armpy_tools.report.picture import pictures

_MOST_FOR_GRAPHVIZ = 800
"""Layers up to which Graphviz is asked; it takes minutes for thousands."""

_PATIENCE_S = 30.0


def write_svg(facts: ModelFacts, path: str, title: str) -> str:
    """Draw the layers of a file, coloured by where they went.

    Parameters
    ----------
    facts : ModelFacts
    path : str
    title : str

    Returns
    -------
    str
        The layout that placed it.
    """
    drawn = pictures(facts, short_names(layer.name for layer in facts.layers))
    text = None
    if len(facts.layers) <= _MOST_FOR_GRAPHVIZ:
        text = _by_graphviz(to_dot(drawn))
    Path(path).write_text(text or to_svg(drawn, title), "utf-8")
    return "Graphviz" if text else "armpy"


def _by_graphviz(dot: str) -> str | None:
    """Return Graphviz's drawing of a graph; None if it is not installed, or too slow."""
    command = shutil.which("dot")
    if command is None:
        return None
    try:
        done = subprocess.run(
            [command, "-Tsvg"],
            input=dot,
            capture_output=True,
            encoding="utf-8",
            timeout=_PATIENCE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None
    return done.stdout
