"""How the operands of each operation are made up."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from armpy.testing.random_graphs.call import Recipe

FAMILIES: tuple[str, ...] = (
    "activation",
    "boxes",
    "elementwise",
    "lstm",
    "movement",
    "recurrent",
    "reduction",
    "windows",
)
"""Modules of this package; each has its recipes, by code, in ``RECIPES``."""


@cache
def recipes() -> Mapping[int, Recipe]:
    """Every operation's recipe by code."""
    found: dict[int, Recipe] = {}
    for family in FAMILIES:
        found.update(importlib.import_module(f"{__name__}.{family}").RECIPES)
    return MappingProxyType(dict(sorted(found.items())))
