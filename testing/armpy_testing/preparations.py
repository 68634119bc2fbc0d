"""Notes of the preparations of networks, of which a test allows only so many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from armpy.compiler import OptimizedNetwork, optimize_graph
from armpy.graph import Graph

ORDINARY_PROGRAMS = 2
"""Sets of shapes that have programs of their own; the third makes the sizes traced."""


def watch_preparations(monkeypatch: pytest.MonkeyPatch, note: Callable[[Graph], object]) -> None:
    """Call `note` with the graph before each preparation of a network, for sizes or traced sizes.

    Backends are asked about its layers after that.
    """

    def optimize(
        graph: Graph,
        *arguments: Any,  # Any: they are passed on
        **named: Any,
    ) -> OptimizedNetwork:
        note(graph)
        return optimize_graph(graph, *arguments, **named)

    for module in ("planning", "traced.trace"):
        monkeypatch.setattr(f"armpy.execution.programs.{module}.optimize_graph", optimize)
