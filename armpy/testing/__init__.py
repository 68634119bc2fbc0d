"""The conformance kit: tells a backend's author what is wrong, by case, shape and element.

Run it with ``armpy conformance ID``, with ``pytest --pyargs armpy.testing --armpy-backend ID``,
or from code with `run_conformance`. `first_difference` finds the first layer of a model that
a backend computes unlike another one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from armpy.testing.case import Case, CaseInput
    from armpy.testing.conformance import all_cases, run_conformance
    from armpy.testing.diff import LayerDifference, ModelDifference, first_difference
    from armpy.testing.pattern import Pattern
    from armpy.testing.result import CaseResult, ConformanceResult, Outcome
    from armpy.testing.tolerance import TOLERANCES, Tolerance, compare

__all__ = [
    "TOLERANCES",
    "Case",
    "CaseInput",
    "CaseResult",
    "ConformanceResult",
    "LayerDifference",
    "ModelDifference",
    "Outcome",
    "Pattern",
    "Tolerance",
    "all_cases",
    "compare",
    "first_difference",
    "run_conformance",
]

_HOMES = {
    "Case": "case",
    "CaseInput": "case",
    "CaseResult": "result",
    "ConformanceResult": "result",
    "LayerDifference": "diff",
    "ModelDifference": "diff",
    "Outcome": "result",
    "Pattern": "pattern",
    "TOLERANCES": "tolerance",
    "Tolerance": "tolerance",
    "all_cases": "conformance",
    "compare": "tolerance",
    "first_difference": "diff",
    "run_conformance": "conformance",
}


def __getattr__(name: str) -> object:
    """Import what is asked for: pytest loads this package in every run for its options."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"armpy.testing.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'armpy.testing' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Everything that can be used."""
    return sorted({*globals(), *__all__})
