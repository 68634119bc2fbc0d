"""Notes of the preparations of networks, of which a test allows only so many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from armpy.compiler import OptimizedNetwork, optimize_graph


def watch_preparations(monkeypatch: pytest.MonkeyPatch, note: Callable[[], object]) -> None:
    """Call `note` before each preparation of a network, for sizes or for traced sizes."""

    def optimize(*arguments: Any, **named: Any) -> OptimizedNetwork:  # Any: they are passed on
        note()
        return optimize_graph(*arguments, **named)

    for module in ("planning", "traced.trace"):
        monkeypatch.setattr(f"armpy.execution.programs.{module}.optimize_graph", optimize)
