"""Recipes for the operands of each operation.

Each module has its recipes, by code, in its ``RECIPES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from armpy.core.lazy import ModuleTables
from armpy_nnapi.conformance.random_graphs.call import Recipe


@cache
def recipes() -> Mapping[int, Recipe]:
    """Every operation's recipe by code."""
    by_code: dict[int, Recipe] = {}
    for family in ModuleTables(__name__, "RECIPES").modules():
        by_code.update(family.RECIPES)
    return MappingProxyType(dict(sorted(by_code.items())))
